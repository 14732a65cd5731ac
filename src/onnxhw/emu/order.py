"""In which order instructions take effect: by time, or any other order that the ordering fields allow."""

import random
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InternalError
from ..isa.instructions import UNITS, Array, Depthwise, Load, Ordered
from ..isa.timing import Timeline, tiles

Code = Mapping[str, Sequence[Ordered]]


def by_time(timeline: Timeline) -> list[str]:
    """Units in the order in which their instructions take effect.

    Array and depthwise instructions take effect when they complete. A vector instruction takes effect when it has
    read its operands: who needs its results waits longer. A load takes effect when it issues:
    weights do not change during a run, so its tiles may as well wait in a queue. At equal times what
    completes goes before what issues.
    """
    when = {"load": "issue", "array": "done", "depthwise": "done", "vector": "read"}
    events = [
        (getattr(span, when[unit]), unit == "load", unit)
        for unit, spans in timeline.spans.items()
        for span in spans
    ]
    return [unit for _, _, unit in sorted(events)]


def ready_units(code: Code, completed: Mapping[str, int], waiting: Mapping[str, int]) -> list[str]:
    """The units whose next instruction may take effect; `waiting`: tiles loaded and not taken, by unit."""
    out = []
    for unit in UNITS:
        index = completed[unit]
        if index == len(code.get(unit, ())):
            continue
        instruction = code[unit][index]
        if isinstance(instruction, (Array, Depthwise)):
            if tiles(instruction) > waiting[unit]:
                continue
            if completed["vector"] < instruction.after_vector + instruction.more_reads:
                continue
        if all(completed[other] >= getattr(instruction, f"after_{other}") for other in UNITS):
            out.append(unit)
    return out


def by_chance(code: Code, seed: int) -> list[str]:
    """A random legal order, for tests: a program's results must not depend on it."""
    chance = random.Random(seed)
    favourite = {unit: chance.random() for unit in UNITS}
    completed = dict.fromkeys(UNITS, 0)
    waiting: dict[str, int] = dict.fromkeys(UNITS, 0)
    order = []
    while ready := ready_units(code, completed, waiting):
        unit = chance.choices(ready, [favourite[unit] for unit in ready])[0]
        _count(waiting, code[unit][completed[unit]])
        completed[unit] += 1
        order.append(unit)
    return order


def steps(code: Code, order: Iterable[str]) -> Iterable[tuple[str, int]]:
    """``(unit, index)`` of each instruction of an order; `InternalError` E1120 if the order is not legal."""
    completed = dict.fromkeys(UNITS, 0)
    waiting: dict[str, int] = dict.fromkeys(UNITS, 0)
    for unit in order:
        if unit not in ready_units(code, completed, waiting):
            raise InternalError("E1120", f"{unit}[{completed.get(unit)}] may not run yet, after {completed}")
        _count(waiting, code[unit][completed[unit]])
        yield unit, completed[unit]
        completed[unit] += 1
    if left := [unit for unit in UNITS if completed[unit] < len(code.get(unit, ()))]:
        raise InternalError("E1120", f"the order ends before {left[0]}[{completed[left[0]]}]")


def _count(waiting: dict[str, int], instruction: Ordered) -> None:
    """What an instruction adds to the tiles that wait for a unit, or takes of them."""
    if isinstance(instruction, Load):
        waiting["depthwise" if instruction.depthwise else "array"] += tiles(instruction)
    elif isinstance(instruction, (Array, Depthwise)):
        waiting[instruction.UNIT] -= tiles(instruction)
