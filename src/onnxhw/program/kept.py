"""How a tensor of the model is kept in activation memory where it is not kept as it is.

The tensor table names the model's tensors. A pass may keep another array in the place of one, from which the
model's follows (`Constants`), or which follows from the model's (`Patches`). All that moves tensors between arrays and
memories asks these two, so the user, the golden model and every comparison see the model's tensors alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..ir.windows import window_size

Array8 = npt.NDArray[np.int8]
Shape = tuple[int, int, int, int]
Element = tuple[int, int, int, int]


@dataclass(frozen=True)
class Patches:
    """An input kept as what the positions of a window meet, so that channels are taps and channels together.

    Channel ``(kh * KW + kw) * C + c`` of pixel (oh, ow) is channel c of the model's pixel
    ``(oh * strides[0] - pads[0] + kh * dilations[0], ow * strides[1] - pads[1] + kw * dilations[1])``; in the padding
    it is the zero point. `pads` is (top, left, bottom, right), negative where rows or columns are left out.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]

    def kept(self, shape: Shape) -> Shape:
        """Shape of the kept array, from the model's; `ValueError` if no window lies in it."""
        (kh, kw), (top, left, bottom, right) = self.kernel, self.pads
        if min(kh, kw, *self.strides, *self.dilations) < 1:
            raise ValueError(f"{self} is no window")
        height = window_size(shape[2], top, bottom, kh, self.strides[0], self.dilations[0])
        width = window_size(shape[3], left, right, kw, self.strides[1], self.dilations[1])
        if min(height, width) < 1:
            raise ValueError(f"{self} has no position in a tensor of shape {shape}")
        return 1, kh * kw * shape[1], height, width

    def store(self, values: Array8, zero_point: int) -> Array8:
        """The kept array of the model's int8 ``(1, C, H, W)``."""
        return np.append(values.reshape(-1), np.int8(zero_point))[self._elements(values.shape)]

    def restore(self, kept: Array8, shape: Shape) -> Array8 | None:
        """The model's tensor, or None if some of its elements lie in no patch."""
        elements = self._elements(shape)
        values, met = np.zeros(int(np.prod(shape)) + 1, np.int8), np.zeros(int(np.prod(shape)) + 1, bool)
        values[elements], met[elements] = kept, True
        return values[:-1].reshape(shape) if met[:-1].all() else None

    def element(self, at: Element, shape: Shape) -> Element | None:
        """Where the kept array holds an element of the model's tensor first."""
        found = np.argwhere(self._elements(shape) == np.ravel_multi_index(at, shape))
        return _four(found[0]) if len(found) else None

    def _elements(self, shape: Sequence[int]) -> npt.NDArray[np.int64]:
        return _elements(self, _four(shape))


@lru_cache(maxsize=16)
def _elements(patches: Patches, shape: Shape) -> npt.NDArray[np.int64]:
    """Which element of the model's tensor, counted through it, each of the kept array is; one behind the last: padding.
    """
    _, channels, height, width = shape
    rows, cols = patches.kept(shape)[2:]
    (kh, kw), (sh, sw), (dh, dw) = patches.kernel, patches.strides, patches.dilations
    c = np.arange(channels)[:, None, None]
    found = np.empty((kh, kw, channels, rows, cols), np.int64)
    for tap in np.ndindex(kh, kw):
        y = (np.arange(rows) * sh - patches.pads[0] + tap[0] * dh)[:, None]
        x = np.arange(cols) * sw - patches.pads[1] + tap[1] * dw
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        found[tap] = np.where(inside, (c * height + y) * width + x, channels * height * width)
    found.setflags(write=False)
    return found.reshape(1, kh * kw * channels, rows, cols)


@dataclass(frozen=True)
class Constants:
    """A tensor of which only the channels `channels` are kept, in that order; the others hold one value everywhere.

    `values` has that value for each channel that is not kept, in order.
    """

    channels: tuple[int, ...]
    values: tuple[int, ...]

    def kept(self, shape: Shape) -> Shape:
        """Shape of the kept array, from the model's; `ValueError` if the channels are not the model's."""
        count = len(self.channels) + len(self.values)
        if not self.channels or count != shape[1] or len({*self.channels} & {*range(count)}) < len(self.channels):
            raise ValueError(f"channels {self.channels} and {len(self.values)} constants are not {shape[1]} channels")
        return 1, len(self.channels), shape[2], shape[3]

    def restore(self, kept: Array8, shape: Shape) -> Array8:
        """The model's tensor, int8 ``(1, C, H, W)``."""
        values = np.empty(shape, np.int8)
        others = np.ones(shape[1], bool)
        others[list(self.channels)] = False
        values[:, list(self.channels)] = kept
        values[:, others] = np.array(self.values, np.int8)[:, None, None]
        return values

    def element(self, at: Element, shape: Shape) -> Element | None:
        """Where the kept array holds an element of the model's tensor; None for a constant."""
        if at[1] not in self.channels:
            return None
        return at[0], self.channels.index(at[1]), at[2], at[3]


@dataclass(frozen=True)
class Packed:
    """An input kept as bytes in a row: lane l of word w is byte ``w * word + l``, of `words` words.

    Element (c, y, x) is byte ``first + y * row + x * column + c``; every other byte is the zero point.
    """

    word: int
    words: int
    first: int
    row: int
    column: int

    def kept(self, shape: Shape) -> Shape:
        """Shape of the kept array, from the model's; `ValueError` if two elements share a byte, or one has none."""
        _, channels, height, width = shape
        small, large = sorted([(self.row, height), (self.column, width)])
        apart = small[0] >= channels and large[0] >= (small[1] - 1) * small[0] + channels
        last = self.first + (height - 1) * self.row + (width - 1) * self.column + channels - 1
        if min(self.word, self.words) < 1 or self.first < 0 or not apart or last >= self.word * self.words:
            raise ValueError(f"{self} does not hold a tensor of shape {shape}")
        return 1, self.word, 1, self.words

    def store(self, values: Array8, zero_point: int) -> Array8:
        """The kept array of the model's int8 ``(1, C, H, W)``."""
        flat = np.full(self.word * self.words, zero_point, np.int8)
        flat[self._bytes(_four(values.shape))] = values
        return flat.reshape(1, 1, self.words, self.word).transpose(0, 3, 1, 2).copy()

    def restore(self, kept: Array8, shape: Shape) -> Array8:
        """The model's tensor."""
        return kept.transpose(0, 2, 3, 1).reshape(-1)[self._bytes(shape)]

    def element(self, at: Element, shape: Shape) -> Element:
        """Where the kept array holds an element of the model's tensor."""
        word, lane = divmod(int(self._bytes(shape)[at]), self.word)
        return 0, lane, 0, word

    def _bytes(self, shape: Shape) -> npt.NDArray[np.int64]:
        """Which byte each element is, ``(1, C, H, W)``."""
        _, c, y, x = np.indices(shape)
        return np.asarray(self.first + y * self.row + x * self.column + c, np.int64)


Kept = Patches | Packed | Constants
"""How memory keeps a tensor of the model as another array."""


def _four(numbers: Sequence[int] | npt.NDArray[np.int64]) -> Shape:
    n, c, h, w = (int(number) for number in numbers)
    return n, c, h, w
