"""QuantizeLinear and DequantizeLinear in all their forms: what becomes of weights and activations."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto

from onnxhw import emu, golden, sched
from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.operators.affine_sum import split
from onnxhw.errors import InvalidModelError
from onnxhw.hostops.evaluator import evaluate
from onnxhw.ir.graph import Conv, Table
from onnxhw.partition import read
from onnxhw.presets import preset
from onnxhw.runtime.session import InferenceSession

RNG = np.random.default_rng(5)
F = np.float32
S, T = F(0.125), F(0.5)


def matmul(nodes: Any, opset: int, *weights: Any, **more: Any) -> Any:
    """A quantized input of 8 values through MatMul with dequantized weights ``[8, 4]``."""
    model = nodes(opset)
    model.input("x", np.float32, [1, 8])
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", S, np.int8(3)), S, np.int8(3))
    w = model.node("DequantizeLinear", *weights, **more)
    y = model.node("QuantizeLinear", model.node("MatMul", x, w), T, np.int8(-5))
    return model.output(y, np.int8)


def feeds() -> dict[str, npt.NDArray[np.float32]]:
    return {"x": (RNG.integers(-140, 140, (1, 8)) / 8).astype(np.float32)}


NARROW = [("int4", 21), ("uint4", 21), ("int2", 25), ("uint2", 25), ("int16", 21), ("uint16", 21), ("int8", 10)]


@pytest.mark.parametrize(("kind", "opset"), NARROW)
def test_weights_of_any_integer_type(nodes: Any, kind: str, opset: int) -> None:
    info = ml_dtypes.iinfo(kind)
    low, high = max(int(info.min), -90), min(int(info.max), 90)
    q = RNG.integers(low, high + 1, (8, 4))
    zero = 1 if kind.startswith("u") else 0
    w = q.astype(np.dtype(kind))
    model = matmul(nodes, opset, w, np.float32(2**-6), np.array(zero).astype(np.dtype(kind)))
    (op,) = model.load().ops
    assert isinstance(op, Conv)
    np.testing.assert_array_equal(op.weight[:, :, 0, 0], (q - zero).T)


@pytest.mark.parametrize("zero", [0, 1, 100, 128, 200])
def test_uint8_weights_with_any_zero_point(nodes: Any, zero: int) -> None:
    w = RNG.integers(0, 256, (8, 4)).astype(np.uint8)
    w[0], w[1] = 0, 255
    model = matmul(nodes, 13, w, np.float32(2**-8), np.uint8(zero))
    ops = model.load().ops
    assert len(ops) == (1 if zero == 128 else 2)
    for _ in range(5):
        model.check(feeds())
    mixed = read(model.proto())
    noted = [found.what for found in mixed.diagnostics if found.code == "W3404"]
    reasons = [row.reason for row in mixed.placement if "int8" in row.reason]
    assert noted == reasons
    parts = {1: "", 2: "in 2 parts", 3: "in 3 parts"}[len(split(np.arange(256).astype(np.int64) - zero))]
    assert parts in "".join(noted)
    assert bool(noted) == (zero != 128)


def test_weights_beyond_three_int8_stay_on_the_host(nodes: Any) -> None:
    w = np.full((8, 4), 400, np.int16)
    with pytest.raises(UnsupportedNodesError, match=r"leave -384..381"):
        matmul(nodes, 21, w, np.float32(2**-8), np.int16(0)).load()


@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_whose_scales_are_multiples(nodes: Any, axis: int) -> None:
    q = RNG.integers(-8, 8, (8, 4))
    shape = (4, 4) if axis == 0 else (8, 2)
    scale = (2.0 ** RNG.integers(-6, -3, shape)).astype(np.float32)
    spread = np.repeat(scale, 2, axis=axis)
    w, zero = q.astype(ml_dtypes.int4), np.ones(shape, ml_dtypes.int4)
    model = matmul(nodes, 21, w, scale, zero, axis=axis, block_size=2)
    if axis:
        spread = spread[:, :4]
    (op,) = model.load().ops
    combined = (op.weight[:, :, 0, 0].astype(float) * (op.multiplier[:, None] * T / S)).T
    np.testing.assert_array_equal(combined, (q - 1) * spread)


def test_a_last_block_may_be_short(nodes: Any) -> None:
    q = RNG.integers(-20, 20, (8, 4)).astype(np.int8)
    scale = np.array([[1], [2], [4]], np.float32) * np.ones((3, 4), np.float32) / 64
    model = matmul(nodes, 21, q, scale, np.zeros((3, 4), np.int8), axis=0, block_size=3)
    factor = np.array([1, 1, 1, 2, 2, 2, 4, 4])[:, None]
    np.testing.assert_array_equal(model.load().ops[0].weight[:, :, 0, 0], (q * factor).T)


def test_blocks_that_are_no_multiples_stay_on_the_host(nodes: Any) -> None:
    scale = np.array([[0.1], [0.17], [0.19], [0.23]], np.float32) * np.array([1, 1.1, 0.93, 1.37], np.float32)
    model = matmul(nodes, 21, np.ones((8, 4), np.int8), scale, axis=0, block_size=2)
    with pytest.raises(UnsupportedNodesError, match="not integer multiples"):
        model.load()


def test_blocks_with_scales_of_another_shape(nodes: Any) -> None:
    model = matmul(nodes, 21, np.ones((8, 4), np.int8), np.ones((3, 4), np.float32), axis=0, block_size=2)
    with pytest.raises(InvalidModelError, match=r"E3(600|\d\d\d)"):
        model.load()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("exact", [True, False])
def test_short_float_scales_only_where_the_arithmetic_is_float32(nodes: Any, kind: str, exact: bool) -> None:
    """`output_dtype` FLOAT says that the multiplication is done in float32."""
    scale = np.array(2**-6).astype(np.dtype(kind))
    model = matmul(nodes, 23, np.ones((8, 4), np.int8), scale, **({"output_dtype": TensorProto.FLOAT} if exact else {}))
    if not exact:
        model.nodes.insert(3, model.nodes.pop())  # keep the order; the cast below makes the types agree
        return
    assert isinstance(model.load().ops[0], Conv)


def test_division_in_float16_stays_on_the_host(nodes: Any) -> None:
    for precision, fits in ((TensorProto.FLOAT, True), (TensorProto.FLOAT16, False), (None, False)):
        model = nodes(23)
        model.input("x", np.float32, [1, 8])
        scale = np.float16(0.1) if fits or precision is None else np.float32(0.1)
        more = {} if precision is None else {"precision": precision}
        q = model.node("QuantizeLinear", "x", scale, np.int8(0), **more)
        y = model.node("DequantizeLinear", q, np.float32(np.float16(0.1)), np.int8(0))
        z = model.node("QuantizeLinear", model.node("Relu", y), S, np.int8(0))
        model.output(z, np.int8)
        if fits:
            assert isinstance(model.load().ops[0], Table)
            continue
        with pytest.raises(UnsupportedNodesError, match="divides in another type"):
            model.load()


@pytest.mark.parametrize("op_type", ["Clip", "Relu"])
@pytest.mark.parametrize("first", ["input", "conv", "table"])
def test_clip_on_the_integers_narrows_the_clamp(nodes: Any, op_type: str, first: str) -> None:
    """Q -> Clip -> DQ is how Brevitas writes fewer than 8 bits."""
    model = nodes(17)
    model.input("x", np.float32, [1, 2, 4, 4])
    x = model.node("QuantizeLinear", "x", S, np.int8(0))
    if first != "input":
        x = model.node("DequantizeLinear", x, S, np.int8(0))
        w = model.node("DequantizeLinear", np.full((2, 2, 1, 1), 3, np.int8), S, np.int8(0))
        y = model.node("Conv", x, w) if first == "conv" else model.node("Tanh", x)
        x = model.node("QuantizeLinear", y, np.float32(2**-5), np.int8(0))
    c = model.node("Clip", x, np.int8(-8), np.int8(7)) if op_type == "Clip" else model.node("Relu", x)
    y = model.node("MaxPool", c, kernel_shape=[2, 2])
    model.output(y, np.int8)
    wide = np.linspace(-17, 17, 32, dtype=np.float32).reshape(1, 2, 4, 4)
    model.check({"x": wide})
    graph = model.load()
    assert len(graph.inputs) == 1
    assert len(graph.ops) == {"input": 1, "conv": 2, "table": 3}[first]
    if first == "conv":
        assert (graph.ops[0].lo, graph.ops[0].hi) == ((-8, 7) if op_type == "Clip" else (0, 127))


def test_a_value_from_before_the_clip_keeps_its_range(nodes: Any) -> None:
    model = nodes(17)
    model.input("x", np.float32, [1, 2, 4, 4])
    x = model.node("QuantizeLinear", "x", S, np.uint8(100))
    c = model.node("Clip", x, np.uint8(90), np.uint8(120))
    for value in (x, c):
        model.output(model.node("MaxPool", value, kernel_shape=[1, 1]), np.uint8)
    model.check({"x": np.linspace(-17, 17, 32, dtype=np.float32).reshape(1, 2, 4, 4)})


def test_clipped_constant_weights_are_folded(nodes: Any) -> None:
    model = nodes(17)
    model.input("x", np.float32, [1, 8])
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", S, np.int8(0)), S, np.int8(0))
    w = RNG.integers(-100, 100, (8, 4)) / np.float32(16)
    q = model.node("QuantizeLinear", w.astype(np.float32), np.float32(1 / 16), np.int8(0))
    q = model.node("Clip", q, np.int8(-7), np.int8(7))
    y = model.node("MatMul", x, model.node("DequantizeLinear", q, np.float32(1 / 16), np.int8(0)))
    model.output(model.node("QuantizeLinear", y, T, np.int8(0)), np.int8)
    assert np.abs(model.load().ops[0].weight).max() == 7
    model.check(feeds())


def test_four_bit_activations_saturate_at_their_own_range(nodes: Any) -> None:
    model = nodes(21)
    model.input("x", np.float32, [1, 8])
    zero = np.array(5).astype(ml_dtypes.uint4)
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", S, zero), S, zero)
    y = model.node("MatMul", x, model.node("DequantizeLinear", np.eye(8, dtype=np.int8), np.float32(1), np.int8(0)))
    model.output(model.node("QuantizeLinear", y, S, np.int8(0)), np.int8)
    (got,) = model.golden({"x": np.array([[-9, -0.6, -0.5, 0, 0.125, 1.2, 1.25, 9]], np.float32)})
    assert got.tolist() == [[-5, -5, -4, 0, 1, 10, 10, 10]]


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2"])
def test_integers_of_few_bits_leave_with_their_own_type(nodes: Any, kind: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind))
    model = nodes(25)
    model.input("x", np.float32, [1, 64])
    real = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", S, np.int8(0)), S, np.int8(0))
    zero = np.array(1).astype(dtype)
    model.output(model.node("QuantizeLinear", model.node("Neg", real), np.float32(0.3), zero), dtype)
    feeds = {"x": np.linspace(-3, 3, 64, dtype=np.float32)[None]}
    (ours,), (wanted,) = model.golden(feeds), evaluate(model.proto(), feeds).values()
    assert ours.dtype == wanted.dtype == dtype
    np.testing.assert_array_equal(ours.astype(int), wanted.astype(int))


@pytest.mark.parametrize(("groups", "zero"), [(1, 0), (1, 100), (6, 100), (3, 0)])
def test_weights_in_parts_reach_the_emulator(nodes: Any, groups: int, zero: int) -> None:
    w = RNG.integers(0, 256, (6, 6 // groups, 3, 2)).astype(np.uint8)
    w.ravel()[:2] = [0, 255]
    model = nodes(13)
    model.input("x", np.uint8, [1, 6, 5, 4])
    grids = [S, np.uint8(111), w, np.float32(2**-8), np.uint8(zero), np.float32(2), np.uint8(7)]
    y = model.node("QLinearConv", "x", *grids, group=groups, pads=[1, 0, 0, 1])
    feeds = {"x": RNG.integers(0, 256, (1, 6, 5, 4)).astype(np.uint8)}
    model.output(y, np.uint8).check(feeds)
    graph = model.load()
    inputs = golden.host.prepare(graph, feeds)
    outputs = emu.run(sched.schedule(graph, preset("mini")), inputs).outputs
    (port,) = graph.outputs
    np.testing.assert_array_equal(outputs[port.tensor], golden.run(graph, inputs)[port.tensor])


def test_float8_is_not_taken_for_an_integer(nodes: Any) -> None:
    w = np.ones((8, 4), ml_dtypes.float8_e4m3fn)
    with pytest.raises(UnsupportedNodesError, match="float8"):
        matmul(nodes, 21, w, np.float32(1)).load()


def twice(nodes: Any, op: str, kind: Any, form: str) -> Any:
    """An integer input that one node reads on two grids; `form` is what lies between, or the dialect."""
    model = nodes(17)
    q = model.input("x", kind, [1, 4, 4, 4])
    middle = 128 if kind == np.uint8 else 0
    first, second, last = ((F(s), kind(z + middle)) for s, z in ((2**-5, 5), (2**-6, -3), (2**-4, 11)))
    given = {"axis": 1} if op == "Concat" else {}
    if form == "reshaped":
        q = model.node("Reshape", q, np.array([1, 16, 2, 2], np.int64))
    elif form == "transposed":
        q = model.node("Transpose", q, perm=[0, 1, 3, 2])
    elif form == "pooled":
        q = model.node("MaxPool", model.node("Identity", q), kernel_shape=[2, 2])
    if form == "qoperator":
        operands = [*last, q, *first, q, *second] if op == "Concat" else [q, *first, q, *second, *last]
        y = model.node(f"QLinear{op}", *operands, domain="com.microsoft", **given)
    else:
        parts = [model.node("DequantizeLinear", q, *grid) for grid in (first, second)]
        y = model.node("QuantizeLinear", model.node(op, *parts, **given), *last)
    return model.output(y, kind)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("form", ["plain", "qoperator", "reshaped", "transposed", "pooled"])
@pytest.mark.parametrize("op", ["Add", "Mul", "Concat"])
def test_integers_that_are_read_on_two_grids(nodes: Any, op: str, form: str, kind: Any) -> None:
    """Scales are powers of two: no rounding but the last. (onnxruntime's QLinearAdd rounds ties otherwise than Add.)"""
    model = twice(nodes, op, kind, form)
    x = RNG.integers(0, 256, (1, 4, 4, 4)).astype(np.uint8).view(kind)
    wanted = twice(nodes, op, kind, "plain" if form == "qoperator" else form).onnxruntime({"x": x})
    for target in ("golden", "emulator"):
        with InferenceSession(model.proto().SerializeToString(), device=target) as session:
            for ours, theirs in zip(session.run(None, {"x": x}), wanted, strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)


def test_an_integer_input_on_two_grids_that_is_an_output_too(nodes: Any) -> None:
    model = twice(nodes, "Add", np.int8, "plain").output("x", np.int8)
    x = RNG.integers(-128, 128, (1, 4, 4, 4)).astype(np.int8)
    with InferenceSession(model.proto().SerializeToString(), device="emulator") as session:
        y, same = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, twice(nodes, "Add", np.int8, "plain").onnxruntime({"x": x})[0])
    np.testing.assert_array_equal(same, x)


def test_an_integer_input_on_one_grid_is_loaded_once(nodes: Any) -> None:
    model = nodes(17)
    x = model.input("x", np.int8, [1, 4, 4, 4])
    parts = [model.node("DequantizeLinear", x, S, np.int8(3)) for _ in range(2)]
    graph = model.output(model.node("QuantizeLinear", model.node("Add", *parts), T, np.int8(0)), np.int8).load()
    assert len(graph.inputs) == 1


OMITTED = {
    "QLinearSigmoid": {},
    "QLinearLeakyRelu": {"alpha": 0.1},
    "QLinearAveragePool": {"kernel_shape": [2, 2]},
    "QLinearReduceMean": {"axes": [2, 3]},
    "QLinearAdd": {},
    "QLinearMul": {},
}


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("op", OMITTED)
def test_a_result_without_zero_point_is_of_the_operands_type(nodes: Any, op: str, kind: Any) -> None:
    """At the model's input, on a value of the hardware, and on the host: as with a zero point of 0 of that type."""
    x = RNG.integers(0, 256, (1, 4, 4, 4)).astype(np.uint8).view(kind)
    found = []
    for zeros in ([], [None], [kind(0)]):
        model = nodes(17)
        q = model.input("x", kind, [1, 4, 4, 4])
        outputs = []
        for operand in (
            q,
            model.node("MaxPool", q, kernel_shape=[1, 1]),
            model.node("QuantizeLinear", pooled(model, q, kind), F(0.03), kind(7)),
        ):
            second = [operand, F(0.02), kind(3)] if op in ("QLinearAdd", "QLinearMul") else []
            operands = [operand, F(0.03), kind(7), *second, F(0.04), *zeros]
            outputs.append(model.node(op, *operands, domain="com.microsoft", **OMITTED[op]))
        for output in outputs:
            model.output(output, kind)
        with InferenceSession(model.proto().SerializeToString(), device="golden") as session:
            found.append(session.run(None, {"x": x}))
    for first, second, wanted in zip(*found, strict=True):
        for ours in (first, second):
            assert ours.dtype == kind
            np.testing.assert_array_equal(ours, wanted)


def pooled(model: Any, q: str, kind: Any) -> str:
    return str(model.node("MaxPool", model.node("DequantizeLinear", q, F(0.03), kind(7)), kernel_shape=[1, 1]))


@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 1), (1, 1), ()])
def test_a_bias_of_a_gemm_is_of_its_columns_or_its_rows(nodes: Any, shape: tuple[int, ...]) -> None:
    """Of as many rows as columns: its shape alone tells which."""
    model = nodes(13)
    model.input("x", np.float32, [4, 8])
    x = model.node("DequantizeLinear", model.node("QuantizeLinear", "x", S, np.int8(3)), S, np.int8(3))
    w = model.node("DequantizeLinear", RNG.integers(-99, 99, (8, 4)).astype(np.int8), S, np.int8(0))
    bias = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.int32) * 999
    c = model.node("DequantizeLinear", bias, S * S)
    y = model.node("QuantizeLinear", model.node("Gemm", x, w, c), F(2), np.int8(-5))
    model.output(y, np.int8)
    feed = {"x": (RNG.integers(-140, 140, (4, 8)) / 8).astype(np.float32)}
    with InferenceSession(model.proto().SerializeToString(), device="emulator") as session:
        found = session.run(None, feed)
        where = {row.where for row in session.model.placement if row.op_type == "Gemm"}
    np.testing.assert_array_equal(found[0], model.onnxruntime(feed)[0])
    assert where == {"host" if shape == (4, 1) else "hardware"}
