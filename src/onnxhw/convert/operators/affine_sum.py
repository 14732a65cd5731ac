"""`Affine`: a convolution with constant weights that waits for its result's scale."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ... import fixed
from ...ir.graph import Array8, Conv, Tensor
from ..blockers import BlockedError
from ..context import Context
from ..dialects.qdq import SMALLEST_NORMAL
from ..value_range import value_range
from ..values import Array, Const, Floats, Ints, QuantConst, QuantizerTarget
from .window import Window

SCALE_TOLERANCE = 2.0**-20
"""Largest relative difference between a bias's scale and input scale times weight scale (8 float32 steps)."""
MOST_PARTS = 3
"""Most int8 parts of a weight; 3 hold every uint8 weight, whatever its zero point."""
FLAT = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))


@dataclass(frozen=True)
class Affine:
    """A convolution that waits for its result's scale.

    `weight` is ``[O, I / groups, KH, KW]``, sums of at most `MOST_PARTS` int8.
    """

    context: Context
    name: str
    tensor: Tensor
    weight: Ints | Array8
    scale: Floats
    bias: Const | QuantConst | None
    window: Window
    groups: int = 1

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the IR operation."""
        outputs = len(self.weight)
        combined, multiplier = self._scales(result)
        bias, error = integer_bias(self.bias, combined, outputs)
        self.check_sums(bias)
        if error.any():
            self.context.note_rounded(result.nodes[0], float((error / float(result.scale)).max()))
        return self.added(result, bias, multiplier)

    def added(self, result: QuantizerTarget, bias: Ints, multiplier: Floats) -> Tensor:
        """Add the IR operation with these constants per output channel, and the tensor that it makes."""
        rows, cols = self.window.size((self.tensor.height, self.tensor.width))
        source, weight = self._in_parts(result.nodes)
        made = Conv(
            self.name,
            (source.name,),
            result.name,
            result.nodes,
            weight,
            bias.astype(np.int32),
            multiplier,
            self.window.strides,
            self.window.dilations,
            self.window.pads,
            self.groups,
            result.lo,
            result.hi,
        )
        return self.context.put(made, (1, len(self.weight), rows, cols), result.scale, result.zero_point)

    def interval(self, bias: Ints, inputs: bool = True) -> tuple[Ints, Ints]:
        """The least and the greatest sum of each output channel, bias included; `inputs` as in `value_range`."""
        zero, count = self.tensor.zero_point, len(self.weight)
        low, high = (value - zero for value in value_range(self.context, self.tensor, inputs))
        if max(self.window.pads) > 0:
            low, high = min(low, 0), max(high, 0)
        weight = self.weight.astype(np.int64).reshape(count, -1)
        up, down = np.maximum(weight, 0).sum(axis=1), np.minimum(weight, 0).sum(axis=1)
        return up * low + down * high + bias, up * high + down * low + bias

    def provable(self, bias: Ints, multiplier: Floats) -> bool:
        """Has the hardware constants for these entries, whatever the inputs hold?"""
        try:
            for low, high, factor in zip(*self.interval(bias, inputs=False), multiplier, strict=True):
                fixed.scale_for_requantize(float(factor), int(low), int(high))
        except fixed.NotProvable:
            return False
        return True

    def _scales(self, result: QuantizerTarget) -> tuple[Floats, Floats]:
        """Input scale * weight scale, and that / output scale; made once for all operations with the same."""
        key = ("scales", self.tensor.scale, self.scale.shape, self.scale.tobytes(), float(result.scale))
        found: tuple[Floats, Floats] | None = self.context.tables.get(key)
        if found is None:
            combined = np.float32(self.tensor.scale) * self.scale
            multiplier = (combined / result.scale).astype(np.float32)
            if not (multiplier.min() >= SMALLEST_NORMAL and multiplier.max() < np.inf):  # nor is NaN
                what = "input scale * weight scale / output scale leaves float32's range"
                raise BlockedError(what, "check the scales")
            found = self.context.tables[key] = combined, multiplier
        return found

    def _in_parts(self, nodes: tuple[str, ...]) -> tuple[Tensor, Array8]:
        """Input and int8 weights; weights beyond int8 are sums of parts, each with its copy of the input's channels.

        Before: ``sum(x[i] * w[i])``. After: ``sum(x'[n i + k] * part_k[i])`` with ``x'[n i + k] = x[i]``, made by a
        depthwise convolution of ones, which is exact: one product of 1, multiplier 1, the same zero point.
        """
        parts = split(self.weight)
        old, count = self.tensor, len(parts)
        if count == 1:
            return old, parts[0]
        self.context.parts[self.name] = count
        channels, name = old.channels * count, f"{old.name}.copies"
        ones = np.ones((channels, 1, 1, 1), np.int8)
        zeros, unit = np.zeros(channels, np.int32), np.ones(channels, np.float32)
        copy = Conv(name, (old.name,), name, nodes, ones, zeros, unit, groups=old.channels)
        new = self.context.put(copy, (1, channels, *old.shape[2:]), old.scale, old.zero_point)
        shape = (self.weight.shape[0], self.weight.shape[1] * count, *self.weight.shape[2:])
        return new, np.stack(parts, axis=2).reshape(shape)

    def check_sums(self, bias: Ints) -> None:
        """`BlockedError` if a sum can leave 32 bits."""
        reach = max(127 - self.tensor.zero_point, 128 + self.tensor.zero_point)
        if self.weight.dtype == np.int8 and self.bias is None and self.weight[0].size * 128 * reach < 1 << 31:
            return
        largest = np.abs(bias) + np.abs(self.weight.astype(np.int64)).sum(axis=(1, 2, 3)) * reach
        if int(largest.max(initial=0)) >= 1 << 31:
            raise BlockedError(
                f"the sum of channel {int(largest.argmax())} can exceed 32 bits",
                "lower the bias or the number of inputs",
            )


def split(weight: Ints | Array8) -> list[Array8]:
    """As few int8 arrays as possible whose sum is the weights."""
    if weight.dtype == np.int8 or (weight.size and weight.min() >= -128 and weight.max() <= 127):
        return [weight.astype(np.int8)]
    rest, parts = weight.astype(np.int64), []
    while True:
        part = np.clip(rest, -128, 127)
        parts.append(part.astype(np.int8))
        rest = rest - part
        if not rest.any():
            return parts


def integer_bias(
    bias: Const | QuantConst | None, combined: Floats, outputs: int
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """The bias in units of input scale * weight scale, and by how much real number it is another.

    The integers of an int32 bias whose scale is that product (within `SCALE_TOLERANCE`), or those that stand for
    exactly the same in float32; otherwise what QuantizeLinear gives: the quotient in float32, rounded half to even.
    `BlockedError` beyond int32.
    """
    exact = np.zeros(outputs)
    if bias is None:
        return np.zeros(outputs, np.int64), exact
    if isinstance(bias, QuantConst) and not bias.along(bias.zero_point).any():
        scale = np.broadcast_to(bias.along(bias.scale), bias.shape)
        scale, q = _per_output(scale, outputs), _per_output(bias.q, outputs)
        if np.all(np.abs(scale.astype(np.float64) - combined) <= SCALE_TOLERANCE * combined):
            return q.astype(np.int64), exact
    real = _per_output(bias.real() if isinstance(bias, QuantConst) else bias.array, outputs)
    real = real.astype(np.float32)
    ratio = real.astype(np.float64) / combined
    q = np.rint(ratio)
    same = q.astype(np.float32) * combined == real
    q = np.where(same, q, np.rint(real / combined))
    if not bool(np.all(np.abs(q) < 2**31)):  # nor is NaN
        raise BlockedError(
            "the bias in units of input scale * weight scale leaves 32 bits",
            "give channels of small weights a larger scale, as onnxhw quantize does",
        )
    return q.astype(np.int64), np.where(same, 0.0, np.abs(q - ratio) * combined)


def _per_output(values: Array, outputs: int) -> Array:
    """A bias of shape [], [1], [O], [1, O] or [1, O, 1, 1] as [O]; of shape [O, 1] it is one of each row of a Gemm."""
    rows = values.ndim == 2 and len(values) > 1
    if rows or values.size not in (1, outputs) or max(values.shape, default=1) not in (1, outputs):
        raise BlockedError(f"a bias of shape {list(values.shape)} does not fit {outputs} outputs")
    return np.broadcast_to(values.ravel(), (outputs,))
