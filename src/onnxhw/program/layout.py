"""Where a tensor lies in activation memory, and how memory images become host words."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..isa.memory import host_stride


def to_host(image: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint32]:
    """Host words of a memory image: uint8 ``[words, size]`` -> uint32 ``[words * host_stride(size)]``."""
    stride = host_stride(size)
    padded = np.zeros((len(image), stride * 4), np.uint8)
    padded[:, :size] = image.reshape(len(image), size)
    return padded.reshape(-1).view("<u4").astype(np.uint32)


def from_host(words: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint8]:
    """Inverse of `to_host`."""
    stride = host_stride(size)
    return words.astype("<u4").view(np.uint8).reshape(-1, stride * 4)[:, :size].copy()


@dataclass(frozen=True)
class Place:
    """Where a tensor ``(1, C, H, W)`` lies in activation memory.

    Channel c of pixel (y, x) is lane ``(lane + c) % word`` of the word at
    ``base + (lane + c) // word * plane + y * row + x``.
    """

    base: int
    plane: int
    row: int
    shape: tuple[int, int, int, int]
    lane: int = 0

    def blocks(self, word: int) -> int:
        """Activation words along the channels."""
        return -(-(self.lane + self.shape[1]) // word)

    def addresses(self, word: int) -> npt.NDArray[np.int64]:
        """Word addresses ``[blocks, H, W]``."""
        _, _, height, width = self.shape
        block, y, x = np.meshgrid(np.arange(self.blocks(word)), np.arange(height), np.arange(width), indexing="ij")
        return self.base + block * self.plane + y * self.row + x

    def pack(self, values: npt.NDArray[np.int8], word: int, fill: int = 0) -> npt.NDArray[np.uint8]:
        """The words ``[blocks, H, W, word]`` of a tensor, unused lanes holding `fill`."""
        _, channels, height, width = self.shape
        lanes = np.full((self.blocks(word) * word, height, width), fill, np.int8)
        lanes[self.lane : self.lane + channels] = values.reshape(channels, height, width)
        return lanes.reshape(self.blocks(word), word, height, width).transpose(0, 2, 3, 1).copy().view(np.uint8)

    def unpack(self, words: npt.NDArray[np.uint8], word: int) -> npt.NDArray[np.int8]:
        """Inverse of `pack`: int8 ``(1, C, H, W)``."""
        _, channels, height, width = self.shape
        lanes = words.view(np.int8).reshape(self.blocks(word), height, width, word).transpose(0, 3, 1, 2)
        return lanes.reshape(-1, height, width)[self.lane : self.lane + channels].reshape(self.shape).copy()
