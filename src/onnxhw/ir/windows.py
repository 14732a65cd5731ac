"""`Window`: how a kernel slides over rows and columns; convolution and pooling share it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

Pads = tuple[int, int, int, int]
"""Rows and columns added, or if negative left out: (top, left, bottom, right)."""


def window_size(size: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """Number of positions of a window of `kernel` taps along an axis of `size` elements."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def _meets(size: int, positions: int, before: int, _: int, kernel: int, stride: int, dilation: int) -> bool:
    """Does the first tap at or after the input's start lie in it, and is there one, at every position?"""
    for first in range(-before, positions * stride - before, stride):
        skipped = max(0, -(first // dilation))
        if skipped >= kernel or first + skipped * dilation >= size:
            return False
    return True


@dataclass(frozen=True)
class Window:
    """Numbers of rows and of columns each; `pads` is (top, left, bottom, right), a negative one leaves out as many rows
    or columns of the input."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    def axis(self, axis: int) -> tuple[int, int, int, int, int]:
        """Of rows (0) or columns (1) what `window_size` takes: pads before and after, kernel, stride, dilation."""
        return self.pads[axis], self.pads[axis + 2], self.kernel[axis], self.strides[axis], self.dilations[axis]

    def size(self, spatial: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the result on an input of this height and width."""
        return window_size(spatial[0], *self.axis(0)), window_size(spatial[1], *self.axis(1))

    def always_inside(self, spatial: tuple[int, int]) -> bool:
        """Does every position of the window meet at least one element?"""
        rows, cols = self.size(spatial)
        return _meets(spatial[0], rows, *self.axis(0)) and _meets(spatial[1], cols, *self.axis(1))

    def taps(self, x: npt.NDArray[np.generic], fill: float) -> Iterator[tuple[int, int, npt.NDArray[np.generic]]]:
        """For each tap ``(kh, kw)`` the view ``[N, C, OH, OW]`` of what it meets in ``[N, C, H, W]``, `fill` in the
        padding."""
        height, width = x.shape[2:]
        rows, cols = self.size((height, width))
        x = x[:, :, max(0, -self.pads[0]) : height + min(0, self.pads[2])]
        x = x[:, :, :, max(0, -self.pads[1]) : width + min(0, self.pads[3])]
        top, left, bottom, right = (max(0, pad) for pad in self.pads)
        if max(self.pads) > 0:
            x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
        for kh, kw in product(*map(range, self.kernel)):
            y0, x0 = kh * self.dilations[0], kw * self.dilations[1]
            y1, x1 = y0 + (rows - 1) * self.strides[0] + 1, x0 + (cols - 1) * self.strides[1] + 1
            yield kh, kw, x[:, :, y0 : y1 : self.strides[0], x0 : x1 : self.strides[1]]


def joined_pads(first: Pads, then: Pads) -> Pads | None:
    """Both paddings as one; None where the first cuts what the second would bring back as padding."""
    if any(one < 0 < other for one, other in zip(first, then, strict=True)):
        return None
    top, left, bottom, right = map(sum, zip(first, then, strict=True))
    return top, left, bottom, right


ONE_PIXEL = Window()
