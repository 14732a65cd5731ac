"""Flags, counts and ranks of operands, which schemas do not state."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.onnxmodel.specification import diagnose, raise_errors
from onnxhw.onnxmodel.specification.findings import SpecificationError
from onnxhw.onnxmodel.specification.operands import FLAGS, LEAST, MOST, RANKS


def found(op_type, constants=(), outputs=1, opset=18, **attributes):
    names = ["x", *(f"c{index}" if value is not None else "" for index, value in enumerate(constants))]
    node = helper.make_node(op_type, names, [f"y{index}" for index in range(outputs)], **attributes)
    tensors = [numpy_helper.from_array(np.asarray(value), f"c{index}") for index, value in enumerate(constants)
               if value is not None]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 4, 6, 6))
    y = helper.make_tensor_value_info("y0", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y], tensors)
    return {one.code for one in diagnose(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))}


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 5, 1 << 40])
def test_a_flag_is_0_or_1(value):
    assert ("E3356" in found("ReduceMax", keepdims=value)) is (value not in (0, 1))


@pytest.mark.parametrize(
    ("op_type", "constants", "wrong"),
    [
        ("Clip", [np.float32(0)], False),
        ("Clip", [np.float32([0])], False),
        ("Clip", [None, np.float32([0, 1, 2])], True),
        ("Clip", [np.float32([])], True),
        ("Expand", [np.int64(3)], True),
        ("Expand", [np.int64([3])], False),
        ("Reshape", [np.int64([[2, -1]])], True),
        ("Unsqueeze", [np.int64(0)], False),
        ("Unsqueeze", [np.int64([0])], False),
        ("Unsqueeze", [np.int64([[0]])], True),
        ("STFT", [np.int64([])], True),
        ("Tile", [np.int64(2)], True),
    ],
)
def test_operands_have_their_ranks(op_type, constants, wrong):
    assert ("E3357" in found(op_type, constants)) is wrong


@pytest.mark.parametrize(
    ("op_type", "outputs", "attributes", "wrong"),
    [
        ("Split", 2, {"num_outputs": 2}, False),
        ("Split", 2, {"num_outputs": 3}, True),
        ("Split", 4, {"num_outputs": 3}, True),
        ("Split", 2, {"num_outputs": 1 << 31}, True),
        ("Split", 2, {"num_outputs": -2}, True),
        ("SpaceToDepth", 1, {"blocksize": 0}, True),
        ("SpaceToDepth", 1, {"blocksize": 2}, False),
        ("TfIdfVectorizer", 1, {"max_skip_count": 1 << 31}, True),
    ],
)
def test_counts_are_in_their_range(op_type, outputs, attributes, wrong):
    assert ("E3358" in found(op_type, outputs=outputs, **attributes)) is wrong


def test_the_tables_name_what_there_is():
    """Every operator and attribute of the tables is one of onnx's."""
    schemas = [one for one in onnx.defs.get_all_schemas_with_history() if one.domain == ""]
    names = {one.name for one in schemas}
    attributes = {(one.name, attribute) for one in schemas for attribute in one.attributes}
    assert set(RANKS) <= names
    assert {*LEAST, *MOST} <= attributes
    assert {name for _, name in attributes} >= FLAGS


def test_the_suite_keeps_the_rules():
    """No node model of onnx's own breaks one."""
    from node_mutants import seeds

    wrong = []
    for one in (*seeds()[0], *seeds()[1]):
        try:
            raise_errors(diagnose(onnx.ModelProto.FromString(one.model)), one.name)
        except SpecificationError as error:
            wrong += [(one.name, found.code) for found in error.diagnostics]
    assert [entry for entry in wrong if entry[1] in ("E3356", "E3357", "E3358")] == []
