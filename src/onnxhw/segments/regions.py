"""Where tensors lie in external memory, and the moves that bring a box of one to activation memory or back.

A tensor lies there as in activation memory: blocks of W channels, rows, columns, a word of W bytes for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.boxes import Box
from ..isa.memory import Space, host_stride
from ..program.layout import Place

MOST_WORDS = (1 << 14) - 1
"""Host words of a run of a `Move`."""
STRIPE = 1024
"""Host words of a box that are moved at once, about: some 2,100 cycles, of which a move for itself costs 20."""
MOST_RUNS = (1 << 12) - 1
"""Runs, and blocks, of a `Move`."""


@dataclass(frozen=True)
class Strided:
    """Fields of a `Move` that copies words: counts of three nested levels, and the steps of both sides."""

    chip: int
    external: int
    counts: tuple[int, int, int]
    chip_steps: tuple[int, int]
    external_steps: tuple[int, int]

    def fields(self, space: Space, store: bool) -> dict[str, int]:
        """By name."""
        block_n, run_n, word_n = self.counts
        names = ("c_block", "c_run"), ("e_block", "e_run")
        steps = zip((*names[0], *names[1]), (*self.chip_steps, *self.external_steps), strict=True)
        return {
            "space": int(space), "store": int(store), "chip": self.chip, "external": self.external,
            "block_n": block_n, "run_n": run_n, "word_n": word_n, **dict(steps),
        }  # fmt: skip


def linear(chip: int, external: int, words: int) -> Iterator[Strided]:
    """Host words one after the other on both sides."""
    while words:
        count = min(words, MOST_WORDS)
        yield Strided(chip, external, (1, 1, count), (0, 0), (0, 0))
        chip, external, words = chip + count, external + count, words - count


def box_moves(place: Place, box: Box, whole: Place, config: HwConfig) -> list[Strided]:
    """Between a box at `place` of activation memory and the tensor at `whole` in external memory, in words of W bytes.

    The box begins with a whole block of channels, or is all of them.
    """
    stride = host_stride(config.word)
    blocks, height, width = -(-box.shape[1] // config.word), *box.shape[2:]
    first = box.channels[0] // config.word
    external = whole.base + first * whole.plane + box.rows[0] * whole.row + box.cols[0]
    if width == place.row == whole.row:  # rows lie one behind the other on both sides
        width, height = width * height, 1
    found = []
    rows = max(1, min(height, MOST_RUNS))
    step = max(1, MOST_WORDS // stride)
    for column in range(0, width, step):
        count = min(step, width - column)
        for row in range(0, height, rows):
            found.append(Strided(
                (place.base + row * place.row + column) * stride,
                (external + row * whole.row + column) * stride,
                (blocks, min(rows, height - row), count * stride),
                (place.plane * stride, place.row * stride),
                (whole.plane * stride, whole.row * stride),
            ))  # fmt: skip
    return found


def stripes(box: Box, place: Place, config: HwConfig) -> Iterator[tuple[Box, Place]]:
    """A box at a place of activation memory in stripes of rows that are moved one after the other, so that who needs
    one need not wait for all."""
    blocks, height, width = place.blocks(config.word), *box.shape[2:]
    each = max(1, round(STRIPE / (blocks * width * host_stride(config.word))))
    count = max(1, height // each)
    edges = [height * number // count for number in range(count + 1)]
    for low, high in pairwise(edges):
        shape = (1, box.shape[1], high - low, width)
        mine = Box(box.channels, (box.rows[0] + low, box.rows[0] + high), box.cols)
        yield mine, Place(place.base + low * place.row, place.plane, place.row, shape, place.lane)


def fits_words(box: Box, channels: int, config: HwConfig) -> bool:
    """Whether a box of a tensor of so many channels is of whole words: it begins with one, and ends with one or with
    the tensor."""
    low, high = box.channels
    return low % config.word == 0 and (high % config.word == 0 or high == channels)


class ExternalMap:
    """Room in external memory, in words of W bytes, given away once; `image`: what is there before the first run."""

    def __init__(self, config: HwConfig) -> None:
        self.config, self.stride = config, host_stride(config.word)
        self.words = 0
        self._pieces: list[tuple[int, npt.NDArray[np.uint32]]] = []
        self._known: dict[bytes, int] = {}

    def tensor(self, shape: tuple[int, ...]) -> Place:
        """Room for a tensor."""
        blocks = -(-shape[1] // self.config.word)
        return self.placed(shape, self._take(blocks * shape[2] * shape[3] * self.stride) // self.stride)

    def placed(self, shape: tuple[int, ...], base: int) -> Place:
        """A tensor from a word of W bytes on, in room that was reserved."""
        _, channels, height, width = shape
        return Place(base, height * width, width, (1, channels, height, width))

    def constants(self, words: npt.NDArray[np.uint32]) -> int:
        """The host word from which on these lie; equal ones lie there once."""
        key = words.tobytes()
        if key not in self._known:
            self._known[key] = self.reserve(len(words))
            self.fill(self._known[key], words)
        return self._known[key]

    def reserve(self, words: int) -> int:
        """Room for host words."""
        return self._take(words)

    def fill(self, first: int, words: npt.NDArray[np.uint32]) -> None:
        """What lies in room that was reserved."""
        self._pieces.append((first, words))

    def image(self) -> npt.NDArray[np.uint32]:
        """All constants, from host word 0 on."""
        made = np.zeros(max((first + len(words) for first, words in self._pieces), default=0), np.uint32)
        for first, words in self._pieces:
            made[first : first + len(words)] = words
        return made

    def _take(self, words: int) -> int:
        first = self.words
        self.words += -(-words // self.stride) * self.stride
        return first


def words_of(place: Place, config: HwConfig) -> npt.NDArray[np.int64]:
    """Addresses of a tensor in activation memory."""
    return place.addresses(config.word).reshape(-1)


def size_of(shape: tuple[int, ...]) -> int:
    """Elements."""
    return prod(shape)
