"""`known_channels`: which channels of a graph hold one value everywhere, whatever the input."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .. import fixed
from ..ir.graph import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Copy,
    Graph,
    MatMul,
    MaxPool,
    Mul,
    Op,
    Reshape,
    Table,
    Tensor,
)
from ..ir.verify import window_size

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

VARIES = 1 << 16
"""In the place of the value of a channel that is not known to be constant."""


def known_channels(graph: Graph) -> dict[str, Ints]:
    """Per tensor ``[C]``: the value that every element of the channel has, or `VARIES`."""
    known = {port.tensor: np.full(graph.tensors[port.tensor].channels, VARIES, np.int64) for port in graph.inputs}
    for op in graph.ops:
        inputs = [graph.tensors[name] for name in op.inputs]
        known[op.output] = _RULES[type(op)](op, [known[name] for name in op.inputs], inputs, graph.tensors[op.output])
    return known


def has_constants(graph: Graph) -> bool:
    """Whether any operation makes a constant channel of ones that vary: quick, and False for most models."""
    return any(isinstance(op, Conv) and not op.weight.reshape(len(op.weight), -1).any(1).all() for op in graph.ops)


def padded_taps(size: int, count: int, before: int, kernel: int, stride: int, dilation: int) -> Mask:
    """``[count, kernel]``: at which of `count` positions which tap of a window along an axis lies in the padding."""
    at = np.arange(count)[:, None] * stride - before + np.arange(kernel) * dilation
    return (at < 0) | (at >= size)


def spans_padding(op: Conv | AveragePool | MaxPool, x: Tensor) -> Mask:
    """``[KH, KW]``: whether a tap lies in the padding at some position of the window."""
    rows, cols = _axes(op, x)
    return np.logical_or.outer(rows.any(0), cols.any(0))


def _axes(op: Conv | AveragePool | MaxPool, x: Tensor) -> tuple[Mask, Mask]:
    """`padded_taps` of rows and of columns; negative pads only leave out positions."""
    kernel = op.weight.shape[2:] if isinstance(op, Conv) else op.kernel
    rows, cols = (
        padded_taps(size, window_size(size, before, after, taps, stride, dilation), before, taps, stride, dilation)
        for size, before, after, taps, stride, dilation in zip(
            x.shape[2:], op.pads[:2], op.pads[2:], kernel, op.strides, op.dilations, strict=True
        )
    )
    return rows, cols


def _conv(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    """Constant where weights meet no channel that varies and, at taps that padding can reach, none but zero points."""
    assert isinstance(op, Conv)
    outputs, depth = op.weight.shape[:2]
    channels = np.arange(outputs)[:, None] // (outputs // op.groups) * depth + np.arange(depth)
    values = known[0][channels]
    centred = np.where(values == VARIES, 0, values - inputs[0].zero_point)
    met = op.weight.any(axis=(2, 3))
    cut = op.weight[:, :, spans_padding(op, inputs[0])].any(axis=2)
    varies = ((values == VARIES) & met | (centred != 0) & cut).any(1)
    sums = op.bias + (op.weight.astype(np.int64).sum(axis=(2, 3)) * centred).sum(1)
    return np.where(varies, VARIES, fixed.requantize(sums, op.multiplier, y.zero_point, op.lo, op.hi))


def _both(known: list[Ints], result: Ints) -> Ints:
    return np.where(np.logical_or.reduce([values == VARIES for values in known]), VARIES, result)


def _centred(known: list[Ints], inputs: list[Tensor]) -> list[Ints]:
    return [
        np.where(values == VARIES, 0, values - x.zero_point) for values, x in zip(known, inputs, strict=True)
    ]


def _add(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    assert isinstance(op, Add)
    a, b = _centred(known, inputs)
    return _both(known, fixed.add(a, b, op.ratio_a, op.ratio_b, y.zero_point, op.lo, op.hi))


def _mul(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    assert isinstance(op, Mul)
    a, b = _centred(known, inputs)
    return _both(known, fixed.multiply(a, b, op.ratio, y.zero_point, op.lo, op.hi))


def _mat_mul(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    assert isinstance(op, MatMul)
    a, b = _centred(known, inputs)
    count = inputs[0].height if op.transposed_a else inputs[0].width
    return _both(known, fixed.requantize(count * a * b, op.multiplier, y.zero_point, op.lo, op.hi))


def _meets(op: MaxPool | AveragePool, x: Tensor) -> bool:
    """Whether every window meets an element."""
    return not any(axis.all(1).any() for axis in _axes(op, x))


def _max_pool(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    assert isinstance(op, MaxPool)
    return known[0] if _meets(op, inputs[0]) else np.full_like(known[0], VARIES)


def _average_pool(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    """Constant, but for a border of zeros that counts."""
    assert isinstance(op, AveragePool)
    (centred,) = _centred(known, inputs)
    found = _both(known, fixed.average(centred, op.ratio, 1, y.zero_point, op.lo, op.hi))
    border = op.count_pad and bool(spans_padding(op, inputs[0]).any())
    varies = (centred != 0) if border else np.full(len(found), not _meets(op, inputs[0]))
    return np.where(varies, VARIES, found)


def _table(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    assert isinstance(op, Table)
    return _both(known, op.table.astype(np.int64)[np.where(known[0] == VARIES, 0, known[0] + 128)])


def _concat(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    return np.concatenate(known)


def _reshape(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    elements = np.repeat(known[0], inputs[0].height * inputs[0].width).reshape(y.channels, -1)
    return np.where((elements == elements[:, :1]).all(1), elements[:, 0], VARIES)


def _copy(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    """Constant where all inputs have the same value, which is `fill`, too, if that is seen."""
    assert isinstance(op, Copy)
    values = [*known]
    if (op.index(inputs, y) < 0).any():
        values.append(np.full_like(known[0], op.fill))
    return np.where(np.logical_and.reduce([one == values[0] for one in values]), values[0], VARIES)


_RULES: dict[type[Op], Callable[[Op, list[Ints], list[Tensor], Tensor], Ints]] = {
    Conv: _conv,
    Add: _add,
    Mul: _mul,
    MatMul: _mat_mul,
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    Table: _table,
    Concat: _concat,
    Reshape: _reshape,
    Copy: _copy,
}
