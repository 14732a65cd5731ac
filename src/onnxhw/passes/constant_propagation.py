"""`constant_channels`: which channels of a graph hold one value everywhere, whatever the input."""

import numpy as np
import numpy.typing as npt

from ..fixed import Ints, requantize
from ..ir.graph import Concat, Conv, Graph, Op, Reshape, Tensor
from ..ir.windows import window_size

Mask = npt.NDArray[np.bool_]

VARIES = 1 << 16
"""In the place of the value of a channel that is not known to be constant."""


def constant_channels(graph: Graph) -> dict[str, Ints]:
    """Per tensor ``[C]``: the value that every element of the channel has, or `VARIES`."""
    known = {port.tensor: np.full(graph.tensors[port.tensor].channels, VARIES, np.int64) for port in graph.inputs}
    for op in graph.ops:
        of_operands = [known[name] for name in op.inputs]
        known[op.output] = _known(op, of_operands, graph.operands(op), graph.tensors[op.output])
    return known


def has_constants(graph: Graph) -> bool:
    """Whether any operation makes a constant channel of ones that vary: quick, and False for most models."""
    return any(isinstance(op, Conv) and not op.weight.reshape(len(op.weight), -1).any(1).all() for op in graph.ops)


def padded_taps(size: int, count: int, before: int, kernel: int, stride: int, dilation: int) -> Mask:
    """``[count, kernel]``: at which of `count` positions which tap of a window along an axis lies in the padding."""
    at = np.arange(count)[:, None] * stride - before + np.arange(kernel) * dilation
    return (at < 0) | (at >= size)


def spans_padding(op: Conv, x: Tensor) -> Mask:
    """``[KH, KW]``: whether a tap lies in the padding at some position of the window."""
    seen = []
    for size, axis in zip(x.shape[2:], map(op.window.axis, (0, 1)), strict=True):
        before, _, kernel, stride, dilation = axis
        seen.append(padded_taps(size, window_size(size, *axis), before, kernel, stride, dilation).any(0))
    return np.logical_or.outer(*seen)


def _known(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    """The rule of each operation; one that mixes channels in a way of its own has no constant ones."""
    if isinstance(op, Conv):
        return _conv(op, known[0], inputs[0], y)
    if isinstance(op, Concat):
        return np.concatenate(known)
    if isinstance(op, Reshape):
        elements = np.repeat(known[0], inputs[0].height * inputs[0].width).reshape(y.channels, -1)
        return np.where((elements == elements[:, :1]).all(1), elements[:, 0], VARIES)
    return _channelwise(op, known, inputs, y) if op.channelwise else np.full(y.channels, VARIES, np.int64)


def _conv(op: Conv, values: Ints, x: Tensor, y: Tensor) -> Ints:
    """Constant where weights meet no channel that varies and, at taps that padding can reach, none but zero points."""
    outputs, depth = op.weight.shape[:2]
    values = values[np.arange(outputs)[:, None] // (outputs // op.groups) * depth + np.arange(depth)]
    centred = np.where(values == VARIES, 0, values - x.zero_point)
    met = op.weight.any(axis=(2, 3))
    cut = op.weight[:, :, spans_padding(op, x)].any(axis=2)
    varies = ((values == VARIES) & met | (centred != 0) & cut).any(1)
    sums = op.bias + (op.weight.astype(np.int64).sum(axis=(2, 3)) * centred).sum(1)
    return np.where(varies, VARIES, requantize(sums, op.multiplier, y.zero_point, op.lo, op.hi))


def _channelwise(op: Op, known: list[Ints], inputs: list[Tensor], y: Tensor) -> Ints:
    """Constant where all operands are and what the operation makes of them is the same at all pixels."""
    varies = np.logical_or.reduce([values == VARIES for values in known])
    planes = [
        np.broadcast_to(np.where(varies, x.zero_point, values).astype(np.int8)[:, None, None], x.shape)
        for values, x in zip(known, inputs, strict=True)
    ]
    made = op.evaluate(planes, inputs, y).reshape(y.channels, -1)
    return np.where(varies | (made != made[:, :1]).any(1), VARIES, made[:, 0])
