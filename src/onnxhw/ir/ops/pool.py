"""`MaxPool` and `AveragePool`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ... import fixed
from ...fixed import INT8_MIN, Ints
from ..boxes import Box, window_view
from ..operation import Array8, Clamped, Interval, Operation, Tensor, centred, hull
from ..windows import Pads, Window, joined_pads

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11


@dataclass(frozen=True)
class Pool(Operation):
    """A window over each channel."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    channelwise = True

    @property
    def window(self) -> Window:
        return Window(self.kernel, self.strides, self.dilations, self.pads)

    @property
    def taps(self) -> int:
        return prod(self.kernel)

    def padded(self, pads: Pads) -> "Self | None":
        """Only what is cut: a pool's own padding is left out of its windows, what an operand brings is not."""
        joined = joined_pads(pads, self.pads) if max(pads) <= 0 else None
        return joined and replace(self, pads=joined)

    @property
    def crops(self) -> tuple[bool, bool, bool]:
        return True, True, True

    def needed(self, box: Box, inputs: list[Tensor], y: Tensor) -> list[Box]:
        met = window_view(self.window, box, inputs[0].shape)
        return [Box(box.channels, *(met[:2] if met else ((0, 0), (0, 0))))]

    def part(self, box: Box, inputs: list[Tensor], y: Tensor) -> "Self | None":
        """None where a window meets only padding."""
        met = window_view(self.window, box, inputs[0].shape)
        return replace(self, pads=met[2]) if met else None

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        self.require_count(inputs, 1)
        self.require(inputs[0].channels == y.channels, "pooling keeps the channels")
        self.require_window(inputs[0], y)


@dataclass(frozen=True)
class MaxPool(Pool):
    """Maximum over a window; output and input have the same scale and zero point."""

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        super().check(inputs, y)
        self.require_same_scale(inputs, y)

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        """The padding holds the smallest int8, which never wins against an element."""
        best = reduce(np.maximum, (seen for _, _, seen in self.window.taps(arrays[0], INT8_MIN)))
        return best.astype(np.int64)

    def range(self, inputs: Sequence[Interval]) -> Interval:
        return hull(inputs)


@dataclass(frozen=True)
class AveragePool(Pool, Clamped):
    """``onnxhw.fixed.average`` over a window; `ratio` = input scale / output scale.

    With `count_pad` positions in the padding count as zeros, else they are not counted. A global average
    pool is a window of the whole input.
    """

    ratio: float = 1.0
    count_pad: bool = False
    lo: int = -128
    hi: int = 127

    def check(self, inputs: list[Tensor], y: Tensor) -> None:
        super().check(inputs, y)
        self.require_positive("ratio", self.ratio)
        self.require_clamp()

    def evaluate(self, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
        """Windows are taken in groups of equal divisor; one that meets no element has the sum 0."""
        (x,) = centred(arrays, inputs)
        sums, counts = self._sums(x), self._sums(np.ones((1, 1, *x.shape[2:]), np.int64))[0, 0]
        if self.count_pad:
            counts = np.full_like(counts, self.kernel[0] * self.kernel[1])
        out = np.empty_like(sums)
        for count in np.unique(counts):
            where = counts == count
            divisor = max(1, int(count))
            out[:, :, where] = fixed.average(sums[:, :, where], self.ratio, divisor, y.zero_point, self.lo, self.hi)
        return out

    def _sums(self, x: Ints) -> Ints:
        """The sum over each window, padding counting as zeros."""
        total: Ints = reduce(np.add, (seen.astype(np.int64) for _, _, seen in self.window.taps(x, 0)))
        return total
