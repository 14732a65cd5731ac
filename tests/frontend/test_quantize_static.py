"""Models as onnxruntime's `quantize_static` writes them: every combination of its options that README names."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import golden
from onnxhw.frontend import load
from onnxhw.golden import host


def network(path: Path) -> None:
    """Conv, Relu, MaxPool, Conv to one channel, Flatten, Gemm; float32, with biases."""
    random = np.random.default_rng(5)

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"]),
        helper.make_node("Flatten", ["c2"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    weights = [constant("w1", 6, 3, 3, 3), constant("b1", 6), constant("w2", 1, 6, 3, 3), constant("b2", 1),
               constant("w3", 5, 4), constant("b3", 5)]  # fmt: skip
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])], weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per tensor", "per channel"])
@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["asymmetric", "symmetric"])
def test_it_is_read_and_means_the_same(tmp_path: Path, per_channel: bool, activations: str, symmetric: bool) -> None:
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    images = np.random.default_rng(1).normal(0, 1, (16, 1, 3, 8, 8)).astype(np.float32)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{"x": image} for image in images])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.rest, None)

    network(tmp_path / "float.onnx")
    quantize_static(
        str(tmp_path / "float.onnx"), str(tmp_path / "int8.onnx"), Reader(), quant_format=QuantFormat.QDQ,
        per_channel=per_channel, activation_type=getattr(QuantType, activations), weight_type=QuantType.QInt8,
        extra_options={"ActivationSymmetric": symmetric},
    )  # fmt: skip
    graph = load(tmp_path / "int8.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(tmp_path / "int8.onnx"), options, providers=["CPUExecutionProvider"])
    scale = graph.tensors[graph.outputs[0].tensor].scale
    for image in images:
        ours = host.finish(graph, golden.run(graph, host.prepare(graph, {"x": image})))["y"]
        theirs = session.run(None, {"x": image})[0]
        # Unoptimised onnxruntime convolves in float32: a sum next to a tie may fall on its other side.
        assert np.abs(ours - theirs).max() <= 2.01 * scale
        assert np.mean(ours == theirs) >= 0.6
