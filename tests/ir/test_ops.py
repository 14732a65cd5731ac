"""Each golden operation against its definition, written as plain loops over Python integers."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw import fixed, golden
from onnxhw.errors import UsageError
from onnxhw.ir.graph import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Graph,
    MatMul,
    MaxPool,
    Mul,
    Op,
    Port,
    Reshape,
    Table,
    Tensor,
)
from onnxhw.ir.ops import conv
from onnxhw.ir.verify import verify
from onnxhw.ir.windows import window_size

Array8 = npt.NDArray[np.int8]


def run(op: Op, arrays: list[Array8], zeros: list[int], shape: tuple[int, ...], zy: int = 0) -> Array8:
    """One operation on the given operands, through a verified graph."""
    tensors = {
        name: Tensor(name, (1, *a.shape[1:]), 1.0, z) for name, a, z in zip(op.inputs, arrays, zeros, strict=True)
    }
    tensors[op.output] = Tensor(op.output, (1, *shape[1:]), 1.0, zy)
    ports = [Port(name, tensor.shape, "int8", name) for name, tensor in tensors.items() if name != op.output]
    graph = Graph("one", tensors, [op], ports, [Port("y", (1, *shape[1:]), "int8", op.output)])
    verify(graph)
    found = golden.run(graph, dict(zip(op.inputs, arrays, strict=True)))[op.output]
    assert found.dtype == np.int8
    assert found.shape == shape
    return found


def random8(rng: np.random.Generator, *shape: int) -> Array8:
    """Values with many extremes."""
    values = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice([-128, 127], shape), values).astype(np.int8)


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """A window that fits an input of the given height and width."""
    height, width = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilations = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    pads = draw(st.tuples(*[st.integers(0, 2)] * 4))
    rows = window_size(height, pads[0], pads[2], kernel[0], strides[0], dilations[0])
    cols = window_size(width, pads[1], pads[3], kernel[1], strides[1], dilations[1])
    if rows < 1 or cols < 1:
        kernel, dilations = (1, 1), (1, 1)
        rows = window_size(height, pads[0], pads[2], 1, strides[0], 1)
        cols = window_size(width, pads[1], pads[3], 1, strides[1], 1)
    geometry = {"strides": strides, "dilations": dilations, "pads": pads}
    return {"input": (height, width), "kernel": kernel, "output": (rows, cols), "geometry": geometry}


def positions(window: dict[str, Any], y: int, x: int) -> list[tuple[int, int, int, int]]:
    """The taps ``(kh, kw, row, col)`` of one window that lie inside the input."""
    geometry = window["geometry"]
    found = []
    for kh, kw in itertools.product(range(window["kernel"][0]), range(window["kernel"][1])):
        row = y * geometry["strides"][0] - geometry["pads"][0] + kh * geometry["dilations"][0]
        col = x * geometry["strides"][1] - geometry["pads"][1] + kw * geometry["dilations"][1]
        if 0 <= row < window["input"][0] and 0 <= col < window["input"][1]:
            found.append((kh, kw, row, col))
    return found


@settings(deadline=None, max_examples=60)
@given(windows(), st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_conv(window: dict[str, Any], seed: int, groups: int, depth: int, each: int) -> None:
    rng = np.random.default_rng(seed)
    x = random8(rng, 2, groups * depth, *window["input"])
    weight = random8(rng, groups * each, depth, *window["kernel"])
    bias = rng.integers(-5000, 5000, len(weight)).astype(np.int32)
    multiplier = (2.0 ** rng.uniform(-12, 0, len(weight))).astype(np.float32)
    zx, zy, lo = (int(z) for z in rng.integers(-128, 100, 3))
    op = Conv("conv", ("x",), "y", (), weight, bias, multiplier, **window["geometry"], groups=groups, lo=lo, hi=120)
    found = run(op, [x], [zx], (2, len(weight), *window["output"]), zy)
    for n, o, row, col in np.ndindex(found.shape):
        total = int(bias[o])
        for kh, kw, r, c in positions(window, row, col):
            for i in range(depth):
                total += (int(x[n, o // each * depth + i, r, c]) - zx) * int(weight[o, i, kh, kw])
        assert found[n, o, row, col] == fixed.requantize(np.array([total]), multiplier[o], zy, lo, 120)[0]


def test_conv_sums_are_exact_where_float32_is_not() -> None:
    """Sums of 2^25 and more need the wider path."""
    x = np.full((1, 1100, 1, 1), 127, np.int8)
    weight = np.full((2, 1100, 1, 1), 127, np.int8)
    weight[1, 0] = 126
    multiplier = np.array([2.0**-18] * 2, np.float32)
    op = Conv("conv", ("x",), "y", (), weight, np.zeros(2, np.int32), multiplier)
    tensor = Tensor("x", (1, 1100, 1, 1), 1.0, -128)
    sums = conv.accumulate(op, x, tensor)
    assert sums.ravel().tolist() == [255 * 127 * 1100, 255 * (127 * 1100 - 1)]


@settings(deadline=None, max_examples=60)
@given(windows(), st.integers(0, 2**32), st.integers(-128, 127))
def test_max_pool(window: dict[str, Any], seed: int, zero: int) -> None:
    x = random8(np.random.default_rng(seed), 2, 3, *window["input"])
    op = MaxPool("pool", ("x",), "y", (), window["kernel"], **window["geometry"])
    found = run(op, [x], [zero], (2, 3, *window["output"]), zero)
    for n, c, row, col in np.ndindex(found.shape):
        seen = [int(x[n, c, r, k]) for _, _, r, k in positions(window, row, col)]
        assert not seen or found[n, c, row, col] == max(seen)


@settings(deadline=None, max_examples=60)
@given(windows(), st.integers(0, 2**32), st.booleans(), st.floats(2.0**-3, 2, width=32))
def test_average_pool(window: dict[str, Any], seed: int, count_pad: bool, ratio: float) -> None:
    rng = np.random.default_rng(seed)
    inside = [positions(window, *place) for place in np.ndindex(window["output"])]
    if not count_pad and not all(inside):
        return  # refused by the conversion
    x = random8(rng, 2, 3, *window["input"])
    zx, zy = (int(z) for z in rng.integers(-128, 128, 2))
    op = AveragePool("pool", ("x",), "y", (), window["kernel"], **window["geometry"], ratio=ratio, count_pad=count_pad)
    found = run(op, [x], [zx], (2, 3, *window["output"]), zy)
    for n, c, row, col in np.ndindex(found.shape):
        taps = positions(window, row, col)
        total = sum(int(x[n, c, r, k]) - zx for _, _, r, k in taps)
        count = window["kernel"][0] * window["kernel"][1] if count_pad else len(taps)
        assert found[n, c, row, col] == fixed.average(np.array([total]), ratio, count, zy)[0]


def test_add_covers_all_operand_pairs() -> None:
    a, b = (m.astype(np.int8).reshape(1, 1, 256, 256) for m in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    found = run(Add("add", ("a", "b"), "y", (), 0.75, 1.25, -100, 90), [a, b], [3, -7], (1, 1, 256, 256), 5)
    exact = [
        max(-100, min(90, round(0.75 * (int(p) - 3) + 1.25 * (int(q) + 7)) + 5))
        for p, q in zip(a.flat, b.flat, strict=True)
    ]
    assert found.ravel().tolist() == exact


def test_mul_covers_all_operand_pairs_and_broadcasts() -> None:
    a, b = (m.astype(np.int8).reshape(1, 1, 256, 256) for m in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    found = run(Mul("mul", ("a", "b"), "y", (), 2.0**-7), [a, b], [3, -7], (1, 1, 256, 256), 5)
    pairs = zip(a.flat, b.flat, strict=True)
    exact = [max(-128, min(127, round((int(p) - 3) * (int(q) + 7) / 128) + 5)) for p, q in pairs]
    assert found.ravel().tolist() == exact
    rng = np.random.default_rng(0)
    x, factor = random8(rng, 2, 3, 4, 5), random8(rng, 2, 3, 1, 1)
    wide = np.broadcast_to(factor, x.shape).copy()
    for names, arrays in ((("x", "f"), [x, factor]), (("f", "x"), [factor, x])):
        narrow = run(Mul("mul", names, "y", (), 0.01), arrays, [1, 1], x.shape)
        assert np.array_equal(narrow, run(Mul("mul", ("x", "f"), "y", (), 0.01), [x, wide], [1, 1], x.shape))


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_is_its_sum(turned: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(sum(turned))
    heads, m, k, n, za, zb = 3, 4, 5, 2, -128, 9
    a, b = random8(rng, 2, heads, m, k), random8(rng, 2, heads, k, n)
    sums = [
        sum((int(a[i, h, y, j]) - za) * (int(b[i, h, j, x]) - zb) for j in range(k))
        for i in range(2) for h in range(heads) for y in range(m) for x in range(n)
    ]  # fmt: skip
    exact = [max(-100, min(90, round(total / 256) + 5)) for total in sums]
    stored = [x.swapaxes(2, 3).copy() if turn else x for x, turn in zip((a, b), turned, strict=True)]
    op = MatMul("matmul", ("a", "b"), "y", (), 2.0**-8, *turned, -100, 90)
    assert run(op, stored, [za, zb], (2, heads, m, n), 5).ravel().tolist() == exact


def test_table_concat_and_reshape() -> None:
    rng = np.random.default_rng(1)
    table = random8(rng, 256)
    x = np.arange(-128, 128).astype(np.int8).reshape(2, 8, 4, 4)
    assert run(Table("t", ("x",), "y", (), table), [x], [0], x.shape).ravel().tolist() == table.tolist()
    a, b = random8(rng, 2, 3, 2, 2), random8(rng, 2, 5, 2, 2)
    joined = run(Concat("c", ("a", "b"), "y"), [a, b], [0, 0], (2, 8, 2, 2))
    assert np.array_equal(joined[:, :3], a)
    assert np.array_equal(joined[:, 3:], b)
    moved = run(Reshape("r", ("x",), "y"), [x], [0], (2, 2, 8, 8))
    assert np.array_equal(moved.ravel(), x.ravel())


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "'x' is missing"),
        ({"x": np.zeros((1, 3, 4, 5), np.int8)}, r"must be int8 \[N, 3, 4, 4\]"),
        ({"x": np.zeros((1, 3, 4, 4), np.uint8)}, "not uint8"),
    ],
)
def test_inputs_are_checked(tensors: dict[str, Any], message: str) -> None:
    shape = (1, 3, 4, 4)
    tensor = {name: Tensor(name, shape, 1.0, 0) for name in "xy"}
    ports = [Port("x", shape, "int8", "x")]
    graph = Graph("one", tensor, [Table("t", ("x",), "y")], ports, [Port("y", shape, "int8", "y")])
    with pytest.raises(UsageError, match=f"E2201 .*{message}"):
        golden.run(graph, tensors)
