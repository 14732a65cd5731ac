"""What onnxruntime's `quantize_dynamic` and its optimisers write of float models: on the host, equal to onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxhw.hostops.single_node import implemented
from onnxhw.partition import read
from onnxhw.runtime.session import InferenceSession

ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"]
RANDOM = np.random.default_rng(7)
HIDDEN = 5


def weights(**shapes: tuple[int, ...]) -> list[onnx.TensorProto]:
    """Random float tensors by name."""
    return [numpy_helper.from_array(RANDOM.normal(0, 0.4, shape).astype(np.float32), name)
            for name, shape in shapes.items()]  # fmt: skip


def network(name: str) -> tuple[onnx.ModelProto, npt.NDArray[np.float32]]:
    """A small float model and an input of it."""
    text, constants, shape = {
        "lstm": ("y0, h, c = LSTM<hidden_size = 5>(x, w, r, b) y = ReduceSum<keepdims = 0>(y0, one)",
                 weights(w=(1, 20, 3), r=(1, 20, HIDDEN), b=(1, 40)), (6, 2, 3)),
        "mlp": ("m = MatMul(x, w) a = Add(m, b) h = Relu(a) y = MatMul(h, v)",
                weights(w=(8, 16), b=(16,), v=(16, 4)), (3, 8)),
        "gemm": ("h = Gemm(x, w, b) s = Sigmoid(h) y = Gemm(s, v)",
                 weights(w=(8, 16), b=(16,), v=(16, 4)), (3, 8)),
        "conv": ("c = Conv<pads = [1, 1, 1, 1]>(x, w, b) y = Relu(c)", weights(w=(4, 3, 3, 3), b=(4,)), (1, 3, 8, 8)),
        "embedding": ("a = Abs(x) i = Cast<to = 7>(a) e = Gather(t, i) y = MatMul(e, w)",
                      weights(t=(10, 8), w=(8, 4)), (2, 3)),
        "transformer": (
            "k = Transpose<perm = [0, 2, 1]>(x) s = MatMul(x, k) p = Softmax<axis = -1>(s) o = MatMul(p, x)"
            " a = Add(o, x) n = LayerNormalization<axis = -1>(a, g, b) m = MatMul(n, w) u = Add(m, c) y = Gelu(u)",
            weights(g=(8,), b=(8,), w=(8, 16), c=(16,)), (2, 4, 8)),
    }[name]  # fmt: skip
    header = f'<ir_version: 8, opset_import: ["" : 20]> g (float{list(shape)} x) => (float y)'
    proto = parser.parse_model(f"{header} {{ {text} }}")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    proto.graph.initializer.extend(constants)
    if name == "lstm":
        proto.graph.initializer.append(numpy_helper.from_array(np.int64([1]), "one"))
    return proto, RANDOM.normal(0, 1.5, shape).astype(np.float32)


def native(path: Path, feed: dict[str, Any], level: str = "ORT_DISABLE_ALL", saved: str = "") -> list[Any]:
    """onnxruntime's results with one thread, and the file that it saves."""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.optimized_model_filepath = saved
    return list(ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed))


def runnable(path: Path) -> None:
    """Skip what needs kernels of onnxruntime that the host does not use."""
    for node in onnx.load(path).graph.node:
        if node.domain == "com.microsoft" and not implemented(node.domain, node.op_type, 1):
            pytest.skip(f"the host has no {node.op_type}")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("weight", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("name", ["lstm", "mlp", "gemm", "conv", "embedding", "transformer"])
def test_dynamically_quantized_models_run(tmp_path: Path, name: str, weight: str, level: str) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    proto, x = network(name)
    onnx.save(proto, tmp_path / "float.onnx")
    quantize_dynamic(  # int8 weights of 7 bits: onnxruntime adds pairs of products in 16 bits without VNNI
        str(tmp_path / "float.onnx"), str(tmp_path / "int8.onnx"), weight_type=QuantType[weight],
        reduce_range=weight == "QInt8",
    )  # fmt: skip
    wanted = native(tmp_path / "int8.onnx", {"x": x}, level, str(tmp_path / "saved.onnx"))
    runnable(tmp_path / "saved.onnx")
    assert not read(tmp_path / "saved.onnx").refused
    given = InferenceSession(tmp_path / "saved.onnx").run(None, {"x": x})
    for one, other in zip(given, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


OPERATORS = [
    ("DynamicQuantizeLSTM", 12), ("DynamicQuantizeMatMul", 3), ("MatMulIntegerToFloat", 4), ("QAttention", 5),
    ("FusedMatMul", 2), ("SkipLayerNormalization", 3), ("EmbedLayerNormalization", 7), ("BiasGelu", 2), ("FastGelu", 1),
    ("QuickGelu", 1), ("Attention", 2), ("MatMulNBits", 3), ("QOrderedMatMul", 8),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "inputs"), OPERATORS, ids=[name for name, _ in OPERATORS])
def test_operators_without_a_schema_in_onnx_are_read(op_type: str, inputs: int) -> None:
    """Whatever onnx knows of them, reading ends with a placement: on the host, or refused by name."""
    names = [f"i{number}" for number in range(inputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["m"], "it", domain="com.microsoft"), helper.make_node("Relu", ["m"], ["y"])],
        "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4]) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    mixed = read(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert {row.node: row.where for row in mixed.placement}["it"] in ("host", "refused")


@pytest.mark.parametrize("per_channel", [False, True])
def test_the_hidden_state_of_a_batch_has_one_scale(per_channel: bool) -> None:
    """As in onnxruntime with one thread; with several, each row of the batch has its own."""
    import onnxruntime as ort

    random, hidden = np.random.default_rng(3), 4
    w, r = (random.integers(-127, 127, (1, n, 4 * hidden)).astype(np.int8) for n in (5, hidden))
    scale = random.uniform(0.005, 0.01, (1, 4 * hidden) if per_channel else 1).astype(np.float32)
    zero = np.zeros(scale.shape, np.int8)
    constants = {"w": w, "r": r, "ws": scale, "wz": zero, "rs": scale, "rz": zero}
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"], ["y"],
                            domain="com.microsoft", hidden_size=hidden)  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 3, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = random.normal(size=(6, 3, 5)).astype(np.float32)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    (wanted,) = ort.InferenceSession(proto.SerializeToString(), options).run(None, {"x": x})
    np.testing.assert_allclose(InferenceSession(proto).run(None, {"x": x})[0], wanted, atol=1e-6)
