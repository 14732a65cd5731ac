"""The constants of a Softmax in integers (see `softmax`), which define what it computes."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, log

import numpy as np
import numpy.typing as npt

from ..values import Floats, Ints

HIGH = 127
"""Weight of the upper half of an exponential."""
ONE = HIGH * 255
"""The exponential of 0."""
MOST = 256
"""Most elements of a Softmax: their sum fits the requantizer's 24 bits."""
STEP = 0.12
"""Largest scale of a difference: what is 255 of them below the maximum is nothing."""
LEAST = 0.0003
"""Smallest scale of the input: below 0.00026 even the weights 1 and 4 of `weights` give a ratio, ``exp(1020 * scale)``,
below `RATIO`, and segments become more and more."""
RATIO = 1.3
"""About the ratio of a segment's ends, of the sum. A smaller one takes more segments, each a channel of a convolution;
below ``exp(255 * STEP / 127)``, 1.273, a weight of `weights` would exceed int8 at scale `STEP`. A larger one makes a
segment's 255 steps coarser: with 1.3 they are 0.12 % of the sum at most."""
OCTAVES = 7
"""Octaves of the result that are followed exactly; one more place has the rest."""
REST = 1.5
"""How much of u the rest is spread over. It is as high as two levels of a result of scale 1/256. With 1.5 the u at
which that rounds from 2 levels to 1 is right: 0.289 behind the last octave, where the exponential's is 0.288."""
STEPS = np.arange(256)


@dataclass(frozen=True)
class SoftmaxConstants:
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
        return _integers(ONE * self.ratio ** np.arange(segments))

    @cached_property
    def exponentials(self) -> Ints:
        """E of d = -255 .. 0."""
        return _integers(np.exp(self.step * np.arange(-255.0, 1)) * ONE)

    @cached_property
    def logarithms(self) -> Ints:
        """T of each step of a segment."""
        return _integers(255 * np.log1p(STEPS / 255 * (self.ratio - 1)) / log(self.ratio))

    @cached_property
    def powers(self) -> Ints:
        """G of each step of an octave: 255 at its upper end, 0 half as high."""
        return _integers(255 * (np.exp2(1 + (STEPS - 255) / 255) - 1))

    @cached_property
    def sum_multipliers(self) -> Floats:
        """From s to a segment's steps."""
        return np.asarray(255 / (ONE * self.ratio ** np.arange(len(self.starts)) * (self.ratio - 1)), np.float32)

    @cached_property
    def offsets(self) -> Ints:
        """Where each octave of u begins, in its units; the rest comes last."""
        return _integers(np.arange(OCTAVES + 1) * log(2) / self.unit)

    @cached_property
    def multipliers(self) -> Floats:
        """From u to an octave's steps."""
        spread = np.array([log(2)] * OCTAVES + [REST])
        return np.asarray(255 * self.unit / spread, np.float32)

    @cached_property
    def places(self) -> Ints:
        """The octaves' weights; the rest is as high as the last octave's upper half."""
        return np.array([*(1 << np.arange(OCTAVES)[::-1]), 1])


def _integers(values: npt.NDArray[np.floating]) -> Ints:
    return np.asarray(np.rint(values), np.int64)
