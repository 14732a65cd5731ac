"""`ordered`: in which order the moves of a program go, found by a rough simulation of moves beside runs.

Moves run one after the other, so one that has to wait holds up all behind it. The simulation knows each segment's own
times; whenever the memory is free, the move that is needed first is taken of those that need not wait; if all must
wait, the one that waits least. A move is taken only when all segments that it waits for have begun, and a segment
begins only when all moves that it waits for are taken: so a program in this order goes on to its end. The last
instructions of a segment's units wait for the microcode of what comes behind them; a move that waits for anything that
ends later than one of them would issue is taken behind that microcode, for it may need what that instruction does.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..config import HwConfig
from ..errors import InternalError
from ..isa.instructions import UNITS
from ..isa.move_timing import columns_per_word
from ..isa.units import Unit
from .linked_code import Counts, LinkedInstruction, LinkedMove

NEVER = 1 << 40
"""A segment behind all."""
MOVE, RUN, COLUMN = 20.0, 6.0, 1.045
"""Cycles of a move, of each run of words and of each column, about; in a column's are those of refreshes and rows."""


@dataclass(eq=False)
class MoveJob:
    """Moves that go one behind the other: `cycles`, about; `waits`: completed instructions of each unit; `behind`: the
    number of stores that must go before, `behind_loads`: that of loads; `needed`: the segment that waits for it
    first."""

    moves: list[LinkedMove]
    cycles: float
    waits: Mapping[Unit, int]
    behind: int = 0
    behind_loads: int = 0
    needed: int = NEVER
    taken: bool = False
    done: float = 0.0

    def wait(self, counts: Mapping[Unit, int]) -> None:
        """Wait for so many instructions, too."""
        self.waits = {unit: max(counts.get(unit, 0), self.waits.get(unit, 0)) for unit in {**counts, **self.waits}}
        for move in self.moves:
            move.after = dict(self.waits)


def move_job(fields: Sequence[dict[str, int]], waits: Mapping[Unit, int], config: HwConfig) -> MoveJob:
    """Moves of these fields that wait for the same."""
    cycles = 0.0
    for each in fields:
        runs = each["block_n"] * each["run_n"]
        cycles += MOVE + RUN * runs + COLUMN * columns_per_word(config) * runs * each["word_n"]
    return MoveJob([LinkedMove(each, dict(waits)) for each in fields], cycles, waits)


@dataclass(eq=False)
class RunTimes:
    """The own times of the segment `number`: instructions of each unit up to its end, `done` of each of its own,
    `cycles` of all.

    `needs`: jobs that it waits for, each with the cycle in which it would; `last`: by unit, the one that its last
    instruction waits for, likewise, and how many instructions there are up to that.
    """

    number: int
    ends: Counts
    done: Mapping[Unit, Sequence[int]]
    cycles: int
    needs: dict[MoveJob, int] = field(default_factory=dict)
    last: dict[Unit, tuple[MoveJob, int, int]] = field(default_factory=dict)

    def wait(self, item: LinkedInstruction, job: MoveJob, issue: int) -> None:
        """An instruction of the segment, that could issue in this cycle, waits for a job."""
        item.moves.append(job.moves[-1])
        self.needs[job] = min(issue, self.needs.get(job, issue))
        job.needed = min(job.needed, self.number)


def ordered(
    runs: Sequence[RunTimes], microcode: Sequence[Sequence[MoveJob]], stores: Sequence[MoveJob],
    loads: Sequence[MoveJob], constants: Sequence[Sequence[MoveJob]],
) -> list[LinkedMove]:  # fmt: skip
    """All moves in order; stores, loads, those of a unit's microcode, and those of a memory's constants keep theirs.

    `InternalError` E1392 if they wait for each other.
    """
    return list(_Simulation(runs, (*microcode, stores, loads, *constants), len(microcode)).moves())


class _Simulation:
    """`heads`: by queue, jobs that were taken; `stores`: the number of their queue, behind which is that of loads;
    `starts`: of the segments that have begun."""

    def __init__(self, runs: Sequence[RunTimes], queues: Sequence[Sequence[MoveJob]], stores: int) -> None:
        self.runs, self.queues, self.stores = runs, queues, stores
        self.heads = [0] * len(queues)
        self.starts: list[float] = []
        self.ends = {unit: [run.ends[unit] for run in runs] for unit in UNITS}
        self.now = 0.0

    def moves(self) -> Iterator[LinkedMove]:
        while True:
            self._begin_segments()
            heads = enumerate(zip(self.heads, self.queues, strict=True))
            waiting = [(number, queue[at]) for number, (at, queue) in heads if at < len(queue)]
            if not waiting:
                return
            ready = [(at, number, job) for number, job in waiting if (at := self._ready(job)) is not None]
            if not ready:
                raise InternalError("E1392", f"the moves of a linked program wait for each other: {_named(waiting)}")
            free = [each for each in ready if each[0] <= self.now]
            at, number, job = (
                min(free, key=lambda each: (each[2].needed, each[1])) if free else min(ready, key=lambda each: each[:2])
            )
            self.heads[number] += 1
            self.now = job.done = max(self.now, at) + job.cycles
            job.taken = True
            yield from job.moves

    def _begin_segments(self) -> None:
        while len(self.starts) < len(self.runs):
            n = len(self.starts)
            run = self.runs[n]
            ended = self._after(n - 1, self.runs[n - 1].cycles) if n else 0.0
            if ended is None or not all(job.taken for job in run.needs):
                return
            self.starts.append(max([ended, *(job.done - cycle for job, cycle in run.needs.items())]))

    def _ready(self, job: MoveJob) -> float | None:
        """From when on a job need not wait; None while that is not known."""
        if job.behind > self.heads[self.stores] or job.behind_loads > self.heads[self.stores + 1]:
            return None
        times = [self._time(unit, count) for unit, count in job.waits.items() if count]
        known = [each for each in times if each is not None]
        return max(known, default=0.0) if len(known) == len(times) else None

    def _time(self, unit: Unit, count: int) -> float | None:
        """When so many instructions of a unit have completed."""
        n = bisect_left(self.ends[unit], count)
        if n >= len(self.starts):
            return None
        run = self.runs[n]
        left = run.ends[unit] - count
        return self._after(n, run.done[unit][len(run.done[unit]) - 1 - left], unit, count)

    def _after(self, n: int, cycle: int, unit: Unit | None = None, count: int = 0) -> float | None:
        """When a segment that has begun is in this cycle of its own; None while it might never be. If an instruction of
        `unit` that is not the last one ends in it, that need not wait for the last one."""
        later = [(job, cycle - issue) for other, (job, issue, last) in self.runs[n].last.items()
                 if issue < cycle and (other != unit or count >= last)]  # fmt: skip
        if not all(job.taken for job, _ in later):
            return None
        return max([self.starts[n] + cycle, *(job.done + more for job, more in later)])


def _named(waiting: Sequence[tuple[int, MoveJob]]) -> str:
    """The next move of each kind, and what it waits for."""
    return "; ".join(
        f"one for segment {job.needed} for {job.behind} stores, {job.behind_loads} loads and "
        + ", ".join(f"{unit}[{count - 1}]" for unit, count in job.waits.items() if count)
        for _, job in waiting
    )
