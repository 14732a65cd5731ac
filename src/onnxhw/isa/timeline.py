"""When things happen: the exact cycle of every instruction, as a function of the program alone.

Latencies are those of `onnxhw.isa.timing`. Cycle 0 is the first cycle in which the units run. Per unit::

    ready[i]  = (issue[i-1] + 1, or 0) + words(i) + FETCH_OVERHEAD     # fetched while the one before runs
    issue[i]  = max(ready[i], free[i], done[after_*] + ORDER)    # `done` of the last instruction waited for

``words(i)`` are the words of microcode that are given of it (`onnxhw.isa.microcode`).
An instruction that is `early` is `done` so many cycles sooner for the others (`onnxhw.isa.early_instructions`).
With `more_reads` it is also at least ``end + 1 + ORDER`` of the last vector instruction whose operands must have been
read. ``free[i]`` is the cycle after the end of the one before.

Then, with P = oh_n * ow_n pixels per weight tile and T steps per tile load (R / k, or `depthwise_words`):

- load tile n starts at ``l[n] = max(issue + 1, l[n-1] + T, s[m] + shadow_free)``, T of tile n-1, where m is the tile
  before of the same unit;
- array tile n starts at ``s[n] = max(issue + START, s[m] + D, l[n] + shadow_ready)``, where D is P, but at least
  MIN_TILE after an instruction's last tile, and between all its tiles if ``nt_n * P < MIN_TILE``; a tile of the
  depthwise unit does, too, with its own `shadow_ready` and P, which is more than MIN_TILE, for D;
- a move ends as `onnxhw.isa.move_timing` says, and the next one issues behind it;
- a vector instruction takes ``words * (K + G - 1)`` cycles plus the pipeline, where K is the window and G the number of
  lane groups; of several planes each takes ``param_reads`` at least. The next one issues when it is over, which is
  `early` cycles after it is done, or if it `follows` it, after its end and no sooner than `vector_issue_interval`
  cycles after its issue.

The tile recurrences run across instructions: tiles are numbered over the whole program.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ..config import HwConfig
from ..errors import InternalError
from .early_instructions import early_of
from .external_instructions import Move, reads_waited
from .instructions import Array, Code, Depthwise, Load, Ordered, Vector, follows
from .microcode import mask
from .move_timing import MoveTiming
from .timing import (
    FETCH_OVERHEAD,
    FINISH,
    ORDER,
    START,
    array_latency,
    load_steps,
    pixels,
    shadow_free,
    shadow_ready,
    tile_distance,
    tiles,
    vector_cycles,
    vector_issue_interval,
    vector_latency,
)
from .units import Unit
from .work_left import WorkLeft


class IssueRecord(NamedTuple):
    """When one instruction ran, in cycles from the start of the run.

    `ready`: fetched; `ordered`: the ordering fields were satisfied (at or before `issue`); `free`: its unit could take
    it, as far as the one before lets it; `issue`: taken by its unit; `end`: last cycle of its own work (last step,
    pixel or group);
    `done`: its completion can be seen by the others; `stalled`: cycles lost waiting for weights; `early`: cycles after
    `done` in which its last effects follow.
    """

    ready: int
    ordered: int
    free: int
    issue: int
    end: int
    done: int
    stalled: int = 0
    early: int = 0

    @property
    def over(self) -> int:
        """The cycle in which all its effects can be seen."""
        return self.done + self.early

    @property
    def read(self) -> int:
        """Of a vector instruction: the cycle in which others can see that it has read its operands."""
        return self.end + 1


@dataclass
class Timeline:
    """The exact times of a program."""

    spans: dict[Unit, list[IssueRecord]] = field(default_factory=dict)
    cycles: int = 0
    """Cycles of the whole run, as the core's counter reports them."""
    load_start: list[int] = field(default_factory=list)
    tile_start: list[int] = field(default_factory=list)
    """Starts of the array's tiles."""
    window_start: list[int] = field(default_factory=list)
    """Starts of the depthwise unit's tiles."""


class _Tiles:
    """The weight tiles of the array, or of the depthwise unit: when each is loaded, when it starts."""

    def __init__(self, config: HwConfig, depthwise: int) -> None:
        self.ready = shadow_ready(config, depthwise)
        self.free = shadow_free(config, depthwise)
        self.latency = array_latency(config, depthwise)
        self.loaded: list[int] = []
        self.start: list[int] = []
        self.end = 0


class _Run:
    """State of the computation: each unit advances as far as what it waits for is known.

    With `weightless` there are no loads to wait for.
    """

    def __init__(self, config: HwConfig, program: Code, weightless: bool = False) -> None:
        self.config, self.weightless = config, weightless
        self.program = {unit: list(program.get(unit, ())) for unit in Unit}
        self.moves = MoveTiming(config) if self.program[Unit.MOVE] else None
        self.spans: dict[Unit, list[IssueRecord]] = {unit: [] for unit in Unit}
        self.in_order = tuple(self.spans.values())
        self.load_start: list[int] = []
        self.load_end = 0
        self.part: dict[Unit, list[int]] = {}
        kinds = (0, 1) if config.depthwise else (0,)
        self.tiles = [_Tiles(config, kind) for kind in kinds]
        self.execute: dict[Unit, Callable[..., bool]] = {
            Unit.LOAD: self._load, Unit.ARRAY: self._tile, Unit.DEPTHWISE: self._tile, Unit.VECTOR: self._vector,
            Unit.MOVE: self._move,
        }  # fmt: skip

    def issue(self, unit: Unit) -> tuple[int, int, int, int] | None:
        """Ready, ordered, free and issue cycle of the unit's next instruction, or None if not yet known."""
        done = self.spans[unit]
        number = len(done)
        instruction = self.program[unit][number]
        ordered = 0
        for spans, count in zip(self.in_order, instruction.waits, strict=False):
            if count:
                if count > len(spans):
                    return None
                ordered = max(ordered, spans[count - 1].done + ORDER)
        if isinstance(instruction, (Array, Depthwise)) and instruction.more_reads:
            count = reads_waited(instruction)
            if count > len(self.spans[Unit.VECTOR]):
                return None
            ordered = max(ordered, self.spans[Unit.VECTOR][count - 1].read + ORDER)
        before = self.program[unit][number - 1] if number else None
        ready = mask(before, instruction).bit_count() + FETCH_OVERHEAD
        if not number:
            return ready, ordered, 0, max(ready, ordered)
        last = done[-1]
        ready += last.issue + 1
        free = last.end + 1 if unit != Unit.VECTOR else self._vector_free(number)
        return ready, ordered, free, max(ready, ordered, free)

    def _vector_free(self, number: int) -> int:
        """The first cycle in which the vector instruction before `number`, from 1 on, lets that one issue."""
        before, instruction = self.program[Unit.VECTOR][number - 1 : number + 1]
        assert isinstance(before, Vector)
        assert isinstance(instruction, Vector)
        last = self.spans[Unit.VECTOR][number - 1]
        return max(last.end + 1, last.issue + vector_issue_interval()) if follows(before, instruction) else last.over

    def advance(self, unit: Unit) -> bool:
        """Advance the unit as far as is known; False if it must wait for another unit at once."""
        moved = False
        while self.step(unit):
            moved = True
        return moved

    def step(self, unit: Unit) -> bool:
        """Advance the unit by one instruction, or as many of its tiles as is known; False if it must wait for another
        unit at once."""
        number, code = len(self.spans[unit]), self.program[unit]
        if number == len(code):
            return False
        if unit not in self.part:
            times = self.issue(unit)
            if times is None:
                return False
            self.part[unit] = [*times, 0, 0]
        return self.execute[unit](code[number])

    def _finish(self, unit: Unit, end: int, over: int, early: int = 0) -> bool:
        ready, ordered, free, issue, _, stalled = self.part.pop(unit)
        self.spans[unit].append(IssueRecord(ready, ordered, free, issue, end, over - early, stalled, early))
        return True

    def _load(self, instruction: Load) -> bool:
        steps, mine = load_steps(instruction, self.config), self.tiles[instruction.depthwise]
        part = self.part[Unit.LOAD]
        left = tiles(instruction) - part[4]
        for moved in range(left):
            start = max(part[3] + 1, self.load_end)
            before = len(mine.loaded)
            if before:
                if before > len(mine.start):
                    part[4] += moved
                    return moved > 0
                start = max(start, mine.start[before - 1] + mine.free)
            mine.loaded.append(start)
            self.load_start.append(start)
            self.load_end = start + steps
        return self._finish(Unit.LOAD, self.load_end - 1, self.load_end)

    def _tile(self, instruction: Array | Depthwise) -> bool:
        unit = instruction.UNIT
        mine, part, count = self.tiles[unit == Unit.DEPTHWISE], self.part[unit], tiles(instruction)
        distance, first, n = tile_distance(instruction, False), part[4], part[4]
        while n < count:
            if self.weightless:
                start = max(part[3] + START, mine.end)
                mine.start.extend(range(start, start + (count - n) * distance, distance))
                mine.end, n = mine.start[-1] + distance, count
                break
            loaded = False
            if len(mine.start) >= len(mine.loaded):
                if together := self._loads_and_tiles(mine, part, distance, count - n):
                    n += together
                    continue
                loaded = self.advance(Unit.LOAD)
            if len(mine.start) >= len(mine.loaded):
                part[4] = n
                return n > first or loaded
            free = max(part[3] + START, mine.end)
            start = max(free, mine.loaded[len(mine.start)] + mine.ready)
            part[5] += start - free
            mine.start.append(start)
            mine.end, n = start + distance, n + 1
        mine.end = mine.start[-1] + tile_distance(instruction, True)
        end = mine.start[-1] + pixels(instruction) - 1
        return self._finish(unit, end, end + mine.latency, early_of(instruction))

    def _loads_and_tiles(self, mine: _Tiles, part: list[int], distance: int, count: int) -> int:
        """Load and start up to `count` tiles in turn, as long as one instruction loads them: how many. Each load waits
        for the start of the tile before, and each start for its load.

        But for the first, loads and starts depend on those before by sums and maxima alone. So once both have gone on
        by the same cycles, they go on so.
        """
        loading, code = self.part.get(Unit.LOAD), self.program[Unit.LOAD]
        if loading is None or not mine.start:
            return 0
        load = code[len(self.spans[Unit.LOAD])]
        assert isinstance(load, Load)
        count = min(count, tiles(load) - loading[4])
        if self.tiles[load.depthwise] is not mine or not count:
            return 0
        steps, loads, starts = load_steps(load, self.config), mine.loaded, mine.start
        issued, opened, load_end, end, stalled = loading[3] + 1, part[3] + START, self.load_end, mine.end, 0
        before, made = (-1, starts[-1]), 0
        first = len(loads)
        while made < count:
            loaded = max(issued, load_end, before[1] + mine.free)
            free = max(opened, end)
            start = max(free, loaded + mine.ready)
            loads.append(loaded)
            starts.append(start)
            made, stalled = made + 1, stalled + start - free
            step = start - before[1]
            if made > 1 and loaded - before[0] == step:
                left = count - made
                loads.extend(range(loaded + step, loaded + (left + 1) * step, step))
                starts.extend(range(start + step, start + (left + 1) * step, step))
                made, stalled = count, stalled + left * (step - distance)
            before = loads[-1], starts[-1]
            load_end, end = before[0] + steps, before[1] + distance
        self.load_start.extend(loads[first:])
        self.load_end, mine.end = load_end, end
        part[5] += stalled
        loading[4] += count
        if loading[4] == tiles(load):
            self._finish(Unit.LOAD, load_end - 1, load_end)
        return count

    def _vector(self, instruction: Vector) -> bool:
        end = self.part[Unit.VECTOR][3] + START - 1 + vector_cycles(instruction, self.config)
        return self._finish(Unit.VECTOR, end, end + vector_latency(), early_of(instruction))

    def _move(self, instruction: Move) -> bool:
        assert self.moves is not None
        done = self.moves.done(instruction, self.part[Unit.MOVE][3])
        return self._finish(Unit.MOVE, done - 1, done)


def timeline_below(config: HwConfig, program: Code, below: int | None, weightless: bool = False) -> Timeline | None:
    """As `timeline`; None if the run cannot take fewer cycles than `below`, which is often known before its end."""
    if below is None:
        return timeline(config, program, weightless)
    found = _timeline(config, program, weightless, below)
    return found if found and found.cycles < below else None


def timeline(config: HwConfig, program: Code, weightless: bool = False) -> Timeline:
    """The times of every instruction of a program: lists by unit; a unit may be left out. To be read only.

    With `weightless` the loads are left out and nothing waits for them: when tiles would start if each were there.

    Raises `InternalError` E1110 if the program cannot end (an ordering or weight deadlock).
    """
    if program.get(Unit.MOVE) and not weightless:
        return _of_linked(config, tuple(tuple(program.get(unit, ())) for unit in Unit))
    found = _timeline(config, program, weightless)
    assert found is not None
    return found


@lru_cache(1)
def _of_linked(config: HwConfig, code: tuple[tuple[Ordered, ...], ...]) -> Timeline:
    """The times of a program with moves, which is long: who links it, checks it and reports of it asks for them."""
    found = _timeline(config, dict(zip(Unit, code, strict=True)), False)
    assert found is not None
    return found


def _timeline(config: HwConfig, program: Code, weightless: bool, below: int | None = None) -> Timeline | None:
    units = [unit for unit in Unit if program.get(unit) and not (weightless and unit == Unit.LOAD)]
    run = _Run(config, program, weightless)
    work = WorkLeft(config, program) if below is not None else None
    while any([run.advance(unit) for unit in units]):
        if work and below is not None and work.least(run.spans) >= below:
            return None
    stuck = [unit for unit in units if len(run.spans[unit]) < len(run.program[unit])]
    if stuck:
        unit = stuck[0]
        index = len(run.spans[unit])
        raise InternalError("E1110", f"deadlock: {unit}[{index}] never issues: {run.program[unit][index].text()}")
    ends = [span.done for spans in run.spans.values() for span in spans]
    starts = [kind.start for kind in run.tiles] + [[]]
    return Timeline(run.spans, max(ends, default=0) + FINISH, run.load_start, starts[0], starts[1])
