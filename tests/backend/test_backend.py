"""`onnxhw.backend`: onnx's backend interface."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw import backend
from onnxhw.errors import OnnxhwError, UsageError


def _model(*nodes: onnx.NodeProto, shape: list[Any], output: str = "y") -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    constants = [
        helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]),
        helper.make_tensor("z", TensorProto.INT8, [], [3]),
        helper.make_tensor("b", TensorProto.FLOAT, [2], [1.0, -1.0]),
    ]
    graph = helper.make_graph(list(nodes), "model", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


QUANTIZED = (
    helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
    helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    helper.make_node("GlobalAveragePool", ["d"], ["g"]),
    helper.make_node("QuantizeLinear", ["g", "s", "z"], ["h"]),
    helper.make_node("DequantizeLinear", ["h", "s", "z"], ["y"]),
)


def test_outputs_come_in_order_and_by_name() -> None:
    prepared = backend.prepare(_model(helper.make_node("Relu", ["x"], ["y"]), shape=[2]))
    outputs = prepared.run([np.array([-1, 2], np.float32)])
    assert isinstance(outputs, tuple)
    assert np.array_equal(outputs[0], [0, 2])
    assert np.array_equal(outputs["y"], [0, 2])


@pytest.mark.parametrize("inputs", [[np.ones(2, np.float32)], {"x": np.ones(2, np.float32)}, np.ones(2, np.float32)])
def test_inputs_may_be_a_sequence_a_mapping_or_one_array(inputs: Any) -> None:
    (y,) = backend.run_model(_model(helper.make_node("Add", ["x", "b"], ["y"]), shape=[2]), inputs)
    assert np.array_equal(y, [2, 0])


def test_a_quantized_model_runs_on_the_hardware() -> None:
    prepared = backend.prepare(_model(*QUANTIZED, shape=[1, 1, 2, 2]))
    x = np.array([[[[0.5, 1.0], [1.5, 3.0]]]], np.float32)
    assert prepared.where == "hardware"
    assert prepared.run([x])[0].item() == 1.5


def test_a_float_model_runs_on_the_host() -> None:
    assert backend.prepare(_model(helper.make_node("Sinh", ["x"], ["y"]), shape=[2])).where == "host"


def test_a_model_of_both_is_mixed() -> None:
    nodes = (*QUANTIZED[:4], helper.make_node("DequantizeLinear", ["h", "s", "z"], ["e"]))
    prepared = backend.prepare(_model(*nodes, helper.make_node("Det", ["e"], ["y"]), shape=[1, 1, 2, 2]))
    assert prepared.where == "mixed"
    assert prepared.run([np.ones((1, 1, 2, 2), np.float32)])[0].tolist() == [[1.0]]


def test_open_dimensions_take_the_sizes_of_the_arrays() -> None:
    prepared = backend.prepare(_model(helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0), shape=["n", "m"]))
    for shape in ((3, 4), (1, 1), (2, 5)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert prepared.run([x])[0] == x.max()


def test_a_node_alone() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    (y,) = backend.run_node(node, [np.array([1.0]), np.array([2.0])])
    assert np.array_equal(y, [1, 2])


def test_a_node_of_an_older_operator_set() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = np.zeros((1, 2, 4), np.float32)
    assert np.array_equal(backend.run_node(node, [x], opset_version=11)[0], np.full_like(x, 1 / 8))
    assert np.array_equal(backend.run_node(node, [x], opset_version=13)[0], np.full_like(x, 1 / 4))


def test_only_the_cpu_is_a_device() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(UsageError) as caught:
        backend.prepare(_model(helper.make_node("Relu", ["x"], ["y"]), shape=[2]), "CUDA")
    assert caught.value.code == "E2710"


def test_a_wrong_number_of_inputs() -> None:
    prepared = backend.prepare(_model(helper.make_node("Relu", ["x"], ["y"]), shape=[2]))
    with pytest.raises(UsageError) as caught:
        prepared.run([np.ones(2, np.float32)] * 3)
    assert caught.value.code == "E2711"


def test_compatible_is_what_can_be_prepared() -> None:
    good = _model(helper.make_node("Relu", ["x"], ["y"]), shape=[2])
    bad = _model(helper.make_node("Unheard", ["x"], ["y"], domain="nowhere"), shape=[2])
    bad.opset_import.append(helper.make_opsetid("nowhere", 1))
    assert backend.is_compatible(good)
    assert not backend.is_compatible(bad)
    with pytest.raises(OnnxhwError):
        backend.prepare(bad)
