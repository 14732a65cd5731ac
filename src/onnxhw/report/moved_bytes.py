"""Which layer each move of a program serves, and what that makes in bytes."""

from dataclasses import dataclass

import numpy as np

from ..isa.external_instructions import Move
from ..isa.timeline import Timeline
from ..isa.units import STREAMING, Unit
from ..program.model import DeviceProgram

UNITS = (Unit.LOAD, *STREAMING, Unit.VECTOR)
"""Units whose instructions wait for moves."""


@dataclass(frozen=True)
class MovedBytes:
    """Bytes that pass between external memory and the core in a run: those of each layer, in the program's order, and
    those of none, which bring microcode back for the next run."""

    layers: list[int]
    rest: int


def moved_bytes_by_layer(program: DeviceProgram, times: Timeline) -> MovedBytes:
    """A store belongs to the layer whose vector instruction it waits for last, any other move to that of the
    instruction which is issued first of those that wait for it, themselves or by a later move."""
    if not program.code.get(Unit.MOVE):
        return MovedBytes([0] * len(program.layers), 0)
    owner: dict[tuple[Unit, int], int] = {
        (unit, index): number
        for number, layer in enumerate(program.layers)
        for unit in layer.instructions
        for index in layer.indices(unit)
    }
    waited = {unit: np.maximum.accumulate([i.waits[-1] for i in program.code.get(unit, ())] or [0]) for unit in UNITS}
    found, rest = [0] * len(program.layers), 0
    for number, move in enumerate(program.code[Unit.MOVE]):
        assert isinstance(move, Move)
        size = 4 * move.runs * move.word_n
        if move.store:
            layer = owner.get((Unit.VECTOR, move.after_vector - 1))
        else:
            firsts = [(unit, int(np.searchsorted(waited[unit], number + 1))) for unit in UNITS]
            ahead = [(times.spans[unit][i].issue, unit, i) for unit, i in firsts if i < len(program.code.get(unit, ()))]
            layer = None
            if ahead:
                _, unit, index = min(ahead, key=lambda each: each[0])
                layer = owner.get((unit, index))
        if layer is None:
            rest += size
        else:
            found[layer] += size
    return MovedBytes(found, rest)
