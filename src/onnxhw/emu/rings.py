"""Microcode memories that are rings: what a fetcher reads there is what the program has."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import InternalError
from ..isa.external_instructions import Move, fetched, ring_units
from ..isa.instructions import Code
from ..isa.memory import Space
from ..isa.microcode import pack
from ..isa.timeline import Timeline
from ..isa.units import Unit
from .machine import Machine
from .order import EFFECT


@dataclass(frozen=True)
class Fetch:
    """The words of an instruction, of a microcode memory's words from `first` on, that are fetched."""

    unit: Unit
    index: int
    first: int
    words: npt.NDArray[np.uint32]

    def check(self, machine: Machine) -> None:
        """`InternalError` E1126 if the ring has other words."""
        ring = machine.microcode[self.unit.microcode]
        found = ring[(self.first + np.arange(len(self.words))) % len(ring)]
        if not np.array_equal(found, self.words):
            raise InternalError("E1126", f"{self.unit}[{self.index}] is fetched and is not in its microcode memory")


def load_rings(machine: Machine, code: Code) -> None:
    """Write the first words of each unit's microcode, as many as the ring has."""
    for unit in ring_units(machine.config):
        ring = machine.microcode[unit.microcode]
        words = pack(code.get(unit, ()))[: len(ring)]
        ring[: len(words)] = words


def fetches(config: HwConfig, code: Code, timeline: Timeline) -> Mapping[int, list[Fetch]]:
    """The fetches of a program that moves microcode, by the number of the effect (`emu.order`) after which each
    begins; of other programs none."""
    rings = {Space(unit.microcode): unit for unit in ring_units(config)}
    moved = {i.space for i in code.get(Unit.MOVE, ()) if isinstance(i, Move)} & set(rings)
    effects = np.sort([EFFECT[unit](span) for unit, spans in timeline.spans.items() for span in spans])
    found: dict[int, list[Fetch]] = {}
    for unit in (rings[Space(space)] for space in sorted(moved)):
        words = np.array(pack(code.get(unit, ())), np.uint32)
        begins = [0, *(span.issue + 1 for span in timeline.spans[unit])]
        numbers = (np.searchsorted(effects, begins, side="right") - 1).tolist()
        for index, each in enumerate(fetched(code.get(unit, ()))):
            if (number := numbers[index]) >= 0:
                found.setdefault(number, []).append(Fetch(unit, index, each.first, words[each.first : each.end]))
    return found
