"""Single quantized nodes of random kind, shape, scales and zero points: golden equals onnxruntime in every element.

Add, Mul and average pooling are defined by exact rationals: `bench/operators.py` measures how often they differ.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw.runtime.session import InferenceSession

MICROSOFT = "com.microsoft"
F = np.float32
RANDOM = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from([np.int8, np.uint8])
PAIRS = st.sampled_from([(np.int8, np.int8), (np.uint8, np.uint8), (np.uint8, np.int8)])
"""Activations and weights: onnxruntime has no kernel for int8 by uint8."""
Array = npt.NDArray[Any]


def integers(rng: Any, kind: Any, *shape: int) -> Array:
    """Integers of a type; one in four is at an end of its range."""
    info = np.iinfo(kind)
    inner = rng.integers(info.min, info.max + 1, shape)
    return np.where(rng.random(shape) < 0.25, rng.choice([info.min, info.max], shape), inner).astype(kind)


def scale(rng: Any, around: float = 0.05) -> np.float32:
    """A power of two, which makes ties, or any float32 near a size."""
    if rng.random() < 0.5:
        return np.float32(2.0 ** np.rint(np.log2(around * rng.uniform(0.5, 2))))
    return np.float32(around * rng.uniform(0.5, 2))


def zero(rng: Any, kind: Any) -> Array:
    return np.asarray(integers(rng, kind, 1)[0])


@RANDOM
@given(SEEDS, PAIRS, st.sampled_from([1, 2, 4]), st.booleans(), st.booleans(), st.booleans())
def test_qlinear_conv(
    nodes: Any, seed: int, kinds: tuple[Any, Any], groups: int, per_channel: bool, bias: bool, ms: bool
) -> None:
    rng, (kind, weight_kind) = np.random.default_rng(seed), kinds
    inputs, outputs = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    kernel = [int(k) for k in rng.integers(1, 4, 2)]
    w = integers(rng, weight_kind, outputs, inputs // groups, *kernel)
    count = outputs if per_channel else 1
    ws = np.array([scale(rng, 0.01) for _ in range(count)], np.float32).reshape([count] if per_channel else [])
    # onnxruntime takes one zero point for all output channels
    wz = np.full(ws.shape, zero(rng, weight_kind), weight_kind)
    xs, ys = scale(rng), scale(rng, 0.05 * np.sqrt(w[0].size) / 2)
    operands = ["x", xs, zero(rng, kind), w, ws, wz, ys, zero(rng, kind)]
    if bias:
        operands.append(rng.integers(-20000, 20000, outputs).astype(np.int32))
    model = nodes()
    model.input("x", kind, [1, inputs, 6, 5])
    y = model.node(
        "QLinearConv",
        *operands,
        group=groups,
        strides=[int(s) for s in rng.integers(1, 3, 2)],
        pads=[int(p) for p in rng.integers(0, 2, 4)],
        **({"domain": MICROSOFT, "channels_last": 0} if ms and kinds != (np.uint8, np.int8) else {}),
    )
    model.output(y, kind).check({"x": integers(rng, kind, 1, inputs, 6, 5)}, kinds == (np.uint8, np.int8))


@RANDOM
@given(SEEDS, PAIRS, st.booleans())
def test_qlinear_matmul(nodes: Any, seed: int, kinds: tuple[Any, Any], per_column: bool) -> None:
    rng, (kind, weight_kind) = np.random.default_rng(seed), kinds
    depth, outputs = int(rng.integers(1, 40)), int(rng.integers(1, 12))
    ws = np.array([scale(rng, 0.01) for _ in range(outputs)], np.float32) if per_column else scale(rng, 0.01)
    wz = integers(rng, weight_kind, outputs) if per_column else zero(rng, weight_kind)
    w = integers(rng, weight_kind, depth, outputs)
    model = nodes()
    model.input("x", kind, [1, depth])
    ys = scale(rng, 0.03 * np.sqrt(depth))
    y = model.node("QLinearMatMul", "x", scale(rng), zero(rng, kind), w, ws, wz, ys, zero(rng, kind))
    model.output(y, kind).check({"x": integers(rng, kind, 1, depth)}, kinds == (np.uint8, np.int8))


@RANDOM
@given(SEEDS, KINDS, st.booleans(), st.booleans(), st.sampled_from(["", "left", "right"]))
def test_qlinear_matmul_of_activations(
    nodes: Any, seed: int, kind: Any, turn_a: bool, turn_b: bool, repeated: str
) -> None:
    """Of one type: sums of uint8 by int8 saturate in onnxruntime, and `precise` is for constant int8 alone."""
    rng = np.random.default_rng(seed)
    m, k, n, heads = (int(size) for size in rng.integers(1, [9, 257, 9, 5]))
    model, operands, feeds = nodes(), [], {}
    for name, size, turned in (("left", (m, k), turn_a), ("right", (k, n), turn_b)):
        shape = [1, 1 if name == repeated else heads, *size[:: -1 if turned else 1]]
        x = model.input(name, kind, shape)
        feeds[name] = integers(rng, kind, *shape)
        x = model.node("Transpose", x, perm=[0, 1, 3, 2]) if turned else x
        operands += [x, scale(rng), zero(rng, kind)]
    y = model.node("QLinearMatMul", *operands, scale(rng, 3 * np.sqrt(k)), zero(rng, kind))
    model.output(y, kind).check(feeds)
    copies = {"Conv"} if repeated else set()
    assert {type(op).__name__ for op in model.load().ops} <= {"MatMul", "Reshape"} | copies


@RANDOM
@given(SEEDS, PAIRS, st.booleans(), st.booleans(), st.booleans())
def test_qgemm(nodes: Any, seed: int, kinds: tuple[Any, Any], per_column: bool, transposed: bool, bias: bool) -> None:
    rng, (kind, weight_kind) = np.random.default_rng(seed), kinds
    depth, outputs = int(rng.integers(1, 40)), int(rng.integers(1, 12))
    ws = np.array([scale(rng, 0.01) for _ in range(outputs)], np.float32) if per_column else scale(rng, 0.01)
    wz = np.full(np.shape(ws), zero(rng, weight_kind), weight_kind)
    w = integers(rng, weight_kind, *((outputs, depth) if transposed else (depth, outputs)))
    c = rng.integers(-20000, 20000, outputs).astype(np.int32) if bias else None
    model = nodes()
    model.input("x", kind, [1, depth])
    ys = scale(rng, 0.03 * np.sqrt(depth))
    operands = ["x", scale(rng), zero(rng, kind), w, ws, wz, c, ys, zero(rng, kind)]
    y = model.node("QGemm", *operands, domain=MICROSOFT, transB=int(transposed))
    model.output(y, kind).check({"x": integers(rng, kind, 1, depth)}, kinds == (np.uint8, np.int8))


@RANDOM
@given(SEEDS, KINDS, st.sampled_from(["QLinearSigmoid", "QLinearLeakyRelu"]))
def test_tables(nodes: Any, seed: int, kind: Any, op_type: str) -> None:
    rng = np.random.default_rng(seed)
    more = {"alpha": float(np.float32(rng.uniform(0.01, 0.5)))} if op_type == "QLinearLeakyRelu" else {}
    model = nodes()
    model.input("x", kind, [1, 256])
    y = model.node(
        op_type, "x", scale(rng), zero(rng, kind), scale(rng, 0.01), zero(rng, kind), domain=MICROSOFT, **more
    )
    info = np.iinfo(kind)
    model.output(y, kind).check({"x": np.arange(info.min, info.max + 1).astype(kind)[None]})


@RANDOM
@given(SEEDS, KINDS, st.booleans(), st.sampled_from([10, 13, 19, 21, 23, 25]))
def test_quantize_and_dequantize(nodes: Any, seed: int, kind: Any, microsoft: bool, opset: int) -> None:
    """Around a MaxPool of one element, which the hardware holds."""
    rng = np.random.default_rng(seed)
    domain = MICROSOFT if microsoft else ""
    s, z = scale(rng), zero(rng, kind)
    model = nodes(opset)
    model.input("x", np.float32, [1, 3, 8, 8])
    q = model.node("QuantizeLinear", "x", s, z, domain=domain)
    p = model.node("MaxPool", q, kernel_shape=[1, 1]) if opset >= 12 else q
    y = model.node("DequantizeLinear", p, s, z, domain=domain)
    q2 = model.node("QuantizeLinear", y, scale(rng), zero(rng, kind), domain=domain)
    steps = rng.integers(-300, 300, (1, 3, 8, 8)) + rng.choice([0, 0.5, 0.499, 0.501], (1, 3, 8, 8))
    x = (steps * s).astype(np.float32)
    x.ravel()[:4] = [np.inf, -np.inf, 3e38, -3e38]
    model.output(q2, kind).check({"x": x})


@RANDOM
@given(SEEDS, KINDS, st.integers(1, 3))
def test_qlinear_concat(nodes: Any, seed: int, kind: Any, count: int) -> None:
    rng = np.random.default_rng(seed)
    model, feeds, parts = nodes(), {}, []
    for index in range(count):
        channels = int(rng.integers(1, 6))
        name = model.input(f"x{index}", kind, [1, channels, 4, 5])
        feeds[name] = integers(rng, kind, 1, channels, 4, 5)
        parts += [name, scale(rng), zero(rng, kind)]
    y = model.node("QLinearConcat", scale(rng), zero(rng, kind), *parts, domain=MICROSOFT, axis=1)
    model.output(y, kind).check(feeds)


@RANDOM
@given(SEEDS, KINDS, st.sampled_from([11, 13]))
def test_qlinear_softmax_behind_a_gemm_runs_on_the_host(nodes: Any, seed: int, kind: Any, opset: int) -> None:
    rng = np.random.default_rng(seed)
    model = nodes()
    model.input("x", kind, [1, 6])
    s, z = scale(rng, 0.1), zero(rng, kind)
    w = integers(rng, kind, 6, 9)
    y = model.node("QLinearMatMul", "x", scale(rng), zero(rng, kind), w, scale(rng, 0.01), zero(rng, kind), s, z)
    low = np.array(np.iinfo(kind).min, kind)
    y = model.node("QLinearSoftmax", y, s, z, np.float32(1 / 256), low, domain=MICROSOFT, axis=-1, opset=opset)
    model.output(y, kind).check({"x": integers(rng, kind, 1, 6)})


@RANDOM
@given(SEEDS, KINDS)
def test_global_average_of_random_scales(nodes: Any, seed: int, kind: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = [1, *(int(n) for n in rng.integers(1, 9, 3))]
    model = nodes()
    model.input("x", kind, shape)
    grids = [F(0.05 * rng.uniform(0.5, 2)), zero(rng, kind), F(0.03 * rng.uniform(0.5, 2)), zero(rng, kind)]
    y = model.node("QLinearGlobalAveragePool", "x", *grids, domain=MICROSOFT, channels_last=0)
    model.output(y, kind).check({"x": integers(rng, kind, *shape)})


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul", "QLinearAveragePool"])
def test_add_mul_and_average_differ_by_one_step_at_most(nodes: Any, op_type: str) -> None:
    """The definition is exact and onnxruntime's is float32: `docs/dialects.md` has the rates, all differences are 1."""
    rng = np.random.default_rng(4)
    differ = elements = 0
    for _ in range(20):
        model, kind = nodes(), np.int8
        a = model.input("a", kind, [1, 8, 8, 8])
        feeds = {"a": integers(rng, kind, 1, 8, 8, 8)}
        if op_type == "QLinearAveragePool":
            more: dict[str, Any] = {"kernel_shape": [2, 2]}
            operands = [a, scale(rng), zero(rng, kind), scale(rng), zero(rng, kind)]
        else:
            feeds["b"] = integers(rng, kind, 1, 8, 8, 8)
            b, more = model.input("b", kind, [1, 8, 8, 8]), {}
            operands = [a, scale(rng), zero(rng, kind), b, scale(rng), zero(rng, kind), scale(rng), zero(rng, kind)]
        model.output(model.node(op_type, *operands, domain=MICROSOFT, **more), kind)
        (ours,), (theirs,) = model.golden(feeds), model.onnxruntime(feeds)
        distance = np.abs(ours.astype(int) - theirs)
        assert distance.max() <= 1
        differ, elements = differ + int(distance.sum()), elements + distance.size
    assert differ < elements * 0.15


@RANDOM
@given(SEEDS, PAIRS, st.booleans())
def test_integer_sums_run_on_the_host(nodes: Any, seed: int, kinds: tuple[Any, Any], matrix: bool) -> None:
    """ConvInteger and MatMulInteger behind a hardware operation: 32-bit sums never leave the accelerator."""
    rng, (kind, weight_kind) = np.random.default_rng(seed), kinds
    if not matrix:
        kind = np.uint8  # onnxruntime has no other ConvInteger
    small = 64 if weight_kind == np.int8 else 127  # onnxruntime's 16-bit sums saturate without VNNI
    s, z, shape = scale(rng), zero(rng, kind), [1, 32] if matrix else [1, 2, 5, 5]
    model = nodes()
    model.input("x", np.float32, shape)
    real = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", s, z), s, z)
    q = model.node("QuantizeLinear", model.node("Tanh", real), np.float32(2**-7), z)
    w = rng.integers(0 if weight_kind == np.uint8 else -small, small, (32, 3) if matrix else (3, 2, 2, 2))
    operands = [q, w.astype(weight_kind), zero(rng, kind), np.zeros((), weight_kind)]
    y = model.node("MatMulInteger", *operands) if matrix else model.node("ConvInteger", *operands, pads=[1, 0, 1, 1])
    model.output(y, np.int32)
    feeds = {"x": (rng.normal(0, 40, shape) * s).astype(np.float32)}
    session = InferenceSession(model.proto().SerializeToString())
    assert [type(part).__name__ for part in session.model.parts] == ["HardwarePart", "HostPart"]
    for ours, theirs in zip(session.run(None, feeds), model.onnxruntime(feeds), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_zero_point_left_out_means_uint8(nodes: Any) -> None:
    model = nodes()
    model.input("x", np.float32, [1, 2, 3, 3])
    q = model.node("QuantizeLinear", "x", np.float32(0.5))
    model.output(model.node("MaxPool", q, kernel_shape=[1, 1]), np.uint8)
    model.check({"x": np.linspace(-9, 150, 18, dtype=np.float32).reshape(1, 2, 3, 3)})
