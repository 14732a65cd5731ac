"""Models as onnxruntime's `quantize_static` writes them: every combination of its options that README names."""

import dataclasses
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden
from onnxhw.golden import host
from onnxhw.ir.graph import Conv, Graph
from onnxhw.partition import load


def network(path: Path) -> None:
    """Conv, Relu, MaxPool, Conv to two channels, Flatten, Gemm; float32, with biases."""
    random = np.random.default_rng(5)

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], name="second"),
        helper.make_node("Flatten", ["c2"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="dense", transB=1),
    ]
    weights = [constant("w1", 6, 3, 3, 3), constant("b1", 6), constant("w2", 2, 6, 3, 3), constant("b2", 2),
               constant("w3", 5, 8), constant("b3", 5)]  # fmt: skip
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])], weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


IMAGES = np.random.default_rng(1).normal(0, 1, (64, 1, 3, 8, 8)).astype(np.float32)


def quantized(
    folder: Path, per_channel: bool, activations: str, symmetric: bool, weights: str = "QInt8"
) -> onnx.ModelProto:
    """The network as `quantize_static` writes it, calibrated on some of the images."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{"x": image} for image in IMAGES[:16]])

        def get_next(self) -> dict[str, npt.NDArray[np.float32]] | None:
            return next(self.rest, None)

    network(folder / "float.onnx")
    kinds = {"activation_type": getattr(QuantType, activations), "weight_type": getattr(QuantType, weights)}
    quantize_static(
        str(folder / "float.onnx"), str(folder / "int8.onnx"), Reader(), quant_format=QuantFormat.QDQ,
        per_channel=per_channel, extra_options={"ActivationSymmetric": symmetric}, **kinds,
    )  # fmt: skip
    return onnx.load(folder / "int8.onnx")


COPIES = ".copies"
"""Ends the names of inputs whose channels are there several times."""


def differing(against_ort: ModuleType, model: onnx.ModelProto, graph: Graph) -> dict[str, int]:
    """Elements of each Conv's and Gemm's result that are not those of the integer kernel on our own operands."""
    tensors = golden.run(graph, host.prepare(graph, {"x": IMAGES.reshape(-1, 3, 8, 8)}))
    found = {}
    for op in graph.ops:
        if isinstance(op, Conv) and not op.output.endswith(COPIES):
            kernel = against_ort.Kernel.of(model, op.nodes[0])
            ours = tensors[op.output]
            assert len(np.unique(ours)) > 20, f"{op.name} shows nothing"
            wanted = kernel.run(tensors[op.inputs[0].removesuffix(COPIES)])
            found[op.nodes[0]] = int((wanted.reshape(ours.shape) != ours).sum())
    return found


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["asymmetric", "symmetric"])
def test_every_layer_is_onnxruntimes_integer_kernel(
    tmp_path: Path, against_ort: ModuleType, per_channel: bool, activations: str, symmetric: bool
) -> None:
    """Every element of every layer for 64 images; the ends of the model are Q and DQ with its own parameters."""
    model = quantized(tmp_path, per_channel, activations, symmetric)
    graph = load(tmp_path / "int8.onnx")
    assert differing(against_ort, model, graph) == {"first": 0, "second": 0, "dense": 0}
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    quantize = next(node for node in model.graph.node if "x" in node.input)
    dequantize = next(node for node in model.graph.node if "y" in node.output)
    for port, node in ((graph.inputs[0], quantize), (graph.outputs[0], dequantize)):
        tensor, zero = graph.tensors[port.tensor], arrays[node.input[2]]
        assert np.float32(tensor.scale) == arrays[node.input[1]]
        assert tensor.zero_point == int(zero) - (128 if zero.dtype == np.uint8 else 0)


def test_asymmetric_uint8_weights_are_onnxruntimes_integer_kernel(tmp_path: Path, against_ort: ModuleType) -> None:
    """Weights beyond int8 are sums of int8 ones, on copies of the input's channels."""
    model = quantized(tmp_path, False, "QUInt8", False, weights="QUInt8")
    graph = load(tmp_path / "int8.onnx")
    assert any(op.output.endswith(COPIES) for op in graph.ops)
    assert differing(against_ort, model, graph) == {"first": 0, "second": 0, "dense": 0}


def test_a_wrong_zero_point_shows(tmp_path: Path, against_ort: ModuleType) -> None:
    """The test above can fail: one step of one input's zero point changes the layer that reads it."""
    model = quantized(tmp_path, True, "QUInt8", False)
    graph = load(tmp_path / "int8.onnx")
    op = next(op for op in graph.ops if isinstance(op, Conv) and op.nodes[0] == "second")
    tensor = graph.tensors[op.inputs[0]]
    moved = dataclasses.replace(tensor, zero_point=tensor.zero_point + 1)
    wrong = dataclasses.replace(graph, tensors={**graph.tensors, tensor.name: moved})
    assert differing(against_ort, model, wrong)["second"] > 0
