"""The core's counters, computed from the timeline."""

from ..isa.instructions import UNITS, Array, Code, Depthwise, Ordered
from ..isa.memory import Control
from ..isa.timeline import IssueRecord, Timeline
from ..isa.timing import pixels, tiles
from ..isa.units import Unit


def counters(code: Code, timeline: Timeline) -> dict[str, int]:
    """Values after a run by the lower-case name of their `isa.memory.Control` register.

    An instruction that waits for other units counts from the cycle in which its unit could have taken
    it; array and depthwise unit are busy in each cycle that streams a pixel, the vector unit from the
    issue of an instruction to its completion. Counters of `move` are those of programs that have such instructions: it
    is busy between issue and completion.
    """
    found: dict[Control, int] = {}
    for unit in (*UNITS, Unit.MOVE) if code.get(Unit.MOVE) else UNITS:
        spans, registers = timeline.spans[unit], unit.registers
        found[registers.done] = len(spans)
        found[registers.stall_order] = _waited(spans)
        if registers.stall_weights is not None:
            found[registers.stall_weights] = sum(span.stalled for span in spans)
        if registers.busy is not None:
            streamed = sum(_busy(instruction) for instruction in code.get(unit, ()))
            under_way = sum(span.done - span.issue - 1 for span in spans) if unit is Unit.MOVE else _occupied(spans)
            found[registers.busy] = streamed if unit.ports.streams else under_way
    return {register.name.lower(): found[register] for register in sorted(found)}


def _busy(instruction: Ordered) -> int:
    return tiles(instruction) * pixels(instruction) if isinstance(instruction, (Array, Depthwise)) else 0


def _waited(spans: list[IssueRecord]) -> int:
    """Cycles lost to the ordering fields."""
    return sum(max(0, span.ordered - max(span.ready, span.free)) for span in spans)


def _occupied(spans: list[IssueRecord]) -> int:
    """Cycles in which an instruction has been issued and not completed; instructions may overlap."""
    ends = [0, *(span.over for span in spans)]
    return sum(span.over - max(span.issue, end) for span, end in zip(spans, ends, strict=False))
