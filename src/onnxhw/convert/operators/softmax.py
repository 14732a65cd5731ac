"""Softmax in integers, where operations of the hardware read its result.

In units of ``u = -ln y`` everything that follows the exponential is a sum, and a sum is a convolution::

    d = c * (x - max)                       exact; e^(scale * d) is the exponential
    E = 127 * hi + lo                       e^(scale * d) in 32385ths, two tables
    s = sum of E                            exact, in the accumulators of one convolution, and from there
    q[k] = s on the segment ratio^k ..      8 bits of each segment, saturated outside
    t = sum of T[q[k]]                      ln s, T one table for all segments
    t = base * a + b                        exact, two convolutions: t has more than 8 bits
    u = t - d                               in the accumulators of one convolution, and from there
    v[j] = u on the octave 2^-j ..          8 bits of each octave, saturated outside
    y = sum of 2^-j * G[v[j]]               e^-u, G one table for all octaves

Source: the saturation of the requantizer splits a sum into segments, whose contributions add up again.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...ir.graph import Add, Conv, Tensor
from ..blockers import BlockedError
from ..context import Context
from ..dialects.qdq import enter_table
from ..values import AxisMoves, QuantizedView, QuantizerTarget, Unquantized
from .arrange import joined, materialise
from .operands import expanded
from .pool import maximum
from .reduce import channel_maximum, over
from .softmax_constants import HIGH, LEAST, MOST, OCTAVES, SoftmaxConstants
from .window import Window


def softmax(context: Context, name: str, x: QuantizedView, axes: list[int]) -> Unquantized:
    """The Softmax of a quantized value over some axes of its shape."""
    tensor, window = materialise(context, x), over(x.shape, axes)
    channels = (0 if len(x.shape) == 1 else 1) in axes and tensor.channels > 1
    count = prod(window.kernel) * (tensor.channels if channels else 1)
    if not 2 <= count <= MOST or max(window.kernel) > 255:
        raise BlockedError(f"a Softmax over {count} elements", f"the hardware has those over 2 to {MOST} elements")
    if not LEAST <= tensor.scale <= 1e5:
        raise BlockedError(f"the scale of its input is {tensor.scale:g}", "check the scales")
    made = Softmax(context, name, tensor, window, channels, SoftmaxConstants(tensor.scale, count))
    return Unquantized(made.finish, AxisMoves.of(tensor.shape, x.shape), (name,))


@dataclass(frozen=True)
class Softmax:
    """A Softmax over a window of pixels, over the channels too if `channels`, that waits for its result's scale."""

    context: Context
    name: str
    tensor: Tensor
    window: Window
    channels: bool
    numbers: SoftmaxConstants

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Add the operations."""
        multiplier = np.float32(1 / (255 * 2**OCTAVES * np.float64(result.scale)))
        if not 2.0**-23 <= multiplier <= 2.0**7:
            raise BlockedError(f"the scale of its result is {result.scale:g}", "check the scales")
        differences = self._differences(result)
        logarithms = self._logarithms(differences, result)
        operands = self._joined([differences, *logarithms], f"{result.name}.operands")
        powers = self._powers(operands, result)
        channels = self.tensor.channels
        weight = np.zeros((channels, powers.channels, 1, 1), np.int8)
        for place, height in enumerate(self.numbers.places):
            weight[np.arange(channels), place * channels + np.arange(channels)] = height
        bias, multipliers = np.zeros(channels, np.int32), np.full(channels, multiplier, np.float32)
        made = Conv(self.name, (powers.name,), result.name, result.nodes, weight, bias, multipliers)
        clamped = replace(made, lo=result.lo, hi=result.hi)
        return self.context.put(clamped, self.tensor.shape, result.scale, result.zero_point)

    def _differences(self, result: QuantizerTarget) -> Tensor:
        """d, at zero point 127."""
        context, x, factor = self.context, self.tensor, float(self.numbers.factor)
        most = maximum(context, _whole(x), self.window, f"{result.name}.max", self.name)
        assert isinstance(most, QuantizedView)
        highest = channel_maximum(context, most.tensor, result.name, self.name) if self.channels else most.tensor
        count = x.channels
        weight, bias = np.full((count, 1, 1, 1), -1, np.int8), np.zeros(count, np.int32)
        ones = np.ones(count, np.float32)
        name = f"{result.name}.negated"
        made = Conv(self.name, (highest.name,), name, result.nodes, weight, bias, ones, groups=count)
        spread = self._spread(context.put(made, highest.shape, x.scale, -1 - x.zero_point))
        names = (x.name, spread.name)
        added = Add(self.name, names, f"{result.name}.differences", result.nodes, factor, factor)
        return context.put(added, x.shape, self.numbers.step, 127)

    def _logarithms(self, differences: Tensor, result: QuantizerTarget) -> list[Tensor]:
        """-a and -b, spread over the window; at the zero point of the differences, for they are joined."""
        context, numbers, count = self.context, self.numbers, self.tensor.channels
        parts = []
        for label, values in (("high", numbers.exponentials // HIGH), ("low", numbers.exponentials % HIGH)):
            entries, name = values - 128, f"{result.name}.{label}"
            parts.append(enter_table(context, differences, entries, name, 1 / 255, -128, (*result.nodes, self.name)))
        halves = self._joined(parts, f"{result.name}.exponentials")
        segments = len(numbers.starts)
        groups = 1 if self.channels else count
        weight = np.zeros((segments, groups, 2, count, *self.window.kernel), np.int8)
        for group in range(groups):
            chosen = slice(None) if self.channels else group
            weight[:, group, 0, chosen], weight[:, group, 1, chosen] = HIGH, 1
        kernel = weight.reshape(segments * groups, 2 * count, *self.window.kernel)
        rows, cols = self.window.size((self.tensor.height, self.tensor.width))
        bias = np.repeat(-numbers.starts, groups).astype(np.int32)
        multiplier = np.repeat(numbers.sum_multipliers, groups)
        made = Conv(self.name, (halves.name,), f"{result.name}.sums", result.nodes, kernel, bias, multiplier)
        sums = context.put(made, (1, segments * groups, rows, cols), 1 / 255, -128)
        entries, nodes = numbers.logarithms - 128, (*result.nodes, self.name)
        each = enter_table(context, sums, entries, f"{result.name}.logarithms", differences.scale, 127, nodes)
        high = self._total(each, each, 0, numbers.base // 2, 1 / numbers.base, f"{result.name}.a")
        both = self._joined([each, high], f"{result.name}.parts")
        return [self._spread(high), self._spread(self._total(each, both, -numbers.base, 0, 1, f"{result.name}.b"))]

    def _total(self, each: Tensor, x: Tensor, last: int, bias: int, multiplier: float, output: str) -> Tensor:
        """``(bias - t + last * x's last channels) * multiplier``, at zero point 127."""
        segments = len(self.numbers.starts)
        groups = each.channels // segments
        weight = np.zeros((groups, x.channels // groups, groups), np.int8)
        for group in range(groups):
            weight[group, :segments, group], weight[group, segments:, group] = -1, last
        biases, multipliers = np.full(groups, bias - 255 * segments, np.int32), np.full(groups, multiplier, np.float32)
        kernel = weight.reshape(groups, -1, 1, 1)
        made = Conv(self.name, (x.name,), output, (self.name,), kernel, biases, multipliers)
        return self.context.put(made, (1, groups, *x.shape[2:]), x.scale, 127)

    def _powers(self, operands: Tensor, result: QuantizerTarget) -> Tensor:
        """G of each octave."""
        context, numbers, count = self.context, self.numbers, self.tensor.channels
        octaves = len(numbers.places)
        of_d, of_t = numbers.weights
        weight = np.zeros((octaves, count, operands.channels, 1, 1), np.int8)
        for channel in range(count):
            own = 0 if self.channels else channel
            weight[:, channel, channel] = of_d
            weight[:, channel, count + own] = of_t * numbers.base
            weight[:, channel, (operands.channels + count) // 2 + own] = of_t
        kernel = weight.reshape(octaves * count, operands.channels, 1, 1)
        bias = np.repeat(numbers.offsets, count).astype(np.int32)
        multiplier = np.repeat(numbers.multipliers, count)
        made = Conv(self.name, (operands.name,), f"{result.name}.octaves", result.nodes, kernel, bias, multiplier)
        places = context.put(made, (1, octaves * count, *self.tensor.shape[2:]), 1 / 255, 127)
        name, nodes = f"{result.name}.powers", (*result.nodes, self.name)
        return enter_table(context, places, numbers.powers - 128, name, 1 / 255, -128, nodes)

    def _spread(self, tensor: Tensor) -> Tensor:
        """A tensor of the windows, over their pixels."""
        shape = (1, tensor.channels, *self.tensor.shape[2:])
        return expanded(self.context, _whole(tensor), shape, self.name).tensor

    def _joined(self, tensors: list[Tensor], output: str) -> Tensor:
        """The tensors' channels one after the other."""
        return joined(self.context, tensors, output, self.name, (self.name,))


def _whole(tensor: Tensor) -> QuantizedView:
    return QuantizedView(tensor, AxisMoves.of(tensor.shape, tensor.shape))
