"""`phases`: the times of a segment's run, cut where weights come while it runs.

A segment whose weights come in pieces waits for them piece by piece. The order of moves is found as if each piece began
a run of its own (`move_order`). An instruction belongs to the first phase whose loads, with those before, are all that
it needs to end; it may issue in an earlier one.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..isa.external_instructions import reads_waited
from ..isa.instructions import UNITS, Array, Depthwise, Load, Ordered
from ..isa.timeline import Timeline
from ..isa.timing import tiles
from ..isa.units import STREAMING, Unit
from .linked_code import Counts
from .move_order import RunTimes

Code = Mapping[Unit, Sequence[Ordered]]
Spans = Mapping[Unit, Sequence[tuple[int, int]]]
"""Of each unit's instructions the cycles in which they issue and end, in the segment's own time."""


@dataclass(frozen=True)
class LastIssue:
    """Where the last instruction of a unit in a segment issues: in which phase, and in which of its cycles."""

    run: RunTimes
    cycle: int


def spans_of(times: Timeline, loads: Sequence[tuple[int, int]]) -> Spans:
    """Those of a segment whose `loads` are cut."""
    return {unit: [(span.issue, span.done) for span in mine] for unit, mine in times.spans.items()} | {Unit.LOAD: loads}


def phases(
    number: int, code: Code, spans: Spans, cycles: int, first_loads: Sequence[int], before: Counts
) -> tuple[list[RunTimes], dict[Unit, LastIssue]]:
    """The phases of the segment `number`, which begin with these of its loads, and where each unit's last instruction
    issues; `before`: instructions of each unit that come before it."""
    starts = [0, *(spans[Unit.LOAD][first][0] for first in first_loads[1:])]
    issues, ends = _phases(code, spans, first_loads)
    found = []
    for phase, (start, end) in enumerate(zip(starts, [*starts[1:], cycles], strict=True)):
        counts = {unit: before[unit] + bisect_right(ends[unit], phase) for unit in before}
        done = {
            unit: [last - start for (_, last), mine in zip(spans[unit], ends[unit], strict=True) if mine == phase]
            for unit in before
        }
        found.append(RunTimes(number, counts, done, end - start))
    last = {}
    for unit in before:
        if issues[unit]:
            phase = issues[unit][-1]
            # Whatever needs it ends in a later phase, or behind this cycle.
            last[unit] = LastIssue(found[phase], min(spans[unit][-1][0] - starts[phase], found[phase].cycles - 1))
    return found, last


def _phases(
    code: Code, spans: Spans, first_loads: Sequence[int]
) -> tuple[Mapping[Unit, list[int]], Mapping[Unit, list[int]]]:
    """The phases in which instructions issue, and in which they end: as early as what they wait for allows."""
    if len(first_loads) == 1:
        alone = {unit: [0] * len(mine) for unit, mine in spans.items()}
        return alone, alone
    issues: dict[Unit, list[int]] = {unit: [] for unit in spans}
    ends: dict[Unit, list[int]] = {unit: [] for unit in spans}
    taken = {unit: _last_loads(code, unit) for unit in STREAMING}
    order = sorted((issue, unit, index) for unit, mine in spans.items() for index, (issue, _) in enumerate(mine))
    for _, unit, index in order:
        instruction = code[unit][index]
        counts = [*zip(UNITS, instruction.waits[: len(UNITS)], strict=True)]  # moves are ordered by these phases
        counts += [(Unit.VECTOR, reads_waited(instruction)), (unit, index)]
        issue = max((ends[other][count - 1] for other, count in counts if count), default=0)
        own = index if unit == Unit.LOAD else taken[unit][index] if unit in taken else -1
        mine = max(issue, bisect_right(first_loads, own) - 1) if own >= 0 else issue
        issues[unit].append(mine if unit == Unit.LOAD else issue)
        ends[unit].append(mine)
    return issues, ends


def _last_loads(code: Code, unit: Unit) -> list[int]:
    """The load that brings the last tile of each of a unit's instructions."""
    loads = [(n, each) for n, each in enumerate(code[Unit.LOAD]) if isinstance(each, Load)]
    mine = [(n, tiles(each)) for n, each in loads if each.depthwise == (unit == Unit.DEPTHWISE)]
    provided = list(accumulate(count for _, count in mine))
    return [mine[bisect_right(provided, tile - 1)][0] for tile in _tiles(code.get(unit, ()))]


def _tiles(code: Sequence[Ordered]) -> Iterator[int]:
    """Tiles that were taken with each instruction."""
    return accumulate(tiles(each) for each in code if isinstance(each, (Array, Depthwise)))
