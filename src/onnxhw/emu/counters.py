"""The core's counters, computed from the timeline."""

from ..isa.instructions import UNITS, Array, Depthwise, Ordered
from ..isa.timing import Span, Timeline, pixels, tiles
from .order import Code


def counters(code: Code, timeline: Timeline) -> dict[str, int]:
    """Values after a run by the lower-case name of their `isa.memory.Control` register.

    An instruction that waits for other units counts from the cycle in which its unit could have taken
    it; array and depthwise unit are busy in each cycle that streams a pixel, the vector unit from the
    issue of an instruction to its completion.
    """
    spans = timeline.spans
    streaming = ("array", "depthwise")
    return {
        **{f"{unit}_done": len(spans[unit]) for unit in UNITS},
        **{f"stall_order_{unit}": _waited(spans[unit]) for unit in UNITS},
        **{f"stall_weights_{unit}": sum(span.stalled for span in spans[unit]) for unit in streaming},
        **{f"busy_{unit}": sum(_busy(instruction) for instruction in code.get(unit, ())) for unit in streaming},
        "busy_vector": _occupied(spans["vector"]),
    }


def _busy(instruction: Ordered) -> int:
    return tiles(instruction) * pixels(instruction) if isinstance(instruction, (Array, Depthwise)) else 0


def _waited(spans: list[Span]) -> int:
    """Cycles lost to the ordering fields."""
    return sum(max(0, span.ordered - max(span.ready, span.free)) for span in spans)


def _occupied(spans: list[Span]) -> int:
    """Cycles in which an instruction has been issued and not completed; instructions may overlap."""
    ends = [0, *(span.done for span in spans)]
    return sum(span.done - max(span.issue, end) for span, end in zip(spans, ends, strict=False))
