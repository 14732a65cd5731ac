"""Constant positions in sequences of known length: those that onnxruntime takes, and no others."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import InferenceSession
from onnxhw.errors import InvalidModelError
from onnxhw.partition import read

MAKERS = {
    "constructed": [helper.make_node("SequenceConstruct", ["x", "x", "x"], ["s"])],
    "split": [helper.make_node("SplitToSequence", ["x", "ones"], ["s"], axis=0)],
    "grown": [helper.make_node("SequenceConstruct", ["x", "x"], ["r"]),
              helper.make_node("SequenceInsert", ["r", "x"], ["s"])],
    "shrunk": [helper.make_node("SequenceConstruct", ["x"] * 4, ["r"]), helper.make_node("Identity", ["r"], ["q"]),
               helper.make_node("SequenceErase", ["q"], ["s"])],
}  # fmt: skip
"""Sequences of three elements."""
OPERATORS = {"SequenceAt": ["s", "p"], "SequenceErase": ["s", "p"], "SequenceInsert": ["s", "x", "p"]}


def model(maker: list[onnx.NodeProto], op_type: str, position: int) -> onnx.ModelProto:
    value, end = helper.make_tensor_value_info, "y" if op_type == "SequenceAt" else "u"
    nodes = [*maker, helper.make_node(op_type, OPERATORS[op_type], [end], "it")]
    if end == "u":
        nodes.append(helper.make_node("SequenceLength", ["u"], ["y"]))
    known = {"p": np.array(position), "ones": np.ones(3, np.int64)}
    constants = [numpy_helper.from_array(value, name) for name, value in known.items()]
    kind = TensorProto.FLOAT if end == "y" else TensorProto.INT64
    graph = helper.make_graph(nodes, "g", [value("x", 1, [3, 2])], [value("y", kind, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("position", [-4, -3, 2, 3, 4])
def test_positions_are_those_that_onnxruntime_takes(maker: str, op_type: str, position: int) -> None:
    proto, x = model(MAKERS[maker], op_type, position), np.arange(6, dtype=np.float32).reshape(3, 2)
    try:
        (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    except Exception as error:  # of onnxruntime's own classes
        assert "nvalid sequence index" in str(error)  # noqa: PT017 - what it says is not what is tested
        with pytest.raises(InvalidModelError, match=rf"E3359 .*'it' .*position {position} is not between -3 and"):
            read(proto)
    else:
        np.testing.assert_array_equal(InferenceSession(proto).run(None, {"x": x})[0], wanted)


def test_nothing_is_taken_from_nothing() -> None:
    proto = model([helper.make_node("SequenceEmpty", [], ["s"])], "SequenceErase", 0)
    del proto.graph.node[1].input[1]
    with pytest.raises(InvalidModelError, match=r"E3359 .*no elements"):
        read(proto)


def test_what_no_output_needs_is_not_looked_at() -> None:
    proto = model(MAKERS["constructed"], "SequenceAt", 9)
    proto.graph.node.append(helper.make_node("Relu", ["x"], ["z"]))
    proto.graph.output[0].name = "z"
    assert not read(proto).refused
