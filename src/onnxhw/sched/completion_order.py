"""What has completed when an instruction issues, by the ordering fields alone, and who touches a word in which order.

``known[unit][i]`` are completed instructions, of each `Unit` in turn, that are certain when instruction i of a unit
issues, whatever anything takes: those that its own ordering fields and those of its unit's instructions before it wait
for, what these had waited for, and so on. The load unit and `move` finish an instruction before they begin the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..isa.instructions import Code
from ..isa.timeline import Timeline
from ..isa.units import Unit

Words = npt.NDArray[np.int64]
Counts = tuple[int, ...]
PLACE = {unit: place for place, unit in enumerate(Unit)}
"""Where each unit is among numbers of all."""
ONE_AT_A_TIME = (Unit.LOAD, Unit.MOVE)
"""Units whose instructions end before the next one begins."""


def events(times: Timeline) -> list[tuple[Unit, int]]:
    """All instructions in an order that the ordering fields allow: as they issue, those that take weight tiles as they
    end, so that the tiles are loaded by then."""
    found = []
    for unit, spans in times.spans.items():
        ends = unit in (Unit.ARRAY, Unit.DEPTHWISE)
        found += [(span.end if ends else span.issue, PLACE[unit], index) for index, span in enumerate(spans)]
    units = list(Unit)
    return [(units[place], index) for _, place, index in sorted(found)]


def completed_at_issue(code: Code, times: Timeline) -> dict[Unit, list[Counts]]:
    """`known`, of all units of a program that ends."""
    known: dict[Unit, list[Counts]] = {unit: [] for unit in Unit}
    by_place = list(known.values())
    issues = sorted(
        (span.issue, PLACE[unit], index) for unit, spans in times.spans.items() for index, span in enumerate(spans)
    )
    instructions = [code.get(unit, ()) for unit in Unit]
    alone = [PLACE[unit] for unit in ONE_AT_A_TIME]
    for _, place, index in issues:
        mine = by_place[place]
        now = list(mine[-1]) if mine else [0] * len(by_place)
        if place in alone:
            now[place] = index
        for other, count in enumerate(instructions[place][index].waits):
            if count > now[other]:
                now = list(map(max, now, by_place[other][count - 1]))
                now[other] = count
        mine.append(tuple(now))
    return known


@dataclass(frozen=True)
class Unordered:
    """Two uses of a word that nothing orders: of instruction `index` of `unit`, which `does`, the earlier one."""

    word: int
    unit: Unit
    index: int
    does: str


class AccessOrder:
    """The uses of each word of a memory so far, in any order that the ordering fields allow.

    If no two uses of a word of which one is a write are left unordered, every other such order gives the same contents.
    The unit that writes does so in order, and reads before it writes; whether it reads what it has written is checked.
    """

    def __init__(self, words: int, writers: Sequence[Unit], readers: Sequence[Unit]) -> None:
        self.written: Mapping[Unit, npt.NDArray[np.int32]] = {u: np.full(words, -1, np.int32) for u in writers}
        self.read: Mapping[Unit, npt.NDArray[np.int32]] = {u: np.full(words, -1, np.int32) for u in readers}

    def reads(self, unit: Unit, index: int, words: Words, known: Counts) -> Unordered | None:
        """An instruction reads words; a write that may not have been before."""
        found = None
        for other, last in self.written.items():
            found = found or _late(last, words, known, other, "writes it")
        self.read[unit][words] = index
        return found

    def writes(self, unit: Unit, index: int, words: Words, known: Counts) -> Unordered | None:
        """An instruction writes words; a use that may not have been before."""
        found = None
        for uses, does in ((self.read, "reads it"), (self.written, "writes it")):
            for other, last in uses.items():
                if other != unit:
                    found = found or _late(last, words, known, other, does)
        self.written[unit][words] = index
        return found


def _late(last: npt.NDArray[np.int32], words: Words, known: Counts, unit: Unit, does: str) -> Unordered | None:
    """The latest use of one of these words by a unit, if it is not known to have completed."""
    if not len(words):
        return None
    uses = last[words]
    at = int(uses.argmax())
    return Unordered(int(words[at]), unit, int(uses[at]), does) if int(uses[at]) >= known[PLACE[unit]] else None
