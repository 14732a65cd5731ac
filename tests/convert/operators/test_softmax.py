"""Softmax in integers: golden = emulator, the bound of its error over all sums, what stays on the host; and extremes
over channels."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto

from onnxhw import InferenceSession, fixed, golden
from onnxhw.compiler import place_and_schedule
from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.convert.conversion import unread
from onnxhw.convert.operators.softmax_constants import ONE, SoftmaxConstants
from onnxhw.ir.graph import Concat, Graph, Table
from onnxhw.partition import load, read
from onnxhw.presets import preset

Ints = npt.NDArray[np.int64]
STEP = 1 / 256


def computed(numbers: SoftmaxConstants, d: Ints, sums: Ints, scale: float = STEP) -> Ints:
    """The result of differences and sums of exponentials, by `SoftmaxConstants` and `requantize`, at zero point -128"""
    t = np.zeros(sums.shape, np.int64)
    for start, multiplier in zip(numbers.starts, numbers.sum_multipliers, strict=True):
        t += numbers.logarithms[fixed.requantize(sums - start, multiplier, -128) + 128]
    of_d, of_t = numbers.weights
    total = np.zeros(np.broadcast_shapes(d.shape, sums.shape), np.int64)
    for offset, multiplier, place in zip(numbers.offsets, numbers.multipliers, numbers.places, strict=True):
        octave = fixed.requantize(d * of_d - t * of_t + offset, multiplier, 127)
        total += place * numbers.powers[octave + 128]
    return fixed.requantize(total, np.float32(1 / (255 * 128 * np.float64(scale))), -128)


def random_input(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    width = rng.choice([4, 20, 60]) * scale
    return (rng.normal(size=shape) * width + rng.uniform(-20, 20) * scale).astype(np.float32)


def softmax_model(model: Any, shape: tuple[int, ...], axis: int, scale: float, step: float = STEP) -> Any:
    """Softmax, then an Add of its input: an operation of the hardware."""
    x = model.input(list(shape), scale, 3)
    y = model.requantize(model.node("Softmax", x, axis=axis), step, -128)
    model.output(y, len(shape))
    return model.output(model.requantize(model.node("Add", y, x), 1 / 16, 0), len(shape))


CASES = [
    ((1, 10), -1, 0.1), ((1, 4, 6, 16), -1, 0.004), ((1, 3, 7, 5), 2, 1.7), ((1, 8, 2, 3), 1, 0.05),
    ((1, 5, 7), -1, 0.3), ((1, 6, 3), 1, 0.02), ((1, 2, 2, 33), -1, 0.1), ((1, 1, 9, 12), 3, 0.002),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "scale"), CASES)
def test_golden_is_the_formula_and_near_onnxruntime(
    model: Any, emulate: Any, shape: tuple[int, ...], axis: int, scale: float
) -> None:
    softmax_model(model, shape, axis, scale)
    graph, name = model.load(), model.outputs[0].name
    numbers = SoftmaxConstants(graph.tensors[graph.inputs[0].tensor].scale, shape[axis])
    rng = np.random.default_rng(1)
    for _ in range(6):
        feeds = {"x": random_input(rng, shape, scale)}
        values = golden.host.prepare(graph, feeds)
        ours = golden.host.finish(graph, golden.run(graph, values))[name]
        q = next(iter(values.values())).astype(np.int64).reshape(shape)
        d = np.maximum(numbers.factor * (q - q.max(axis, keepdims=True)), -255)
        sums = numbers.exponentials[d + 255].sum(axis, keepdims=True)
        np.testing.assert_array_equal(np.rint(ours / STEP) - 128, computed(numbers, d, sums))
        theirs = model.onnxruntime(feeds)[name]
        assert np.abs(np.rint((ours.astype(np.float64) - theirs) / STEP)).max() <= 1
    emulate(graph, feeds)


@pytest.mark.parametrize("scale", [0.0003, 0.0011, 0.004, 0.06, 0.121, 1.0, 31.0])
def test_the_error_for_every_sum_and_exponential(scale: float) -> None:
    """Less than 1.25 steps of 1/256 from the real value, for every sum of up to 64 exponentials."""
    numbers = SoftmaxConstants(scale, 64)
    sums = np.arange(ONE, 64 * ONE + 1)
    t = np.zeros(len(sums), np.int16)
    for start, multiplier in zip(numbers.starts, numbers.sum_multipliers, strict=True):
        t += numbers.logarithms[fixed.requantize(sums - start, multiplier, -128) + 128].astype(np.int16)
    edges = np.flatnonzero(np.diff(t))  # between them the result does not change
    chosen = sums[np.concatenate([[0], edges, edges + 1, [len(sums) - 1]])][None]
    d = np.arange(-255, 1)[:, None]
    real = np.exp(numbers.step * d)
    possible = chosen >= ONE + np.where(d == 0, 0, numbers.exponentials[d + 255])
    ours = computed(numbers, d, chosen) + 128.0
    slack = 63 * np.abs(numbers.exponentials / ONE - np.exp(numbers.step * np.arange(-255, 1))).max()  # of the sum
    gaps = [
        np.abs(ours - np.minimum(real / (chosen / ONE + more) / STEP, 255))[possible].max() for more in (-slack, slack)
    ]
    assert 0.9 < max(gaps) < 1.25


def test_at_the_edge_it_is_float(model: Any) -> None:
    x = model.input([1, 10], 0.1, 3)
    y = model.requantize(model.node("Softmax", model.requantize(model.node("Neg", x), 0.1, 3)), STEP, -128)
    model.output(model.node("ArgMax", y, axis=1), 2, TensorProto.INT64)
    mixed = read(model.bytes())
    assert not mixed.integer_softmax
    assert not any(found.code == "W3403" for found in mixed.diagnostics)


def test_before_what_only_the_host_has_it_is_float(model: Any) -> None:
    x = model.input([1, 4, 6, 5], 0.1, 3)
    y = model.requantize(model.node("Softmax", x), STEP, -128)
    model.output(model.requantize(model.node("Div", y, model.requantize(model.node("Exp", x), 0.1, 3)), 0.1, 0))
    mixed = read(model.bytes())
    assert not mixed.integer_softmax
    assert [row.reason for row in mixed.placement if row.op_type == "Div"] == ["Div of two activations"]


def test_exact_softmax_is_onnxruntime(model: Any) -> None:
    softmax_model(model, (1, 4, 6, 5), -1, 0.125)
    feeds = {"x": random_input(np.random.default_rng(0), (1, 4, 6, 5), 0.125)}
    theirs = model.onnxruntime(feeds)
    with InferenceSession(model.bytes(), exact_softmax=True) as session:
        for name, found in zip(theirs, session.run(None, feeds), strict=True):
            np.testing.assert_array_equal(found, theirs[name])
        rows = {row.op_type: row for row in session.model.placement}
        assert (rows["Softmax"].where, rows["Add"].where) == ("host", "hardware")
    with pytest.raises(UnsupportedNodesError, match="as asked for"):
        load(model.bytes(), exact_softmax=True)
    with InferenceSession(model.bytes()) as session:
        assert session.model.integer_softmax
        assert "W3403" in [found.code for found in session.model.diagnostics]


def test_what_does_not_fit_is_the_hosts_in_the_same_integers(model: Any) -> None:
    softmax_model(model, (1, 2, 24, 24), -1, 0.1)
    placed = place_and_schedule(model.bytes(), preset("mini"))
    rows = {row.op_type: row for row in placed.model.placement}
    assert (rows["Softmax"].where, rows["Add"].where) == ("host", "hardware")
    feeds = model.feeds()
    with InferenceSession(model.bytes(), device="emulator", config=preset("mini")) as ours:
        found = ours.run(None, feeds)[0]
    with InferenceSession(model.bytes()) as whole:
        np.testing.assert_array_equal(found, whole.run(None, feeds)[0])
    assert "with it on the hardware" in rows["Softmax"].reason


@pytest.mark.parametrize(("shape", "axis", "reason"), [
    ((1, 1, 2, 257), -1, "over 257 elements"), ((1, 1, 2, 3), 1, "over 1 elements"),
])  # fmt: skip
def test_what_the_hardware_does_not_have(model: Any, shape: tuple[int, ...], axis: int, reason: str) -> None:
    softmax_model(model, shape, axis, 0.1)
    (row,) = (row for row in read(model.bytes()).placement if row.op_type == "Softmax")
    assert row.where == "host"
    assert reason in row.reason


def test_qlinear_softmax(model: Any, emulate: Any) -> None:
    """The QOperator form is the same."""
    x = model.input([1, 3, 4, 6], 0.1, 3)
    q = model.q(x, 0.1, 3)
    grids = [
        model.const(np.float32(0.1)),
        model.const(np.int8(3)),
        model.const(np.float32(STEP)),
        model.const(np.int8(-128)),
    ]
    y = model.node("QLinearSoftmax", q, *grids, domain="com.microsoft", axis=3, opset=17)
    model.output(model.requantize(model.node("Add", model.dq(y, STEP, -128), x), 1 / 16, 0))
    assert [row.where for row in read(model.bytes()).placement if row.op_type == "QLinearSoftmax"] == ["hardware"]
    emulate(model.load(), model.feeds())


def test_attention_is_the_hardwares_as_a_whole(model: Any, emulate: Any) -> None:
    """Softmax of a MatMul of two activations, and another MatMul of the result."""
    q, k, v = (model.input([1, 2, 6, 4], 0.5, 3, name) for name in "qkv")
    scores = model.requantize(model.node("MatMul", q, model.node("Transpose", k, perm=[0, 1, 3, 2])), 2.0, 0)
    share = model.requantize(model.node("Softmax", scores, axis=-1), STEP, -128)
    model.output(model.requantize(model.node("MatMul", share, v), 0.25, 0))
    assert read(model.bytes()).integer_softmax
    emulate(model.load(), model.feeds())


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(("channels", "axes"), [(1, [1]), (5, [1]), (8, [1, 3]), (9, [1, 2, 3])])
def test_extremes_over_channels(model: Any, check: Any, op_type: str, channels: int, axes: list[int]) -> None:
    x = model.input([1, channels, 3, 4], 0.25, -7)
    check(model.output(model.requantize(model.node(op_type, x, axes=axes), 0.25, 2)))


def test_what_only_moves_is_no_reader() -> None:
    """Random graphs of tables and movements, against the definition: op by op, in their order."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        ops: list[Any] = []
        for index in range(int(rng.integers(1, 12))):
            inputs = tuple(f"t{i}" for i in rng.integers(0, index + 1, rng.integers(1, 3)))
            label = (f"n{rng.integers(0, 4)}",)
            table = np.zeros(256, np.int8)
            ops.append(
                Table(f"o{index}", inputs[:1], f"t{index + 1}", label, table)
                if rng.random() < 0.3
                else Concat(f"o{index}", inputs, f"t{index + 1}", label)
            )
        names = frozenset(f"n{i}" for i in range(4))
        wanted = set()
        for name in names:
            made: set[str] = set()
            read = False
            for op in ops:
                if name in op.nodes:
                    made.add(op.output)
                elif not made.isdisjoint(op.inputs):
                    read |= isinstance(op, Table)
                    made.add(op.output)
            wanted |= set() if read else {name}
        assert unread(Graph("g", {}, ops, [], []), names) == wanted
