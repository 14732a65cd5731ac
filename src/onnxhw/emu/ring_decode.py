"""What microcode memories that are rings say: decoded as it is fetched, while moves bring further words."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..errors import InternalError
from ..isa.external_instructions import Move, kinds, reads_waited, ring_units
from ..isa.instructions import Ordered
from ..isa.memory import Space
from ..isa.units import Unit
from .moves import move_addresses

Words = npt.NDArray[np.uint32]


class _Fetcher:
    """The words of a ring one after the other, and the instruction that they make of the one before."""

    def __init__(self, kind: type[Ordered], ring: Words) -> None:
        self.kind, self.ring = kind, ring
        self.at = 0
        self.state = [0] * kind.words()
        self.mask = (1 << kind.words()) - 1

    def _word(self) -> int:
        word = int(self.ring[self.at % len(self.ring)])
        self.at += 1
        return word

    def next(self, *, last: bool) -> Ordered:
        """An instruction; with it comes the mask of the next one, if there is one."""
        which = [w for w in range(len(self.state)) if self.mask >> w & 1]
        if not which:
            raise InternalError("E1127", f"{self.kind.UNIT} microcode has no words of an instruction")
        for w in which:
            self.state[w] = self._word()
        if not last:
            self.mask = self._word()
        return self.kind.decode(self.state)


def decode_rings(
    config: HwConfig, memory: Mapping[Space, Words], counts: Mapping[Unit, int]
) -> tuple[dict[Unit, list[Ordered]], tuple[int, int]]:
    """A program of so many instructions, from memories that are left as they are; and the first word of external memory
    that has microcode, and the one behind the last, (0, 0) if none has.

    Instructions are taken in an order that their fields allow, and each is fetched when the one before is: a program
    whose words are there in time has them there then. Only moves of microcode take effect. `InternalError` E1127 for
    microcode that has no meaning.
    """
    rings = {Space(unit.microcode): memory[unit.microcode].copy() for unit in ring_units(config)}
    code: dict[Unit, list[Ordered]] = {unit: [] for unit in Unit}
    units = [unit for unit in ring_units(config) if counts[unit]]
    fetchers = {unit: _Fetcher(kinds(config)[unit], rings[unit.microcode]) for unit in units}
    waiting = {unit: fetchers[unit].next(last=counts[unit] == 1) for unit in units}
    done = dict.fromkeys(Unit, 0)
    low, high = len(memory[Space.EXTERNAL]), 0
    while waiting:
        ready = next((unit for unit, each in waiting.items() if _may_run(each, done)), None)
        if ready is None:
            raise InternalError("E1127", f"deadlock: {', '.join(waiting)} wait for each other")
        instruction = waiting.pop(ready)
        code[ready].append(instruction)
        done[ready] += 1
        if isinstance(instruction, Move) and instruction.space in rings and not instruction.store:
            if instruction.runs * instruction.word_n > len(memory[Space.EXTERNAL]):
                raise InternalError("E1122", "more words than there are", where=instruction.text())
            chip, external = move_addresses(instruction)
            external %= len(memory[Space.EXTERNAL])
            rings[Space(instruction.space)][chip] = memory[Space.EXTERNAL][external]
            low, high = min(low, int(external.min())), max(high, int(external.max()) + 1)
        if done[ready] < counts[ready]:
            waiting[ready] = fetchers[ready].next(last=done[ready] + 1 == counts[ready])
    return code, (low, high) if high else (0, 0)


def _may_run(instruction: Ordered, done: Mapping[Unit, int]) -> bool:
    waits = all(done[unit] >= count for unit, count in zip(Unit, instruction.waits, strict=False))
    return waits and done[Unit.VECTOR] >= reads_waited(instruction)
