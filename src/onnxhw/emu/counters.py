"""The core's counters, computed from the timeline."""

from ..isa.instructions import Array, Ordered
from ..isa.timing import Span, Timeline, pixels, tiles
from .order import Code


def counters(code: Code, timeline: Timeline) -> dict[str, int]:
    """Values after a run by the lower-case name of their `isa.memory.Control` register.

    An instruction that waits for other units counts from the cycle in which its unit could have taken
    it; the array is busy in each cycle that streams a pixel, the vector unit from the issue to the
    completion of each instruction.
    """
    spans = timeline.spans
    return {
        "load_done": len(spans["load"]),
        "array_done": len(spans["array"]),
        "vector_done": len(spans["vector"]),
        "stall_order_load": _waited(spans["load"], False),
        "stall_order_array": _waited(spans["array"], False),
        "stall_order_vector": _waited(spans["vector"], True),
        "stall_weights": sum(span.stalled for span in spans["array"]),
        "busy_array": sum(_busy(instruction) for instruction in code.get("array", ())),
        "busy_vector": sum(span.done - span.issue for span in spans["vector"]),
    }


def _busy(instruction: Ordered) -> int:
    return tiles(instruction) * pixels(instruction) if isinstance(instruction, Array) else 0


def _waited(spans: list[Span], whole: bool) -> int:
    """Cycles lost to the ordering fields; with `whole` the unit is free only when an instruction is done."""
    free, total = 0, 0
    for span in spans:
        total += max(0, span.ordered - max(span.ready, free))
        free = span.done if whole else span.end + 1
    return total
