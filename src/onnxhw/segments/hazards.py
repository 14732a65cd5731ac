"""`ActivationUse`: who touches each word of activation memory last, and which banks are read and written.

All numbers count completed instructions of a unit from the begin of the run, so they are what a move has to wait for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.instructions import Array, Depthwise, Ordered, Vector
from ..isa.units import Unit
from ..sched import footprint

Words = npt.NDArray[np.int64]
USERS = (Unit.ARRAY, Unit.DEPTHWISE, Unit.VECTOR)
"""Units that read activation memory."""


@dataclass(frozen=True, eq=False)
class Footprint:
    """Words and banks of activation memory that an instruction reads and writes."""

    reads: Words
    writes: Words
    read_banks: Words
    written_banks: Words


class SegmentUse:
    """Words and banks of activation memory that the instructions of a segment touch, with their numbers in it, from 1
    on; `footprints`: of each instruction by itself. `seen`: of vector instructions, by number, words that count as
    read, though their banks do not."""

    def __init__(
        self, code: Mapping[Unit, Sequence[Ordered]], config: HwConfig, seen: Mapping[int, Words] | None = None
    ) -> None:
        self.touched = {unit: np.zeros(config.act_words, np.int64) for unit in USERS}
        self.written = np.zeros(config.act_words, np.int64)
        self.read_banks = {unit: np.zeros(config.act_banks, np.int64) for unit in USERS}
        self.written_banks = np.zeros(config.act_banks, np.int64)
        self.footprints = {unit: [_footprint(each, config) for each in code.get(unit, ())] for unit in USERS}
        for number, words in (seen or {}).items():
            one = self.footprints[Unit.VECTOR][number - 1]
            self.footprints[Unit.VECTOR][number - 1] = replace(one, reads=np.union1d(one.reads, words))
        for unit, mine in self.footprints.items():
            for number, one in enumerate(mine, 1):
                self.touched[unit][one.reads] = number
                self.read_banks[unit][one.read_banks] = number
                self.touched[unit][one.writes] = self.written[one.writes] = number
                self.written_banks[one.written_banks] = number


def _footprint(instruction: Ordered, config: HwConfig) -> Footprint:
    writes = np.zeros(0, np.int64)
    if isinstance(instruction, (Array, Depthwise)):
        reads = footprint.array_reads(instruction, config.word)
    else:
        assert isinstance(instruction, Vector)
        reads = footprint.vector_reads(instruction)
        writes = np.unique(footprint.vector_writes(instruction))
    banks = footprint.banks(reads, config.act_depth), footprint.banks(writes, config.act_depth)
    return Footprint(reads, writes, *banks)


class MovedWords:
    """Words of activation memory that a move reads or, if it `loads`, writes."""

    def __init__(self, words: Words, loads: bool, config: HwConfig) -> None:
        self.loads = loads
        self.words, self.banks = np.zeros(config.act_words, bool), np.zeros(config.act_banks, bool)
        self.words[words], self.banks[words // config.act_depth] = True, True

    def before(self, one: Footprint) -> bool:
        """Whether an instruction waits for the move: it touches words that are loaded, or writes over those that are
        stored; or it would use a bank's only port of a kind in the same cycle."""
        if self.loads:
            used = self.banks[one.written_banks].any() or self.words[one.reads].any() or self.words[one.writes].any()
        else:
            used = self.banks[one.read_banks].any() or self.words[one.writes].any()
        return bool(used)


class ActivationUse:
    """The last uses so far, over all segments."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.touched = {unit: np.zeros(config.act_words, np.int64) for unit in USERS}
        self.written = np.zeros(config.act_words, np.int64)
        self.read_banks = {unit: np.zeros(config.act_banks, np.int64) for unit in USERS}
        self.written_banks = np.zeros(config.act_banks, np.int64)

    def add(self, use: SegmentUse, before: Mapping[Unit, int]) -> None:
        """A segment behind so many instructions of each unit."""
        for unit in USERS:
            _later(self.touched[unit], use.touched[unit], before[unit])
            _later(self.read_banks[unit], use.read_banks[unit], before[unit])
        _later(self.written, use.written, before[Unit.VECTOR])
        _later(self.written_banks, use.written_banks, before[Unit.VECTOR])

    def before_load(self, words: Words) -> dict[Unit, int]:
        """What a load into these words waits for: who touches them; and the vector unit, until it has written into
        their banks for the last time, for a bank takes one write per cycle."""
        waits = {unit: int(self.touched[unit][words].max(initial=0)) for unit in USERS}
        banks = footprint.banks(words, self.config.act_depth)
        waits[Unit.VECTOR] = max(waits[Unit.VECTOR], int(self.written_banks[banks].max(initial=0)))
        return waits

    def before_store(self, words: Words) -> dict[Unit, int]:
        """What a store from these words waits for: who writes them, and who reads their banks, each of which takes one
        read per cycle."""
        banks = footprint.banks(words, self.config.act_depth)
        waits = {unit: int(self.read_banks[unit][banks].max(initial=0)) for unit in USERS}
        waits[Unit.VECTOR] = max(waits[Unit.VECTOR], int(self.written[words].max(initial=0)))
        return waits


def _later(target: Words, mine: Words, before: int) -> None:
    there = mine > 0
    target[there] = mine[there] + before
