"""Quantized operators on the host equal onnxruntime, and do not depend on how a value is spread over axes."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from onnxhw import fixed
from onnxhw.errors import UsageError
from onnxhw.hostops.evaluator import evaluate

Array = np.ndarray[Any, Any]
SEEDS = st.integers(0, 2**32 - 1)
TYPES = st.sampled_from(["int8", "uint8"])


def _model(op: str, arrays: dict[str, Array], domain: str = "", opset: int = 21, **attributes: Any) -> onnx.ModelProto:
    """One node; all operands but the first are initializers, as onnxruntime wants them."""
    names = list(arrays)
    outputs = {"DynamicQuantizeLinear": 3}.get(op, 1)
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    first = helper.make_tensor_value_info(
        names[0], helper.np_dtype_to_tensor_dtype(arrays[names[0]].dtype), arrays[names[0]].shape
    )
    constants = [numpy_helper.from_array(np.asarray(arrays[name]), name) for name in names[1:] if name]
    graph = helper.make_graph([node], op, [first], [onnx.ValueInfoProto(name=n) for n in node.output], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def _both(model: onnx.ModelProto, x: Array) -> list[tuple[Array, Array]]:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {model.graph.input[0].name: x}
    found, wanted = evaluate(model, feeds), session.run(None, feeds)
    return [(found[value.name], array) for value, array in zip(session.get_outputs(), wanted, strict=True)]


def _equal(model: onnx.ModelProto, x: Array) -> None:
    for found, wanted in _both(model, x):
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def _ints(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def _weights(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    """Half the range: without VNNI, onnxruntime adds pairs of uint8 x int8 products in 16 bits, and those saturate."""
    return rng.integers(-64, 64, shape).astype(np.int8) if dtype == "int8" else _ints(rng, dtype, *shape)


def _scale(rng: np.random.Generator, *shape: int) -> Array:
    """Random scales and powers of two, where ties happen."""
    powers = 2.0 ** rng.integers(-7, -2, shape)
    return np.asarray(np.where(rng.random(shape) < 0.5, powers, rng.uniform(0.005, 0.2, shape)), np.float32)


@settings(max_examples=60, deadline=None)
@given(SEEDS, TYPES, st.booleans())
def test_qlinear_conv_equals_onnxruntime(seed: int, x_type: str, per_channel: bool) -> None:
    rng = np.random.default_rng(seed)
    group = int(rng.choice([1, 2]))
    weights = (6,) if per_channel else ()
    arrays = {
        "x": _ints(rng, x_type, 2, 4, 7, 6), "xs": _scale(rng), "xz": _ints(rng, x_type),
        "w": _weights(rng, "int8", 6, 4 // group, 3, 2), "ws": _scale(rng, *weights), "wz": np.zeros(weights, np.int8),
        "ys": _scale(rng), "yz": _ints(rng, x_type), "b": rng.integers(-(2**14), 2**14, 6).astype(np.int32),
    }  # fmt: skip
    attributes = {"group": group, "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}
    _equal(_model("QLinearConv", arrays, **attributes), arrays["x"])


@settings(max_examples=60, deadline=None)
@given(SEEDS, TYPES)
def test_qlinear_matmul_equals_onnxruntime(seed: int, x_type: str) -> None:
    rng = np.random.default_rng(seed)
    arrays = {
        "a": _ints(rng, x_type, 2, 5, 8), "as": _scale(rng), "az": _ints(rng, x_type),
        "b": _weights(rng, "int8", 8, 4), "bs": _scale(rng, 4), "bz": np.zeros(4, np.int8),
        "ys": _scale(rng), "yz": _ints(rng, x_type),
    }  # fmt: skip
    _equal(_model("QLinearMatMul", arrays), arrays["a"])


@settings(max_examples=40, deadline=None)
@given(SEEDS, TYPES, TYPES)
def test_integer_products_equal_onnxruntime(seed: int, x_type: str, w_type: str) -> None:
    rng = np.random.default_rng(seed)
    x = _ints(rng, x_type, 2, 5, 8)
    product = {"a": x, "b": _weights(rng, w_type, 8, 4), "az": _ints(rng, x_type), "bz": _ints(rng, w_type, 4)}
    _equal(_model("MatMulInteger", product), x)
    image = _ints(rng, "uint8", 1, 4, 6, 5)
    conv = {"x": image, "w": _ints(rng, "uint8", 6, 2, 3, 2), "xz": _ints(rng, "uint8"), "wz": _ints(rng, "uint8")}
    _equal(_model("ConvInteger", conv, group=2, pads=[1, 0, 1, 1]), image)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["int8", "uint8", "int16", "uint16"]), st.sampled_from(["tensor", "axis", "block"]))
def test_quantize_and_dequantize_equal_onnxruntime(seed: int, dtype: str, granularity: str) -> None:
    rng = np.random.default_rng(seed)
    shape = {"tensor": (), "axis": (6,), "block": (3, 2, 4)}[granularity]
    attributes = {"tensor": {}, "axis": {"axis": 1}, "block": {"axis": 1, "block_size": 3}}[granularity]
    scale, zero_point = _scale(rng, *shape), _ints(rng, dtype, *shape)
    steps = rng.integers(-300, 300, (3, 6, 4)) / 2  # ties, and beyond the range
    whole = scale if granularity != "block" else np.repeat(scale, 3, 1)
    whole = whole.reshape(1, 6, 1) if granularity == "axis" else whole
    x = (steps * whole).astype(np.float32)
    _equal(_model("QuantizeLinear", {"x": x, "s": scale, "z": zero_point}, **attributes), x)
    q = _ints(rng, dtype, 3, 6, 4)
    _equal(_model("DequantizeLinear", {"x": q, "s": scale, "z": zero_point}, **attributes), q)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_quantize_is_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale, zero_point = _scale(rng), _ints(rng, "int8")
    x = np.concatenate([rng.normal(size=50) * 10, [np.inf, -np.inf, 3e38, 0.0]]).astype(np.float32)
    model = _model("QuantizeLinear", {"x": x, "s": scale, "z": zero_point})
    assert np.array_equal(evaluate(model, {"x": x})["y0"], fixed.quantize(x, np.float32(scale), int(zero_point)))


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_dynamic_quantize_linear_equals_onnxruntime(seed: int) -> None:
    x = np.random.default_rng(seed).normal(1, 3, (4, 5)).astype(np.float32)
    _equal(_model("DynamicQuantizeLinear", {"x": x}), x)


@settings(max_examples=40, deadline=None)
@given(SEEDS, TYPES)
def test_qgemm_and_tables_equal_onnxruntime(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    a, out = _ints(rng, dtype, 3, 8), {"ys": _scale(rng), "yz": _ints(rng, dtype)}
    gemm = {
        "a": a, "as": _scale(rng), "az": _ints(rng, dtype), "b": _weights(rng, "int8", 5, 8), "bs": _scale(rng, 5),
        "bz": np.zeros(5, np.int8), "c": rng.integers(-1000, 1000, 5).astype(np.int32),
    }  # fmt: skip
    _equal(_model("QGemm", gemm | out, "com.microsoft", transB=1), a)
    _equal(_model("QGemm", gemm, "com.microsoft", transB=1), a)
    x = {"x": np.arange(256).astype(np.uint8).view(dtype), "xs": _scale(rng), "xz": _ints(rng, dtype)}
    _equal(_model("QLinearLeakyRelu", x | out, "com.microsoft", alpha=0.1), x["x"])


@settings(max_examples=60, deadline=None)
@given(SEEDS, TYPES, st.sampled_from(["QLinearAdd", "QLinearMul", "QLinearAveragePool", "QLinearGlobalAveragePool"]))
def test_rounded_once_is_within_one_of_onnxruntime(seed: int, dtype: str, op: str) -> None:
    """The host rounds the exact value once, as the hardware does; onnxruntime rounds in float32 steps."""
    rng = np.random.default_rng(seed)
    x = _ints(rng, dtype, 1, 3, 6, 6)
    arrays = {"x": x, "xs": _scale(rng), "xz": _ints(rng, dtype)}
    if op in ("QLinearAdd", "QLinearMul"):
        arrays |= {"b": _ints(rng, dtype, 3, 6, 6), "bs": _scale(rng), "bz": _ints(rng, dtype)}
    arrays |= {"ys": _scale(rng), "yz": _ints(rng, dtype)}
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]} if op == "QLinearAveragePool" else {}
    ((found, wanted),) = _both(_model(op, arrays, "com.microsoft", **attributes), x)
    assert found.dtype == wanted.dtype
    assert np.abs(found.astype(int) - wanted).max() <= 1


def test_a_nan_is_refused() -> None:
    model = _model("QuantizeLinear", {"x": np.zeros(2, np.float32), "s": np.float32(1), "z": np.int8(0)})
    with pytest.raises(UsageError) as caught:
        evaluate(model, {"x": np.array([0, np.nan], np.float32)})
    assert caught.value.code == "E2702"


@settings(max_examples=60, deadline=None)
@given(SEEDS, TYPES)
def test_qlinear_where_equals_onnxruntime(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    arrays = {
        "x": _ints(rng, dtype, 3, 1), "xs": _scale(rng), "xz": _ints(rng, dtype), "y": _ints(rng, dtype, 4),
        "ys": _scale(rng), "yz": _ints(rng, dtype), "zs": _scale(rng), "zz": _ints(rng, dtype),
    }  # fmt: skip
    condition = rng.integers(0, 2, (2, 3, 4)).astype(bool)
    _equal(_model("QLinearWhere", {"c": condition, **arrays}, "com.microsoft"), condition)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([(4, ""), (4, "packed"), (4, "real"), (8, ""), (8, "packed"), (2, "")]), st.booleans())
def test_matmul_of_few_bits_is_onnxruntimes(seed: int, form: tuple[int, str], bias: bool) -> None:
    """Float32 sums in another order; the last block of a row is a part of one."""
    rng = np.random.default_rng(seed)
    size, columns, block = 40, 5, 16
    bits, zeros = form
    blocks = -(-size // block)
    packed = -(-blocks * bits // 8)
    points = {"": None, "packed": rng.integers(0, 256, columns * packed).astype(np.uint8),
              "real": rng.normal(8, 2, (columns, blocks)).astype(np.float32)}[zeros]  # fmt: skip
    arrays = {
        "a": rng.normal(size=(3, size)).astype(np.float32),
        "b": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "s": rng.uniform(0.01, 0.1, columns * blocks).astype(np.float32),
    }
    if points is not None:
        arrays["z"] = points
    attributes = {"K": size, "N": columns, "bits": bits, "block_size": block}
    model = _model("MatMulNBits", arrays, "com.microsoft", **attributes)
    if bias:
        model.graph.node[0].input.extend([""] * (5 - len(model.graph.node[0].input)) + ["bias"])
        model.graph.initializer.append(numpy_helper.from_array(rng.normal(size=columns).astype(np.float32), "bias"))
    for found, wanted in _both(model, arrays["a"]):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_integer_operators_without_a_kernel_in_onnxruntime() -> None:
    """Products and sums of integers, and a mean that is rounded once."""
    a, b = np.array([[200, 3]], np.uint8), np.array([[1], [255]], np.uint8)
    product = evaluate(_model("MulInteger", {"a": a, "za": np.uint8(100), "b": b}, "com.microsoft"), {"a": a})["y0"]
    assert (product.dtype, product.tolist()) == (np.int32, [[100, -97], [25500, -24735]])
    for dtype, kind in ((np.uint8, np.uint32), (np.int8, np.int32)):
        x = np.array([[100, 120], [127, 1]], dtype)
        total = evaluate(_model("ReduceSumInteger", {"x": x}, "com.microsoft", axes=[-1], keepdims=0), {"x": x})["y0"]
        assert (total.dtype, total.tolist()) == (kind, [220, 128])
    x = np.array([[10, 11, 14], [0, 255, 3]], np.uint8)
    arrays = {"x": x, "sx": np.float32(0.5), "zx": np.uint8(10), "sy": np.float32(0.25), "zy": np.uint8(7)}
    mean = evaluate(_model("QLinearReduceMean", arrays, "com.microsoft", axes=[1], keepdims=1), {"x": x})["y0"]
    assert (mean.dtype, mean.tolist()) == (np.uint8, [[10], [159]])


@pytest.mark.parametrize("zero", [4, 7])
def test_average_pools_differ_from_onnxruntime_where_the_average_is_halfway(zero: int) -> None:
    """onnxruntime adds the zero point before it rounds half to even, so that an odd one sends halves the other way."""
    x = np.random.default_rng(1).integers(0, 256, (1, 4, 8, 8)).astype(np.uint8)
    point = np.uint8(zero)
    arrays = {"x": x, "s": np.float32(0.25), "z": point, "t": np.float32(0.25), "o": point}
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    ((found, wanted),) = _both(_model("QLinearAveragePool", arrays, "com.microsoft", kernel_shape=[2, 2]), x)
    sums = sum(x[:, :, i : i + 7, j : j + 7].astype(int) for i in (0, 1) for j in (0, 1))
    halves = sums % 4 == 2  # of equal scales and zero points the result is a quarter of the sum
    assert np.array_equal(found[~halves], wanted[~halves])
    assert halves.any()
    rounded = np.rint(sums / 4 - zero) + zero
    assert np.array_equal(found, rounded)
    assert (found != wanted).any() == bool(zero % 2)
