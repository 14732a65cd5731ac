"""`WorkLeft`: a bound on the cycles of a program while its times are computed."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from ..config import HwConfig
from .instructions import Array, Code, Depthwise, Ordered, Vector
from .timing import pixels, tiles, vector_cycles
from .units import Unit


class _Ended(Protocol):
    @property
    def end(self) -> int: ...


class WorkLeft:
    """The work of array, depthwise and vector unit from each instruction on, in cycles without any wait."""

    def __init__(self, config: HwConfig, program: Code) -> None:
        self.left: dict[Unit, list[int]] = {}
        for unit in (Unit.ARRAY, Unit.DEPTHWISE, Unit.VECTOR):
            work = [_work(one, config) for one in reversed(program.get(unit, ()))]
            self.left[unit] = [*accumulate(work, initial=0)][::-1]

    def least(self, spans: Mapping[Unit, Sequence[_Ended]]) -> int:
        """Cycles that the run takes at least, when the instructions in `spans` end as they say: each unit does one
        after the other, and what is left takes its work."""
        return max(
            (spans[unit][-1].end if spans[unit] else 0) + left[len(spans[unit])] for unit, left in self.left.items()
        )


def _work(instruction: Ordered, config: HwConfig) -> int:
    if isinstance(instruction, (Array, Depthwise)):
        return tiles(instruction) * pixels(instruction)
    return vector_cycles(instruction, config) if isinstance(instruction, Vector) else 0
