"""Softmax in integers, where operations of the hardware read its result: `Numbers` defines it, `Softmax` makes it.

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
from functools import cached_property
from math import ceil, exp, log, prod

import numpy as np

from ...ir.graph import Add, Concat, Conv, Tensor
from ..blockers import BlockedError
from ..context import Context
from ..quant.qdq import enter_table
from ..values import Floats, Held, Ints, Moves, Pending, Result
from .operands import expanded
from .pool import maximum
from .reduce import channel_maximum, over
from .window import Window

HIGH = 127
"""Weight of the upper half of an exponential."""
ONE = HIGH * 255
"""The exponential of 0."""
MOST = 256
"""Most elements of a Softmax: their sum fits the requantizer's 24 bits."""
STEP = 0.12
"""Largest scale of a difference: what is 255 of them below the maximum is nothing."""
LEAST = 0.0003
"""Smallest scale of the input."""
RATIO = 1.3
"""About the ratio of a segment's ends, of the sum."""
OCTAVES = 7
"""Octaves of the result that are followed exactly; one more place has the rest."""
REST = 1.5
"""How much of u the rest is spread over."""
STEPS = np.arange(256)


@dataclass(frozen=True)
class Numbers:
    """The constants of a Softmax over `count` elements of scale `scale`, and what it computes.

    All formulas are those of the operations that `Softmax` adds; integers here are counted from 0.
    """

    scale: float
    count: int

    @cached_property
    def factor(self) -> int:
        """c: differences are multiplied by it, so that they lie close enough together and reach far enough."""
        return min(255, max(1, ceil(self.scale / STEP)))

    @cached_property
    def step(self) -> float:
        """The scale of d."""
        return min(self.scale, 255 * STEP) / self.factor

    @cached_property
    def weights(self) -> tuple[int, int]:
        """Weights of d and of t: u is ``(t * weights[1] - d * weights[0]) * unit``."""
        wanted = self.step * 255 / log(RATIO)
        pairs = [(max(1, round(wanted * weight)), weight) for weight in range(1, 5)]
        return min((pair for pair in pairs if pair[0] <= 127), key=lambda pair: abs(log(wanted * pair[1] / pair[0])))

    @cached_property
    def base(self) -> int:
        """t is ``base * a + b``."""
        return 127 // self.weights[1]

    @cached_property
    def unit(self) -> float:
        """One step of u's sum."""
        return self.step / self.weights[0]

    @cached_property
    def ratio(self) -> float:
        """Ratio of a segment's ends: 255 steps of t."""
        return exp(255 * self.unit * self.weights[1])

    @cached_property
    def starts(self) -> Ints:
        """Where each segment of the sum starts."""
        segments = max(1, ceil(log(self.count) / log(self.ratio) - 1e-9))
        return np.rint(ONE * self.ratio ** np.arange(segments)).astype(np.int64)

    @cached_property
    def exponentials(self) -> Ints:
        """E of d = -255 .. 0."""
        return np.rint(np.exp(self.step * np.arange(-255.0, 1)) * ONE).astype(np.int64)

    @cached_property
    def logarithms(self) -> Ints:
        """T of each step of a segment."""
        return np.rint(255 * np.log1p(STEPS / 255 * (self.ratio - 1)) / log(self.ratio)).astype(np.int64)

    @cached_property
    def powers(self) -> Ints:
        """G of each step of an octave: 255 at its upper end, 0 half as high."""
        return np.rint(255 * (np.exp2(1 + (STEPS - 255) / 255) - 1)).astype(np.int64)

    @cached_property
    def sum_multipliers(self) -> Floats:
        """From s to a segment's steps."""
        return np.asarray(255 / (ONE * self.ratio ** np.arange(len(self.starts)) * (self.ratio - 1)), np.float32)

    @cached_property
    def offsets(self) -> Ints:
        """Where each octave of u begins, in its units; the rest comes last."""
        return np.rint(np.arange(OCTAVES + 1) * log(2) / self.unit).astype(np.int64)

    @cached_property
    def multipliers(self) -> Floats:
        """From u to an octave's steps."""
        spread = np.array([log(2)] * OCTAVES + [REST])
        return np.asarray(255 * self.unit / spread, np.float32)

    @cached_property
    def places(self) -> Ints:
        """The octaves' weights; the rest is as high as the last octave's upper half."""
        return np.array([*(1 << np.arange(OCTAVES)[::-1]), 1])


def softmax(context: Context, name: str, x: Held, axes: list[int]) -> Pending:
    """The Softmax of a quantized value over some axes of its shape."""
    tensor, window = context.materialise(x), over(x.shape, axes)
    channels = (0 if len(x.shape) == 1 else 1) in axes and tensor.channels > 1
    count = prod(window.kernel) * (tensor.channels if channels else 1)
    if not 2 <= count <= MOST or max(window.kernel) > 255:
        raise BlockedError(f"a Softmax over {count} elements", f"the hardware has those over 2 to {MOST} elements")
    if not LEAST <= tensor.scale <= 1e5:
        raise BlockedError(f"the scale of its input is {tensor.scale:g}", "check the scales")
    made = Softmax(context, name, tensor, window, channels, Numbers(tensor.scale, count))
    return Pending(made.finish, Moves.of(tensor.shape, x.shape), (name,))


@dataclass(frozen=True)
class Softmax:
    """A Softmax over a window of pixels, over the channels too if `channels`, that waits for its result's scale."""

    context: Context
    name: str
    tensor: Tensor
    window: Window
    channels: bool
    numbers: Numbers

    def finish(self, result: Result) -> Tensor:
        """Add the operations."""
        multiplier = np.float32(1 / (255 * 2**OCTAVES * np.float64(result.scale)))
        if not 2.0**-23 <= multiplier <= 2.0**7:
            raise BlockedError(f"the scale of its result is {result.scale:g}", "check the scales")
        differences = self._differences(result)
        logarithms = self._logarithms(differences, result)
        joined = self._joined([differences, *logarithms], f"{result.name}.operands")
        powers = self._powers(joined, result)
        channels = self.tensor.channels
        weight = np.zeros((channels, powers.channels, 1, 1), np.int8)
        for place, height in enumerate(self.numbers.places):
            weight[np.arange(channels), place * channels + np.arange(channels)] = height
        out = self.context.tensor(result.name, self.tensor.shape, float(result.scale), result.zero_point)
        bias, multipliers = np.zeros(channels, np.int32), np.full(channels, multiplier, np.float32)
        made = Conv(self.name, (powers.name,), out.name, result.nodes, weight, bias, multipliers)
        self.context.add(replace(made, lo=result.lo, hi=result.hi))
        return out

    def _differences(self, result: Result) -> Tensor:
        """d, at zero point 127."""
        context, x, factor = self.context, self.tensor, float(self.numbers.factor)
        most = maximum(context, _whole(x), self.window, f"{result.name}.max", self.name)
        assert isinstance(most, Held)
        highest = channel_maximum(context, most.tensor, result.name, self.name) if self.channels else most.tensor
        count = x.channels
        weight, bias, ones = np.full((count, 1, 1, 1), -1, np.int8), np.zeros(count, np.int32), np.ones(count, np.float32)
        negated = context.tensor(f"{result.name}.negated", highest.shape, x.scale, -1 - x.zero_point)
        made = Conv(self.name, (highest.name,), negated.name, result.nodes, weight, bias, ones, groups=count)
        context.add(made)
        spread = self._spread(negated)
        out = context.tensor(f"{result.name}.differences", x.shape, self.numbers.step, 127)
        context.add(Add(self.name, (x.name, spread.name), out.name, result.nodes, factor, factor))
        return out

    def _logarithms(self, differences: Tensor, result: Result) -> list[Tensor]:
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
        weight = weight.reshape(segments * groups, 2 * count, *self.window.kernel)
        rows, cols = self.window.size((self.tensor.height, self.tensor.width))
        sums = context.tensor(f"{result.name}.sums", (1, segments * groups, rows, cols), 1 / 255, -128)
        bias = np.repeat(-numbers.starts, groups).astype(np.int32)
        multiplier = np.repeat(numbers.sum_multipliers, groups)
        context.add(Conv(self.name, (halves.name,), sums.name, result.nodes, weight, bias, multiplier))
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
        out = self.context.tensor(output, (1, groups, *x.shape[2:]), x.scale, 127)
        biases, multipliers = np.full(groups, bias - 255 * segments, np.int32), np.full(groups, multiplier, np.float32)
        kernel = weight.reshape(groups, -1, 1, 1)
        self.context.add(Conv(self.name, (x.name,), out.name, (self.name,), kernel, biases, multipliers))
        return out

    def _powers(self, joined: Tensor, result: Result) -> Tensor:
        """G of each octave."""
        context, numbers, count = self.context, self.numbers, self.tensor.channels
        octaves = len(numbers.places)
        of_d, of_t = numbers.weights
        weight = np.zeros((octaves, count, joined.channels, 1, 1), np.int8)
        for channel in range(count):
            own = 0 if self.channels else channel
            weight[:, channel, channel] = of_d
            weight[:, channel, count + own] = of_t * numbers.base
            weight[:, channel, (joined.channels + count) // 2 + own] = of_t
        weight = weight.reshape(octaves * count, joined.channels, 1, 1)
        bias = np.repeat(numbers.offsets, count).astype(np.int32)
        places = context.tensor(f"{result.name}.octaves", (1, octaves * count, *self.tensor.shape[2:]), 1 / 255, 127)
        multiplier = np.repeat(numbers.multipliers, count)
        context.add(Conv(self.name, (joined.name,), places.name, result.nodes, weight, bias, multiplier))
        name, nodes = f"{result.name}.powers", (*result.nodes, self.name)
        return enter_table(context, places, numbers.powers - 128, name, 1 / 255, -128, nodes)

    def _spread(self, tensor: Tensor) -> Tensor:
        """A tensor of the windows, over their pixels."""
        shape = (1, tensor.channels, *self.tensor.shape[2:])
        return expanded(self.context, _whole(tensor), shape, self.name).tensor

    def _joined(self, tensors: list[Tensor], output: str) -> Tensor:
        """The tensors' channels one after the other."""
        first = tensors[0]
        shape = (1, sum(tensor.channels for tensor in tensors), *first.shape[2:])
        out = self.context.tensor(output, shape, first.scale, first.zero_point)
        self.context.add(Concat(self.name, tuple(tensor.name for tensor in tensors), out.name, (self.name,)))
        return out


def _whole(tensor: Tensor) -> Held:
    return Held(tensor, Moves.of(tensor.shape, tensor.shape))
