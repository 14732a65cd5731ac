"""Files that onnxruntime saves after optimising: whatever the level, they are the model that they were made from."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.hostops.evaluator import evaluate
from onnxhw.partition import read
from onnxhw.runtime.session import InferenceSession

ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
SHARED = Path(__file__).resolve().parents[4] / "shared" / "models"
LEVELS = ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_LAYOUT", "ORT_ENABLE_ALL"]
IMAGES = np.random.default_rng(1).normal(0, 1, (12, 1, 3, 12, 12)).astype(np.float32)
MODELS = ["ic_resnet8_int8_qop", "ic_resnet8_int8_qdq", "kws_dscnn_int8_qdq", "ad_autoencoder_int8_qdq"]


def optimised(path: Path, level: str, folder: Path) -> Path:
    """The file that onnxruntime saves of a model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / f"{level}.onnx")
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return folder / f"{level}.onnx"


def operators(path: Path) -> set[str]:
    """Operators by domain; with ``:last`` where the channels are."""
    found = set()
    for node in onnx.load(path).graph.node:
        last = ":last" if any(one.name == "channels_last" and one.i for one in node.attribute) else ""
        found.add(f"{node.domain}.{node.op_type}{last}")
    return found


def results(path: Path, *feeds: dict[str, Any]) -> list[npt.NDArray[Any]]:
    session = InferenceSession(path)
    return [np.asarray(array) for feed in feeds for array in session.run(None, feed)]


@pytest.mark.parametrize("name", MODELS)
def test_an_optimised_file_is_the_model_itself(name: str, tmp_path: Path) -> None:
    """The integers are the same ones, and as much of it is on the hardware."""
    path = SHARED / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"needs {path}")
    given = read(path).inputs[0]
    x = np.random.default_rng(3).normal(0, 1, [size if isinstance(size, int) else 1 for size in given.shape or ()])
    feed = {given.name: x.astype(np.float32) if given.dtype == "float32" else (x * 40).astype(given.dtype)}
    wanted, seen = results(path, feed), set[str]()
    for level in LEVELS:
        file = optimised(path, level, tmp_path)
        seen |= operators(file)
        mixed = read(file)
        assert {row.op_type for row in mixed.placement if row.where in ("host", "refused")} <= {
            "QuantizeLinear", "DequantizeLinear", "Softmax", "QLinearSoftmax", "Flatten"
        }  # fmt: skip
        for one, other in zip(results(file, feed), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    if "kws" in name or "ic_resnet8_int8_qop" in name:
        assert "com.microsoft.QLinearConv:last" in seen


def network(path: Path, head: str, dims: int = 2) -> None:
    """Conv, Relu, MaxPool, two branches that meet in an Add and a Concat, average pools, Gemm; float32, with biases."""
    random = np.random.default_rng(5)
    kernel = [3] * dims

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)

    around = {"pads": [1] * 2 * dims}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "first", **around),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "max", kernel_shape=[2] * dims, strides=[2] * dims),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], "second", **around),
        helper.make_node("Conv", ["p1", "w3", "b3"], ["c3"], "deep", group=8, **around),
        helper.make_node("Add", ["c2", "c3"], ["s"], "sum"),
        helper.make_node("LeakyRelu", ["s"], ["l"], "leaky", alpha=0.25),
        helper.make_node("Concat", ["l", "p1"], ["j"], "join", axis=1),
        helper.make_node("AveragePool", ["j"], ["a"], "average", kernel_shape=[2] * dims, strides=[1] * dims),
        helper.make_node("Sigmoid", ["a"], ["o"], "sigmoid"),
        helper.make_node("GlobalAveragePool", ["o"], ["g"], "global"),
        helper.make_node("Flatten", ["g"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w4", "b4"], ["y" if head == "Gemm" else "d"], "dense", transB=1),
    ]
    if head == "Softmax":
        nodes.append(helper.make_node("Softmax", ["d"], ["y"], "softmax"))
    weights = [constant("w1", 8, 3, *kernel), constant("b1", 8), constant("w2", 8, 8, *kernel), constant("b2", 8),
               constant("w3", 8, 1, *kernel), constant("b3", 8), constant("w4", 5, 16), constant("b4", 5)]  # fmt: skip
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, *[12] * dims])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])], weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def quantized(folder: Path, form: str, activations: str, weights: str, per_channel: bool, head: str, dims: int) -> Path:
    """The network, preprocessed and quantized as onnxruntime's tools do."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{"x": image if dims == 2 else image[..., 0]} for image in IMAGES[:8]])

        def get_next(self) -> dict[str, npt.NDArray[np.float32]] | None:
            return next(self.rest, None)

    network(folder / "float.onnx", head, dims)
    quant_pre_process(str(folder / "float.onnx"), str(folder / "ready.onnx"), skip_symbolic_shape=True)
    quantize_static(
        str(folder / "ready.onnx"), str(folder / "int8.onnx"), Reader(), quant_format=QuantFormat[form],
        per_channel=per_channel, activation_type=QuantType[activations], weight_type=QuantType[weights],
    )  # fmt: skip
    return folder / "int8.onnx"


CASES = [
    ("QDQ", "QInt8", "QInt8", True, "Gemm", 2),
    ("QDQ", "QUInt8", "QInt8", False, "Softmax", 2),
    ("QDQ", "QUInt8", "QUInt8", False, "Gemm", 2),
    ("QDQ", "QUInt8", "QInt8", True, "Gemm", 1),
    ("QOperator", "QInt8", "QInt8", True, "Softmax", 2),
    ("QOperator", "QUInt8", "QInt8", True, "Gemm", 2),
    ("QOperator", "QUInt8", "QUInt8", False, "Gemm", 2),
    ("QOperator", "QInt8", "QInt8", False, "Gemm", 1),
]


@pytest.mark.parametrize(("form", "activations", "weights", "per_channel", "head", "dims"), CASES)
def test_quantized_and_optimised(
    tmp_path: Path, form: str, activations: str, weights: str, per_channel: bool, head: str, dims: int
) -> None:
    path = quantized(tmp_path, form, activations, weights, per_channel, head, dims)
    feeds = [{"x": image if dims == 2 else image[..., 0]} for image in IMAGES[8:]]
    wanted = results(path, *feeds)
    assert len({array.tobytes() for array in wanted}) > 1, "shows nothing"
    seen: set[str] = set()
    for level in LEVELS:
        file = optimised(path, level, tmp_path)
        seen |= operators(file)
        if any(node.domain == "com.microsoft.nchwc" for node in onnx.load(file).graph.node):
            continue  # blocked layouts, on some processors: refused by name (tests/partition)
        for one, other in zip(results(file, *feeds), wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=level)
    assert "com.microsoft.QLinearConv:last" in seen


MICROSOFT = "com.microsoft"
GRID = {"s": np.float32(0.0625), "z": np.uint8(117), "t": np.float32(0.125), "u": np.uint8(3)}
W = np.random.default_rng(9).integers(-90, 90, (5, 4, 3, 3)).astype(np.int8)
CONV = {
    "w": W,
    "v": np.float32([0.01, 0.02, 0.005, 0.01, 0.0125]),
    "o": np.zeros(5, np.int8),
    "b": np.arange(5, dtype=np.int32) * 99,
}
"""Weights, scales and zero points of five output channels, and a bias."""
LAST = {
    "QLinearConv": (["q", "s", "z", "w", "v", "o", "t", "u", "b"], {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    "QLinearConv of groups": (["q", "s", "z", "w4", "v0", "o0", "t", "u"], {"group": 4, "dilations": [1, 2]}),
    "QLinearAveragePool": (["q", "s", "z", "t", "u"], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
    "QLinearGlobalAveragePool": (["q", "s", "z", "t", "u"], {}),
    "NhwcMaxPool": (["q"], {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 0]}),
}


def single(name: str, last: bool) -> onnx.ModelProto:
    """One operator between a quantized input and output, channels last outside; inside, or with Transposes around."""
    (op_type, *_), (inputs, given) = name.split(), LAST[name]
    flag = {} if op_type == "NhwcMaxPool" else {"channels_last": int(last)}
    if last:
        nodes = [helper.make_node(op_type, inputs, ["r"], "it", domain=MICROSOFT, **given, **flag)]
    else:
        kind, domain = ("MaxPool", "") if op_type == "NhwcMaxPool" else (op_type, MICROSOFT)
        nodes = [
            helper.make_node("Transpose", ["q"], ["first"], "before", perm=[0, 3, 1, 2]),
            helper.make_node(kind, ["first", *inputs[1:]], ["made"], "it", domain=domain, **given, **flag),
            helper.make_node("Transpose", ["made"], ["r"], "after", perm=[0, 2, 3, 1]),
        ]
    scales = ["s", "z"] if op_type == "NhwcMaxPool" else ["t", "u"]
    ends = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "in"), *nodes,
            helper.make_node("DequantizeLinear", ["r", *scales], ["y"], "out")]  # fmt: skip
    more = {"w4": W[:4, :1], "v0": np.float32(0.01), "o0": np.int8(0)}
    graph = helper.make_graph(
        ends, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6, 7, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in (GRID | CONV | more).items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


FEED = {"x": np.random.default_rng(2).normal(0, 3, (1, 6, 7, 4)).astype(np.float32)}


@pytest.mark.parametrize("name", LAST)
def test_channels_last_is_the_operator_between_transposes(name: str) -> None:
    """On the hardware, and, left out of it, on the host: every element."""
    last, first = (single(name, where).SerializeToString() for where in (True, False))
    (wanted,) = results_of(first, FEED)
    assert len(np.unique(wanted)) >= 4
    mixed = read(last)
    assert {row.node: row.where for row in mixed.placement}["it"] == "hardware"
    np.testing.assert_array_equal(results_of(last, FEED)[0], wanted)
    np.testing.assert_array_equal(evaluate(onnx.load_model_from_string(last), FEED)["y"], wanted)


def results_of(model: bytes, feed: dict[str, Any]) -> list[npt.NDArray[Any]]:
    return [np.asarray(array) for array in InferenceSession(model).run(None, feed)]


FUSED = [
    ("FusedConv", {"activation": "Relu"}, "Relu", {}),
    ("FusedConv", {"activation": "Clip", "activation_params": [0.0, 3.0]}, "Clip", {}),
    ("FusedGemm", {"activation": "Relu", "transB": 1}, "Relu", {}),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "given", "activation", "alone"), FUSED, ids=str)
def test_a_fused_operator_is_two(op_type: str, given: dict[str, Any], activation: str, alone: dict[str, float]) -> None:
    def model(fused: bool) -> bytes:
        kind = op_type.removeprefix("Fused")
        own = {name: value for name, value in given.items() if not name.startswith("activation")}
        last = ["low", "high"] if activation == "Clip" else []
        nodes = [helper.make_node(op_type, ["d", "w", "c"], ["r"], "it", domain=MICROSOFT, **given)] if fused else [
            helper.make_node(kind, ["d", "w", "c"], ["m"], "it", **own),
            helper.make_node(activation, ["m", *last], ["r"], "act", **alone),
        ]  # fmt: skip
        shape = [1, 4, 6, 7] if kind == "Conv" else [1, 36]
        weights = W if kind == "Conv" else W.reshape(5, 36)
        constants = {
            **GRID, "wq": weights, "wz": np.int8(0), "ws": np.float32(0.01), "cq": CONV["b"], "cz": np.int32(0),
            "cs": np.float32(GRID["s"] * np.float32(0.01)), "low": np.float32(0), "high": np.float32(3),
        }  # fmt: skip
        around = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "in"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "real"),
            helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], "weights"),
            helper.make_node("DequantizeLinear", ["cq", "cs", "cz"], ["c"], "bias"),
            *nodes,
            helper.make_node("QuantizeLinear", ["r", "t", "u"], ["p"], "back"),
            helper.make_node("DequantizeLinear", ["p", "t", "u"], ["y"], "out"),
        ]
        graph = helper.make_graph(
            around, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    feed = {"x": FEED["x"].reshape(1, 4, 6, 7) if op_type == "FusedConv" else FEED["x"].reshape(-1)[:36].reshape(1, 36)}
    assert {row.node: row.where for row in read(model(True)).placement}["it"] == "hardware"
    (wanted,), (given_back,) = results_of(model(False), feed), results_of(model(True), feed)
    assert len(np.unique(wanted)) > 2
    np.testing.assert_array_equal(given_back, wanted)
