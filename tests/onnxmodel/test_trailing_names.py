"""An empty name at the end of a node's inputs or outputs says no more than its absence, of every operator."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import defs, helper, parser

from onnxhw import InferenceSession
from onnxhw.onnxmodel.inline import inline
from onnxhw.onnxmodel.read import read_model
from onnxhw.onnxmodel.trailing_names import trim
from onnxhw.partition import read

X = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) / 8
CHANNELS = {name: np.linspace(0.5, 2, 3, dtype=np.float32) for name in ("s", "b", "m", "v")}
CASES: dict[str, tuple[str, int, list[str], list[str], dict[str, Any]]] = {
    "normalization of version 7": ("BatchNormalization", 7, ["x", *CHANNELS], ["y", "", "", "", ""], {}),
    "normalization of version 9": ("BatchNormalization", 9, ["x", *CHANNELS], ["y", "", "", "", ""], {}),
    "normalization of version 15": ("BatchNormalization", 15, ["x", *CHANNELS], ["y", "", ""], {}),
    "indices of a pool": ("MaxPool", 12, ["x"], ["y", ""], {"kernel_shape": [2, 2]}),
    "mask": ("Dropout", 13, ["x", "", ""], ["y", ""], {}),
    "bounds": ("Clip", 13, ["x", "", ""], ["y"], {}),
    "statistics": ("LayerNormalization", 17, ["x", "ones", ""], ["y", "", ""], {}),
    "pool of scales": ("Resize", 13, ["x", "", "scales", ""], ["y"], {}),
}


def one(name: str) -> onnx.ModelProto:
    op_type, version, inputs, outputs, attributes = CASES[name]
    constants = {**CHANNELS, "ones": np.ones(2, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    known = [onnx.numpy_helper.from_array(value, key) for key, value in constants.items() if key in inputs]
    value = helper.make_tensor_value_info
    node = helper.make_node(op_type, inputs, outputs, **attributes)
    graph = helper.make_graph([node], "g", [value("x", T.FLOAT, X.shape)], [value("y", T.FLOAT, None)], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_without_the_names(name: str) -> None:
    proto, short = one(name), one(name)
    (node,) = short.graph.node
    for names in (node.input, node.output):
        while not names[-1]:
            del names[-1]
    (made,) = read_model(proto.SerializeToString()).graph.node
    assert (made.input, made.output) == (node.input, node.output)
    assert not read(proto).refused
    np.testing.assert_array_equal(*(InferenceSession(p).run(None, {"x": X})[0] for p in (proto, short)))


def test_of_variadic_outputs_the_number_stays() -> None:
    """Split divides by it."""
    value = helper.make_tensor_value_info
    node = helper.make_node("Split", ["x"], ["y", ""], axis=1)
    graph = helper.make_graph([node], "g", [value("x", T.FLOAT, [2, 4])], [value("y", T.FLOAT, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert list(read_model(proto.SerializeToString()).graph.node[0].output) == ["y", ""]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(InferenceSession(proto).run(None, {"x": x})[0], x[:, :2])


@pytest.mark.parametrize(("version", "outputs"), [(7, 5), (9, 5), (15, 3)])
def test_of_a_normalization_that_trains_all_outputs_stay(version: int, outputs: int) -> None:
    """Its schema has one output or all, of which it may leave names empty."""
    proto = one(f"normalization of version {version}")
    (node,) = proto.graph.node
    del node.output[1:]
    node.output.extend(["now", *[""] * (outputs - 2)])
    proto.graph.output.append(helper.make_tensor_value_info("now", T.FLOAT, [3]))
    if version > 9:
        node.attribute.append(helper.make_attribute("training_mode", 1))
    assert list(read_model(proto.SerializeToString()).graph.node[0].output) == list(node.output)
    mean = np.float32(0.9) * CHANNELS["m"] + np.float32(0.1) * X.mean((0, 2, 3))
    np.testing.assert_allclose(InferenceSession(proto).run(["now"], {"x": X})[0], mean, rtol=1e-5)


def test_what_a_call_leaves_out_is_not_there_either() -> None:
    proto = parser.parse_model("""
<ir_version: 10, opset_import: ["" : 21, "f" : 1], domain: "org.example">
g (float[1,3] x) => (float[1,3] y) { y = f.Bounded(x) }
<domain: "f", opset_import: ["" : 21]> Bounded (a, low, high) => (b) { b = Clip(a, low, high) }""")
    assert [list(node.input) for node in inline(proto).graph.node] == [["x"]]


def test_of_every_operator_the_fewest_inputs_and_what_is_needed_stays() -> None:
    for schema in defs.get_all_schemas_with_history():
        least = list(range(max(1, schema.min_output)))
        node = helper.make_node(schema.name, [""] * 9, ["y"] + [""] * 9, domain=schema.domain)
        trim(node, {schema.domain: schema.since_version})
        variadic = any(str(formal.option).endswith("Variadic") for formal in schema.outputs)
        assert len(node.input) == min(9, schema.min_input), schema.name
        assert len(node.output) == (10 if variadic or len(schema.outputs) < 10 else len(least)), schema.name
