"""`ActivationContents`: what each lane of activation memory holds, with vector instructions and moves as writers.

As `memory_state`, for programs with moves: a write of a vector instruction is for that tensor of the table which covers
the word and is the next to become ready; a move writes lanes of something that lies in external memory in the same way.
A lane may be read if it holds what was written last in its word.
"""

from math import gcd

import numpy as np
import numpy.typing as npt

from ..isa.memory import host_stride
from ..program.model import DeviceProgram
from .memory_state import lane_groups, tensor_words

Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOTHING = -1
WORD = 4
"""Lanes of a host word."""


class ActivationContents:
    """The state of each word, and of its *cells*: groups of lanes that instructions and moves write together."""

    def __init__(self, program: DeviceProgram) -> None:
        config = program.config
        self.program, self.lanes, self.word = program, config.lanes, config.word
        self.size = gcd(config.lanes, WORD)
        """Lanes of a cell."""
        self.stride = host_stride(config.word)
        self.latest = np.full(config.act_words, NOTHING, np.int64)
        self.holder = np.full((config.act_words, config.word // self.size), NOTHING, np.int64)
        inside = [name for name, entry in program.tensors.items() if not entry.external]
        self.names = sorted(reversed(inside), key=lambda name: program.tensors[name].ready)
        self.ready: dict[int, list[int]] = {}
        words = []
        for number, name in enumerate(self.names):
            words.append(tensor_words(program, name))
            self.ready.setdefault(program.tensors[name].ready, []).append(number)
        for name in {port.tensor for port in program.inputs} & set(inside):
            number = self.names.index(name)
            self.latest[words[number]] = number
            self.holder[words[number]] = number
        # Of each word the tensors that lie there, in the order in which they become ready.
        owners = np.concatenate([np.full(len(mine), number) for number, mine in enumerate(words)] or [np.zeros(0, int)])
        places = np.concatenate([*words, np.zeros(0, np.int64)])
        order = np.lexsort((owners, places))
        self._owners = np.append(owners[order], NOTHING)
        times = np.array([program.tensors[name].ready for name in self.names] or [0])
        self._times = np.append(times[owners[order]] if len(owners) else np.zeros(0, np.int64), 0)
        bounds = np.searchsorted(places[order], np.arange(config.act_words + 1))
        self._next, self._end = bounds[:-1].copy(), bounds[1:]

    def whole(self, words: Words) -> bool:
        """Whether all cells of these words may be read."""
        latest = self.latest[words]
        return bool((latest != NOTHING).all() and (self.holder[words] == latest[:, None]).all())

    def stale(self, words: Words, cells: Mask) -> str:
        """Why these cells of these words must not be read; empty if they may."""
        if not len(words):
            return ""
        latest = self.latest[words]
        if (latest == NOTHING).any():
            return f"may read word {int(words[int((latest == NOTHING).argmax())])} before it is written"
        other = self.holder[words] != latest[:, None]
        if other.any() and (wrong := (other & cells).any(axis=1)).any():
            return f"may read word {int(words[int(wrong.argmax())])} before all its lanes hold what it has"
        return ""

    def cells_of_groups(self, first: int, count: int) -> Mask:
        """The cells of lane groups."""
        found = np.zeros(self.holder.shape[1], bool)
        found[first * self.lanes // self.size : (first + count) * self.lanes // self.size] = True
        return found

    def write(self, index: int, words: Words, cells: Mask) -> str:
        """Vector instruction `index` writes; why it must not, or empty."""
        at, end = self._next[words], self._end[words]
        while (passed := (at < end) & (self._times[at] <= index)).any():
            at = at + passed
        self._next[words] = at
        owners = np.where(at < end, self._owners[at], NOTHING)
        if (owners == NOTHING).any():
            word = int(words[int((owners == NOTHING).argmax())])
            return f"writes word {word}, which no tensor of the table is waiting for"
        self.latest[words] = owners
        self.holder[np.ix_(words, np.flatnonzero(cells))] = owners[:, None]
        return ""

    def incomplete(self, count: int) -> str:
        """A tensor that is ready after so many vector instructions and does not hold its lanes; else empty."""
        for number in self.ready.get(count, ()):
            name = self.names[number]
            groups = lane_groups(self.program, name)
            words = tensor_words(self.program, name).reshape(len(groups), -1)
            for mine, used in zip(words, groups, strict=True):
                if self.stale(mine, np.repeat(used, self.lanes // self.size)):
                    return name
        return ""

    def load(self, chip: Words, external: Words, lanes: npt.NDArray[np.uint8], packed: Words) -> None:
        """A move writes host words, of which these lanes hold something; `packed`: the number of the packed input of
        which each is, or -1. Rows of those, and zero points between them, come from anywhere in the input."""
        words, part = np.divmod(chip, self.stride)
        source = -2 - np.where(packed < 0, (external - chip) % (1 << 24), (1 << 24) + packed)
        self.latest[words] = source
        each = WORD // self.size
        for n in range(each):
            cell = part * each + n
            there = cell < self.holder.shape[1]
            bits = ((1 << self.size) - 1) << n * self.size
            held = np.where(lanes & bits == bits, source, NOTHING)
            self.holder[words[there], cell[there]] = held[there]

    def store(self, chip: Words) -> tuple[str, npt.NDArray[np.uint8]]:
        """A move reads host words: why it must not, or empty; and the lanes that hold something."""
        words, part = np.divmod(chip, self.stride)
        latest = self.latest[words]
        lanes = np.zeros(len(chip), np.uint8)
        if (latest == NOTHING).any():
            return f"may read word {int(words[int((latest == NOTHING).argmax())])} before it is written", lanes
        each = WORD // self.size
        for n in range(each):
            cell = part * each + n
            there = cell < self.holder.shape[1]
            held = self.holder[words, np.where(there, cell, 0)] == latest
            bits = ((1 << self.size) - 1) << n * self.size
            lanes |= np.where(held | ~there, bits, 0).astype(np.uint8)
        return "", lanes
