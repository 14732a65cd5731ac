"""`phases`: the times of a segment's run, cut where weights come while it runs.

A segment whose weights come in pieces waits for them piece by piece. The order of moves is found as if each piece began
a run of its own (`move_order`). An instruction belongs to the phase in which it ends: whatever it waits for has ended
in that one or before.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..isa.timing import Timeline
from ..isa.units import Unit
from .linked_code import Counts
from .move_order import RunTimes

Spans = Sequence[tuple[int, int]]
"""Of instructions the cycles in which they issue and end, in the segment's own time."""


def phases(number: int, times: Timeline, loads: Spans, first_loads: Sequence[int], before: Counts) -> list[RunTimes]:
    """The phases of the segment `number`, which begin with these of its `loads`; `before`: instructions of each unit
    that come before it."""
    starts = np.array([0, *(loads[first][0] for first in first_loads[1:])])
    done = {unit: np.array([end for _, end in _spans(unit, times, loads)], np.int64) for unit in before}
    mine = {unit: np.searchsorted(starts, ends, side="right") - 1 for unit, ends in done.items()}
    mine[Unit.LOAD] = np.searchsorted(first_loads, np.arange(len(loads)), side="right") - 1
    mine = {unit: np.maximum.accumulate(each) for unit, each in mine.items()}
    found = []
    for phase, (start, end) in enumerate(zip(starts.tolist(), [*starts[1:].tolist(), times.cycles], strict=True)):
        counts = {unit: before[unit] + int(np.searchsorted(each, phase, side="right")) for unit, each in mine.items()}
        ended = {unit: (ends[mine[unit] == phase] - start).tolist() for unit, ends in done.items()}
        found.append(RunTimes(number, counts, ended, end - start))
    return found


def last_issued(
    runs: Sequence[RunTimes], times: Timeline, loads: Spans, units: Iterable[Unit]
) -> Mapping[Unit, tuple[RunTimes, int]]:
    """Of each unit that has instructions in a segment the phase in which its last one issues, and the phase's cycle."""
    found, starts = {}, np.cumsum([0, *(run.cycles for run in runs[:-1])])
    for unit in units:
        if mine := _spans(unit, times, loads):
            phase = int(np.searchsorted(starts, mine[-1][0], side="right")) - 1
            found[unit] = runs[phase], mine[-1][0] - int(starts[phase])
    return found


def _spans(unit: Unit, times: Timeline, loads: Spans) -> Spans:
    return loads if unit == Unit.LOAD else [(span.issue, span.done) for span in times.spans[unit]]
