"""In which order instructions take effect: by time, or any other order that the ordering fields allow."""

from collections.abc import Callable, Iterable, Mapping

from ..errors import InternalError
from ..isa.external_instructions import reads_waited
from ..isa.instructions import Array, Code, Depthwise, Load, Ordered
from ..isa.timeline import IssueRecord, Timeline
from ..isa.timing import tiles
from ..isa.units import Unit

EFFECT: dict[Unit, Callable[[IssueRecord], int]] = {
    Unit.LOAD: lambda span: span.issue,
    Unit.ARRAY: lambda span: span.done,
    Unit.DEPTHWISE: lambda span: span.done,
    Unit.VECTOR: lambda span: span.read,
    Unit.MOVE: lambda span: span.done,
}
"""The cycle in which an instruction takes effect, by unit."""


def time_order(timeline: Timeline) -> list[Unit]:
    """Units in the order in which their instructions take effect.

    Array and depthwise instructions take effect when they complete. A vector instruction takes effect when it has
    read its operands: who needs its results waits longer. A load takes effect when it issues:
    weights do not change during a run, so its tiles may as well wait in a queue. At equal times what
    completes goes before what issues.
    """
    events = [
        (EFFECT[unit](span), unit == Unit.LOAD, unit)
        for unit, spans in timeline.spans.items()
        for span in spans
    ]
    return [unit for _, _, unit in sorted(events)]


def ready_units(code: Code, completed: Mapping[Unit, int], waiting: Mapping[Unit, int]) -> list[Unit]:
    """The units whose next instruction may take effect; `waiting`: tiles loaded and not taken, by unit."""
    out = []
    for unit in Unit:
        index = completed[unit]
        if index == len(code.get(unit, ())):
            continue
        instruction = code[unit][index]
        if isinstance(instruction, (Array, Depthwise)):
            if tiles(instruction) > waiting[unit]:
                continue
            if completed[Unit.VECTOR] < reads_waited(instruction):
                continue
        if all(completed[other] >= count for other, count in zip(Unit, instruction.waits, strict=False)):
            out.append(unit)
    return out


def steps(code: Code, order: Iterable[Unit]) -> Iterable[tuple[Unit, int]]:
    """``(unit, index)`` of each instruction of an order; `InternalError` E1120 if the order is not legal."""
    completed = dict.fromkeys(Unit, 0)
    waiting: dict[Unit, int] = dict.fromkeys(Unit, 0)
    for unit in order:
        if unit not in ready_units(code, completed, waiting):
            raise InternalError("E1120", f"{unit}[{completed.get(unit)}] may not run yet, after {completed}")
        count_tiles(waiting, code[unit][completed[unit]])
        yield unit, completed[unit]
        completed[unit] += 1
    if left := [unit for unit in Unit if completed[unit] < len(code.get(unit, ()))]:
        raise InternalError("E1120", f"the order ends before {left[0]}[{completed[left[0]]}]")


def count_tiles(waiting: dict[Unit, int], instruction: Ordered) -> None:
    """What an instruction adds to the tiles that wait for a unit, or takes of them."""
    if isinstance(instruction, Load):
        waiting[Unit.DEPTHWISE if instruction.depthwise else Unit.ARRAY] += tiles(instruction)
    elif isinstance(instruction, (Array, Depthwise)):
        waiting[instruction.UNIT] -= tiles(instruction)
