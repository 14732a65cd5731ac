"""`MicrocodeRings`: what the ring of each unit's microcode memory holds when its fetcher reads it.

An instruction is fetched from the issue of the one before it on, so its words must have been brought by moves that one
knows to be completed, and may be overwritten by moves that know the instruction itself to be completed (or that are
behind it in the unit `move`). At the end of a run each ring has its first words again: the next run is like this one.
"""

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..isa.external_instructions import fetched
from ..isa.memory import Space
from ..isa.microcode import pack
from ..isa.units import Unit, units_of
from ..program.model import DeviceProgram
from .completion_order import PLACE, Counts

Words = npt.NDArray[np.int64]


class _Ring:
    """A unit's ring: its words, the move that has brought each, and the instruction that has fetched it last."""

    def __init__(self, program: DeviceProgram, unit: Unit) -> None:
        code = program.code.get(unit, ())
        self.depth = unit.ucode(program.config)
        self.code = np.array(pack(code), np.uint32)
        self.spans = fetched(code)
        self.words = np.zeros(self.depth, np.uint32)
        self.words[: len(self.code)] = self.code[: self.depth]
        self.first = self.words.copy()
        self.brought = np.full(self.depth, -1, np.int64)
        self.fetched = np.full(self.depth, -1, np.int64)


class MicrocodeRings:
    """The rings of a program. What may not be done is a text, empty if it may."""

    def __init__(self, program: DeviceProgram, moved: set[int]) -> None:
        self.rings: dict[Unit, _Ring] = {}
        self.units = {Space(unit.microcode): unit for unit in units_of(program.config)}
        for space, unit in self.units.items():
            if space in moved:
                self.rings[unit] = _Ring(program, unit)

    def fetch(self, unit: Unit, index: int, known: Counts | None) -> str:
        """Fetch an instruction; `known` at the issue of the one before, None for the first."""
        ring = self.rings.get(unit)
        if ring is None or index >= len(ring.spans):
            return ""
        span = ring.spans[index]
        low, count = span.first % ring.depth, span.end - span.first
        inside = low + count <= ring.depth
        at = slice(low, low + count) if inside else np.arange(span.first, span.end) % ring.depth
        completed = known[PLACE[Unit.MOVE]] if known is not None else 0
        ring.fetched[at] = index
        if (ring.words[at] != ring.code[span.first : span.end]).any():
            return "is fetched, and its words are not in the ring of its microcode memory"
        if (late := int(ring.brought[at].max())) >= completed:
            return f"is fetched, and may be so before move[{late}] has brought its words"
        return ""

    def write(self, space: int, index: int, at: Words, words: npt.NDArray[np.uint32], known: Counts) -> str:
        """A move brings words."""
        unit = self.units[Space(space)]
        ring = self.rings[unit]
        last = int(ring.fetched[at].max())
        ring.words[at], ring.brought[at] = words, index
        if last >= known[PLACE[unit]] + (unit == Unit.MOVE):
            return f"writes over microcode that {unit}[{last}] may still fetch"
        return ""

    def check_end(self) -> None:
        """`InternalError` E1215 if a ring does not hold its first words."""
        for unit, ring in self.rings.items():
            wrong = np.flatnonzero(ring.words != ring.first)
            if len(wrong):
                what = f"word {int(wrong[0])} of the {unit} microcode memory is not at the end what it was at first"
                raise InternalError("E1215", what)
