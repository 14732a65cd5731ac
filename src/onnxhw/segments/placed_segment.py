"""`PlacedSegment`: a segment's schedule beside what its neighbours leave in activation memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..program.layout import Place
from .hazards import SegmentUse
from .part_schedule import ScheduledPart
from .plan import Region, Segment


@dataclass(frozen=True, eq=False)
class PlacedPart:
    """A schedule, and what it touches."""

    part: ScheduledPart
    use: SegmentUse


@dataclass(frozen=True, eq=False)
class PlacedSegment(PlacedPart):
    """A segment's schedule.

    `loads`: inputs that are not on chip from the segment before, with their tensors' names. `results`: what it leaves,
    and where. `stored`: of the results of the segment before those that go to external memory.
    """

    segment: Segment
    loads: tuple[tuple[Region, str], ...]
    results: Mapping[Region, Place]
    stored: tuple[tuple[Region, Place], ...]
