"""How a tensor of the model is stored in activation memory where it does not lie as it is.

The tensor table names the model's tensors. A pass may store another array in the place of one, from which the model's
follows: of an input its bytes in a row (`PackedInput`), of another tensor all but its constant channels
(`ElidedChannels`). All that moves tensors between arrays and memories asks these two, so the user, the golden model and
every comparison see the model's tensors alone.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array8 = npt.NDArray[np.int8]
Shape = tuple[int, int, int, int]
Element = tuple[int, int, int, int]


@dataclass(frozen=True)
class ElidedChannels:
    """A tensor of which only the channels `channels` are stored, in that order; the others hold one value everywhere.

    `values` has that value for each channel that is not stored, in order.
    """

    channels: tuple[int, ...]
    values: tuple[int, ...]

    def stored_shape(self, shape: Shape) -> Shape:
        """Shape of the stored array, from the model's; `ValueError` if the channels are not the model's."""
        count = len(self.channels) + len(self.values)
        if not self.channels or count != shape[1] or len({*self.channels} & {*range(count)}) < len(self.channels):
            raise ValueError(f"channels {self.channels} and {len(self.values)} constants are not {shape[1]} channels")
        return 1, len(self.channels), shape[2], shape[3]

    def restore(self, stored: Array8, shape: Shape) -> Array8:
        """The model's tensor, int8 ``(1, C, H, W)``."""
        values = np.empty(shape, np.int8)
        others = np.ones(shape[1], bool)
        others[list(self.channels)] = False
        values[:, list(self.channels)] = stored
        values[:, others] = np.array(self.values, np.int8)[:, None, None]
        return values

    def element(self, at: Element, shape: Shape) -> Element | None:
        """Where the stored array holds an element of the model's tensor; None for a constant."""
        if at[1] not in self.channels:
            return None
        return at[0], self.channels.index(at[1]), at[2], at[3]


@dataclass(frozen=True)
class PackedInput:
    """An input stored as bytes in a row: lane l of word w is byte ``w * word + l``, of `words` words.

    Element (c, y, x) is byte ``first + y * row + x * column + c``; every other byte is the zero point.
    """

    word: int
    words: int
    first: int
    row: int
    column: int

    def stored_shape(self, shape: Shape) -> Shape:
        """Shape of the stored array, from the model's; `ValueError` if two elements share a byte, or one has none."""
        _, channels, height, width = shape
        small, large = sorted([(self.row, height), (self.column, width)])
        apart = small[0] >= channels and large[0] >= (small[1] - 1) * small[0] + channels
        last = self.first + (height - 1) * self.row + (width - 1) * self.column + channels - 1
        if min(self.word, self.words) < 1 or self.first < 0 or not apart or last >= self.word * self.words:
            raise ValueError(f"{self} does not hold a tensor of shape {shape}")
        return 1, self.word, 1, self.words

    def store(self, values: Array8, zero_point: int) -> Array8:
        """The stored array of the model's int8 ``(1, C, H, W)``."""
        flat = np.full(self.word * self.words, zero_point, np.int8)
        flat[self._bytes(values.shape)] = values
        return flat.reshape(1, 1, self.words, self.word).transpose(0, 3, 1, 2).copy()

    def restore(self, stored: Array8, shape: Shape) -> Array8:
        """The model's tensor."""
        return stored.transpose(0, 2, 3, 1).reshape(-1)[self._bytes(shape)]

    def element(self, at: Element, shape: Shape) -> Element:
        """Where the stored array holds an element of the model's tensor."""
        word, lane = divmod(int(self._bytes(shape)[at]), self.word)
        return 0, lane, 0, word

    def _bytes(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Which byte each element is, ``(1, C, H, W)``."""
        _, c, y, x = np.indices(shape)
        return np.asarray(self.first + y * self.row + x * self.column + c, np.int64)


StorageFormat = PackedInput | ElidedChannels
"""How memory keeps a tensor of the model as another array."""
