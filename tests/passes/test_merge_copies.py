"""Padding and slicing before a window join the window, where that is the same."""

from typing import Any

import numpy as np
import pytest

from onnxhw.ir.graph import AveragePool, Conv, Copy, MaxPool

S, Z = 0.125, -9


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def conv(model: Any, x: str, **attributes: Any) -> str:
    random = np.random.default_rng(3)
    weight = random.integers(-20, 21, (5, 3, 3, 2)).astype(np.int8)
    return str(model.node("Conv", x, model.constant(weight, np.float32(0.125), np.int8(0)), **attributes))


def cut(model: Any, x: str, *ends: tuple[int, int]) -> str:
    begins, stops = zip(*ends, strict=True)
    axes = model.const(ints(*range(4 - len(ends), 4)))
    return str(model.node("Slice", x, model.const(ints(*begins)), model.const(ints(*stops)), axes))


def pad(model: Any, x: str, *pads: int, **attributes: Any) -> str:
    return str(model.node("Pad", x, model.const(ints(0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3])), **attributes))


@pytest.mark.parametrize("quantized", [False, True])
def test_a_frame_of_zeros_becomes_padding(quantized: bool, model: Any) -> None:
    y = pad(model, model.input([1, 3, 6, 7], S, Z), 1, 0, 2, 3)
    y = model.requantize(y, S, Z) if quantized else y
    graph = model.output(model.requantize(conv(model, y, pads=[0, 1, 0, 0], strides=[2, 1]), 1.0, 3)).check()
    (op,) = graph.ops
    assert isinstance(op, Conv)
    assert op.pads == (1, 1, 2, 3)
    assert "Pad_8" in op.nodes


def test_a_box_becomes_negative_padding_of_any_window(model: Any) -> None:
    x = model.input([1, 3, 8, 9], S, Z)
    kernel = {"kernel_shape": [2, 2]}
    parts = [
        conv(model, cut(model, x, (1, 7), (2, 8))),
        model.node("MaxPool", cut(model, x, (0, 5), (1, 9)), **kernel),
        model.node("AveragePool", cut(model, x, (2, 8), (0, 8)), **kernel),
    ]
    for part in parts:
        model.output(model.requantize(part, S, Z))
    graph = model.check()
    assert [type(op) for op in graph.ops] == [MaxPool, Conv, AveragePool]
    assert [op.pads for op in graph.ops] == [(0, -1, -3, 0), (-1, -2, -1, -1), (-2, 0, 0, -1)]


def test_a_slice_of_a_frame_joins_too(model: Any) -> None:
    y = cut(model, pad(model, model.input([1, 3, 6, 7], S, Z), 2, 0, 0, 3), (1, 8), (0, 10))
    graph = model.output(model.requantize(conv(model, y), 1.0, 3)).check()
    assert [type(op) for op in graph.ops] == [Conv]
    assert graph.ops[0].pads == (1, 0, 0, 3)


KEPT = {
    "pad before a maximum": lambda m, x: m.node("MaxPool", pad(m, x, 1, 1, 1, 1), kernel_shape=[2, 2]),
    "pad before a mean": lambda m, x: m.node("AveragePool", pad(m, x, 1, 1, 1, 1), kernel_shape=[2, 2]),
    "another constant": lambda m, x: conv(
        m, m.node("Pad", x, m.const(ints(0, 0, 1, 1, 0, 0, 1, 1)), m.const(np.float32(S)))
    ),
    "edge": lambda m, x: conv(m, pad(m, x, 1, 1, 1, 1, mode="edge")),
    "box before padding": lambda m, x: conv(m, cut(m, x, (1, 6), (0, 7)), pads=[1, 0, 0, 0]),
    "steps": lambda m, x: conv(m, m.node("Slice", x, *(m.const(ints(n)) for n in (0, 6, 2, 2)))),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_not_the_same_stays(case: str, model: Any) -> None:
    graph = model.output(model.requantize(KEPT[case](model, model.input([1, 3, 6, 7], S, Z)), S / 2, Z)).check()
    assert isinstance(graph.ops[0], Copy)
    assert graph.ops[1].inputs == (graph.ops[0].output,)
