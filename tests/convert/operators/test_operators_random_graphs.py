"""Random small graphs of all operators: the whole model runs as onnxruntime says, wherever each part runs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw import golden
from onnxhw.errors import UnsupportedError

SCALES = [2.0**-4, 2.0**-3, 2.0**-2]


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


class Growing:
    """Adds random nodes; `values` are the dequantized ones so far, with their shapes."""

    def __init__(self, model: Any, draw: Any) -> None:
        self.model, self.draw = model, draw
        self.values: list[tuple[str, tuple[int, ...]]] = []

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def start(self) -> None:
        for number in range(self.integer(1, 2)):
            shape = (1, self.integer(1, 5), self.integer(2, 6), self.integer(2, 6))
            scale, zero = self.draw(st.sampled_from(SCALES)), self.integer(-128, 127)
            self.values.append((self.model.input(shape, scale, zero, name=f"x{number}"), shape))

    def grow(self) -> None:
        x, shape = self.draw(st.sampled_from(self.values))
        kind = self.draw(st.sampled_from(sorted(KINDS)))
        y, out = KINDS[kind](self, x, shape)
        if self.integer(0, 4):
            y = self.model.requantize(y, self.draw(st.sampled_from(SCALES)), self.integer(-128, 127))
        elif kind in FLOAT:
            return
        self.values.append((y, out))

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return str(self.model.node(op_type, *inputs, **attributes))

    def const(self, array: Any) -> str:
        return str(self.model.const(array))

    def weights(self, *shape: int) -> str:
        random = np.random.default_rng(self.integer(0, 1 << 30))
        q = random.integers(-60, 61, shape).astype(np.int8)
        return str(self.model.constant(q, np.float32(2.0 ** -self.integer(4, 8)), np.int8(0)))


FLOAT = {"conv", "transposed", "binary", "mean"}
"""Kinds whose result must be quantized before anything else can be done with it on the hardware."""


def _conv(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    kernel = [g.integer(1, min(3, n)) for n in s[2:]]
    pads = [g.integer(0, k - 1) for k in (*kernel, *kernel)]
    strides = [g.integer(1, 2), g.integer(1, 2)]
    depthwise = g.integer(0, 2) == 0
    outputs = s[1] if depthwise else g.integer(1, 5)
    weight = g.weights(outputs, 1 if depthwise else s[1], *kernel)
    out = [(s[2 + a] + pads[a] + pads[2 + a] - kernel[a]) // strides[a] + 1 for a in (0, 1)]
    y = g.node("Conv", x, weight, pads=pads, strides=strides, group=s[1] if depthwise else 1)
    return y, (1, outputs, *out)


def _transposed(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    kernel, strides = [g.integer(1, 3), g.integer(1, 3)], [g.integer(1, 2), g.integer(1, 2)]
    outputs = g.integer(1, 4)
    out = [(s[2 + a] - 1) * strides[a] + kernel[a] for a in (0, 1)]
    return g.node("ConvTranspose", x, g.weights(s[1], outputs, *kernel), strides=strides), (1, outputs, *out)


def _unary(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    return g.node(g.draw(st.sampled_from(["Relu", "Sigmoid", "Tanh", "HardSwish", "Neg", "Abs", "Elu"])), x), s


def _binary(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    same = [name for name, shape in g.values if shape == s]
    op_type = g.draw(st.sampled_from(["Add", "Sub", "Mul", "Max", "Min"]))
    return g.node(op_type, x, g.draw(st.sampled_from(same))), s


def _constant(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    values = np.array([g.integer(-16, 16) / 8 for _ in range(s[1])], np.float32).reshape(-1, 1, 1)
    return g.node(g.draw(st.sampled_from(["Add", "Sub", "Mul"])), x, g.const(values)), s


def _slice(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    begins = [g.integer(0, n - 1) for n in s[1:]]
    steps = [g.integer(1, 2) for _ in s[1:]]
    ends = [g.integer(b + 1, n) for b, n in zip(begins, s[1:], strict=True)]
    out = [-(-(e - b) // d) for b, e, d in zip(begins, ends, steps, strict=True)]
    return g.node("Slice", x, *map(g.const, (ints(*begins), ints(*ends), ints(1, 2, 3), ints(*steps)))), (1, *out)


def _pad(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    mode = g.draw(st.sampled_from(["constant", "edge", "reflect"]))
    ends = [g.integer(0, min(2, n - 1)) for n in (s[2], s[3], s[2], s[3])]
    y = g.node("Pad", x, g.const(ints(0, 0, ends[0], ends[1], 0, 0, ends[2], ends[3])), mode=mode)
    return y, (1, s[1], s[2] + ends[0] + ends[2], s[3] + ends[1] + ends[3])


def _concat(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    axis = g.integer(1, 3)
    fits = [(n, t) for n, t in g.values if all(a == axis or t[a] == s[a] for a in range(4))]
    other, t = g.draw(st.sampled_from(fits))
    return g.node("Concat", x, other, axis=axis), tuple(n + t[a] if a == axis else n for a, n in enumerate(s))


def _resize(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    scales = [g.integer(1, 3), g.integer(1, 2)]
    factors = g.const(np.array([1, 1, *scales], np.float32))
    y = g.node("Resize", x, "", factors, mode="nearest", coordinate_transformation_mode="asymmetric")
    return y, (1, s[1], s[2] * scales[0], s[3] * scales[1])


def _space(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    if s[2] % 2 == s[3] % 2 == 0:
        return g.node("SpaceToDepth", x, blocksize=2), (1, s[1] * 4, s[2] // 2, s[3] // 2)
    return g.node("Transpose", x, perm=[0, 1, 3, 2]), (1, s[1], s[3], s[2])


def _pool(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    kernel = [g.integer(1, min(2, n)) for n in s[2:]]
    return g.node("MaxPool", x, kernel_shape=kernel), (1, s[1], s[2] - kernel[0] + 1, s[3] - kernel[1] + 1)


def _mean(g: Growing, x: str, s: tuple[int, ...]) -> Any:
    op_type = g.draw(st.sampled_from(["ReduceMax", "ReduceMin", "ReduceSum"]))
    if op_type == "ReduceSum":
        return g.node(op_type, x, g.const(ints(2))), (1, s[1], 1, s[3])
    return g.node(op_type, x, axes=[3]), (1, s[1], s[2], 1)


KINDS: dict[str, Any] = {
    "conv": _conv,
    "transposed": _transposed,
    "unary": _unary,
    "binary": _binary,
    "constant": _constant,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "resize": _resize,
    "space": _space,
    "pool": _pool,
    "mean": _mean,
}


@pytest.mark.parametrize("part", range(3))
def test_random_graphs(part: int, models: Any) -> None:
    ran: list[int] = []

    @settings(max_examples=60, database=None, derandomize=True)
    @given(st.data())
    def run(data: Any) -> None:
        model = models()
        growing = Growing(model, data.draw)
        growing.start()
        for _ in range(1 + growing.integer(0, 3) + part):
            growing.grow()
        name, _ = growing.values[-1]
        model.output(name if name.startswith("dequantizelinear") else model.requantize(name, 0.125, -3))
        try:
            graph = model.load()
        except UnsupportedError:
            return
        feeds = model.feeds(growing.integer(0, 99))
        ours = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))
        for key, wanted in model.onnxruntime(feeds).items():
            np.testing.assert_array_equal(ours[key], wanted)
        ran.append(len(graph.ops))

    run()
    assert len(ran) >= 30
    assert max(ran) >= 3
