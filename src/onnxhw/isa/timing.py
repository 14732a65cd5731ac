"""When things happen: the exact cycle of every instruction, as a function of the program alone.

The RTL reads the same constants. Cycle 0 is the first cycle in which the units run. Per unit::

    ready[i]  = (issue[i-1] + 1, or 0) + words(i) + FETCH_OVERHEAD     # fetched while the one before runs
    issue[i]  = max(ready[i], free[i], done[after_*] + ORDER)    # `done` of the last instruction waited for

``words(i)`` are the words of microcode that are given of it (`onnxhw.isa.microcode`).
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
  lane groups; of several planes each takes ``param_reads`` at least. The next one issues when it is done, or if it
  `follows` it, after its end and no sooner than `vector_issue_interval` cycles after its issue.

The tile recurrences run across instructions: tiles are numbered over the whole program.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from ..config import WINDOW, HwConfig
from ..errors import InternalError
from .external_instructions import Move, reads_waited
from .instructions import Array, Code, Depthwise, Load, Ordered, Vector, follows
from .microcode import given
from .move_timing import MoveTiming
from .units import Unit

MEMORY = 2
"""Cycles from a memory's address to its registered output: on every device, or programs would be for one family only.
A family's cells have at most so many registers (`onnxhw.devices.family.Family.memory`)."""
FETCH_OVERHEAD = MEMORY + 2
"""Cycles of a fetch beyond one per word: the memory, a register behind it, and the ordering fields."""
ORDER = 1
"""Cycles from a completion until an instruction that waited for it may issue."""
START = 2
"""Cycles from the issue of an array, depthwise or vector instruction to its first operand address."""
MULTIPLY = 3
"""Cycles of a multiplier: input, pipeline and output register; the same on every device, as for `MEMORY`."""
ACT_READ = 2 + MEMORY + 1
"""Cycles from an address generator to the operand: request and bank registers, memory, bank multiplexer."""
DRAIN_READ = 1 + MEMORY + 1
"""The same for an accumulator row."""
ACCUMULATE = 4
"""Cycles from the read of an accumulator until a later read sees the sum."""
DEPTHWISE = 1 + MULTIPLY + 4
"""Cycles from a pixel at the depthwise unit to its sums: window, products, four levels of additions."""
MIN_TILE = ACCUMULATE
"""Fewest cycles between two weight tiles of the same accumulators: none must be in flight twice."""
LOAD_TO_SHADOW = 1 + MEMORY + 2
"""Cycles from a load step until its weights stand at the west edge of the array, but for their `weight_skew`."""
STREAM_TO_SWAP = ACT_READ
"""Cycles from the issue of a tile's first pixel to the swap at the west edge, row 0."""
WEIGHT_HOP = 4
"""Array rows that one register stage of the weights serves, where several rows are loaded per cycle."""
COLUMN_HOP = 2
"""Array columns that one register stage of the activations serves. In 16 columns sums come 8 cycles sooner than with
one column per stage, which chains of small layers wait for: AD takes 1,628 cycles on `ulx3s-85f-dense`, not 1,708; with
four per stage 1,588, but then a register's wires are as long as the clock allows."""
REQUANTIZE = 10 + 2 * MULTIPLY
"""Cycles of a requantizer lane, from its operands to the rounded and clamped result."""
FINISH = 3
"""Cycles of a run that no instruction accounts for: one until the units leave reset, two to notice the end."""


def weight_hops(config: HwConfig, row: int) -> int:
    """Register stages that the weights of an array row pass on their way down, one more every `WEIGHT_HOP` rows."""
    return row // config.load_rows * config.load_rows // WEIGHT_HOP if config.load_rows > 1 else 0


def column_hops(column: int) -> int:
    """Register stages that activations pass on their way to an array column, beyond those of the first."""
    return column // COLUMN_HOP


def weight_skew(config: HwConfig, row: int, column: int) -> int:
    """By how many cycles the load unit gives a row and column of a weight word later, if a word is a whole tile.

    Then weights walk through the array as the swap does: behind the column of activation products, down the elements
    and across the columns.
    """
    return int(config.fast) + row // config.element_rows + column_hops(column) if config.tile_words == 1 else 0


def _lead(config: HwConfig) -> list[int]:
    """Per row, by how many cycles the swap comes later than the weights, both counted from row 0.

    The swap walks down one element per cycle, the load k rows per cycle and its register stages; or like the swap.
    """
    if config.tile_words == 1:
        return [0]
    rows = range(config.rows)
    return [row // config.element_rows - row // config.load_rows - weight_hops(config, row) for row in rows]


def shadow_free(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from the start of a tile in the array, or the depthwise unit, until the load of the next one may start.

    A load must not overtake the swap; the depthwise unit's comes a cycle after the array's first.
    """
    if depthwise:
        return STREAM_TO_SWAP + 1 - LOAD_TO_SHADOW
    return STREAM_TO_SWAP - LOAD_TO_SHADOW + max(_lead(config))


def shadow_ready(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from the start of a tile's load until that tile may start.

    The array's swap must not overtake the load; the depthwise unit needs all of it: with every word it shifts every
    byte that any word uses.
    """
    if depthwise:
        used = min(WINDOW**2 * config.depthwise_lanes, config.weight_word)
        skew = max(weight_skew(config, *divmod(byte, config.cols)) for byte in range(used))
        return max(1, config.depthwise_words - 1 + skew + LOAD_TO_SHADOW - STREAM_TO_SWAP)
    return max(1, LOAD_TO_SHADOW + 1 - STREAM_TO_SWAP - min(_lead(config)))


def array_pipeline(config: HwConfig) -> int:
    """Cycles from operands at the west edge to aligned sums at the south edge.

    Down the elements of a column, across the columns, `COLUMN_HOP` at a time; the fast inner product has one column
    more and a subtraction.
    """
    down = config.rows // config.element_rows - 1
    return MULTIPLY + 1 + down + column_hops(config.cols - 1) + (2 if config.fast else 0)


def array_latency(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from the issue of the last pixel, in the array or the depthwise unit, until its sums can be drained.

    Operand read, pad multiplexer, the way to the sums, addition, write.
    """
    return ACT_READ + 1 + (DEPTHWISE if depthwise else array_pipeline(config)) + 2


def vector_latency() -> int:
    """Cycles from a word's last operand read to the completion of its first group's write.

    Operand read, zero point, reduction, group multiplexer, lane, table, write and bank register, write.
    """
    return ACT_READ + 3 + REQUANTIZE + MEMORY + 1 + 3


def vector_issue_interval() -> int:
    """Fewest cycles between the issues of two vector instructions.

    From an issue until the instruction's bounds are needed where results are written (`results_later`), they wait in
    two registers, one after the other, each for half of the time.
    """
    return -(-(results_later() + 1) // 2)


def results_later() -> int:
    """Cycles from the issue of a vector instruction until its loops of results begin, just before its first result."""
    return vector_latency() - 4


def pixels(instruction: Array | Depthwise) -> int:
    """Activation words streamed per weight tile."""
    return instruction.oh_n * instruction.ow_n


def tiles(instruction: Load | Array | Depthwise) -> int:
    """Weight tiles that a load provides, or that an instruction of the array or the depthwise unit takes."""
    if isinstance(instruction, Load):
        return instruction.tiles * instruction.nt_n
    if isinstance(instruction, Depthwise):
        return instruction.kh_n * instruction.kw_n
    return instruction.kt_n * instruction.sub_n * instruction.kh_n * instruction.kw_n * instruction.nt_n


def tile_distance(instruction: Array | Depthwise, last: bool) -> int:
    """Cycles from the start of a weight tile (perhaps the instruction's `last`) until the next may start."""
    if isinstance(instruction, Depthwise):
        return pixels(instruction)
    alone = instruction.nt_n * pixels(instruction) < MIN_TILE
    return max(pixels(instruction), MIN_TILE if alone or last else 1)


def sums(instruction: Array | Depthwise) -> tuple[int, int]:
    """Rows and columns of sums per weight tile: its pixels, or the windows of its strip."""
    if isinstance(instruction, Array):
        return instruction.oh_n, instruction.ow_n
    rows, cols = max(0, instruction.oh_n - WINDOW), max(0, instruction.ow_n - WINDOW)
    return rows // max(1, instruction.sh) + 1, cols // max(1, instruction.sw) + 1


def load_steps(instruction: Load, config: HwConfig) -> int:
    """Weight words, and cycles, of each tile of a load."""
    return config.depthwise_words if instruction.depthwise else config.tile_words


def vector_cycles(instruction: Vector, config: HwConfig) -> int:
    """Cycles that a vector instruction occupies its pipeline, without latency.

    A plane takes as many at least as its parameter row does to be read, unless it is the only one.
    """
    plane = instruction.oh_n * instruction.ow_n * (instruction.kh_n * instruction.kw_n + instruction.groups - 1)
    return instruction.cb_n * (max(plane, config.param_reads) if instruction.cb_n > 1 else plane)


@dataclass(frozen=True)
class IssueRecord:
    """When one instruction ran, in cycles from the start of the run.

    `ready`: fetched; `ordered`: the ordering fields were satisfied (at or before `issue`); `free`: its unit could take
    it, as far as the one before lets it; `issue`: taken by its unit; `end`: last cycle of its own work (last step,
    pixel or group);
    `done`: its completion can be seen by the others; `stalled`: cycles lost waiting for weights.
    """

    ready: int
    ordered: int
    free: int
    issue: int
    end: int
    done: int
    stalled: int = 0

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
        self.given = {unit: given(code) for unit, code in self.program.items()}
        self.moves = MoveTiming(config) if self.program[Unit.MOVE] else None
        self.spans: dict[Unit, list[IssueRecord]] = {unit: [] for unit in Unit}
        self.in_order = tuple(self.spans.values())
        self.load_start: list[int] = []
        self.load_end = 0
        self.part: dict[Unit, list[int]] = {}
        kinds = (0, 1) if config.depthwise else (0,)
        self.tiles = [_Tiles(config, kind) for kind in kinds]

    def issue(self, unit: Unit) -> tuple[int, int, int, int] | None:
        """Ready, ordered, free and issue cycle of the unit's next instruction, or None if not yet known."""
        done = self.spans[unit]
        instruction = self.program[unit][len(done)]
        ordered = 0
        for spans, count in zip(self.in_order, instruction.waits, strict=False):
            if count > len(spans):
                return None
            if count:
                ordered = max(ordered, spans[count - 1].done + ORDER)
        if isinstance(instruction, (Array, Depthwise)) and instruction.more_reads:
            count = reads_waited(instruction)
            if count > len(self.spans[Unit.VECTOR]):
                return None
            ordered = max(ordered, self.spans[Unit.VECTOR][count - 1].read + ORDER)
        fetched = done[-1].issue + 1 if done else 0
        ready = fetched + self.given[unit][len(done)] + FETCH_OVERHEAD
        free = self.free(unit, instruction)
        return ready, ordered, free, max(ready, ordered, free)

    def free(self, unit: Unit, instruction: Ordered) -> int:
        """The first cycle in which the instructions before let the unit take this one."""
        if not self.spans[unit]:
            return 0
        last = self.spans[unit][-1]
        if not isinstance(instruction, Vector):
            return last.end + 1
        before = self.program[unit][len(self.spans[unit]) - 1]
        assert isinstance(before, Vector)
        return max(last.end + 1, last.issue + vector_issue_interval()) if follows(before, instruction) else last.done

    def advance(self, unit: Unit) -> bool:
        """Advance the unit as far as is known; False if it must wait for another unit at once."""
        moved = False
        while self.step(unit):
            moved = True
        return moved

    def step(self, unit: Unit) -> bool:
        """Advance the unit by one instruction, or as many of its tiles as is known; False if it must wait for another
        unit at once."""
        if len(self.spans[unit]) == len(self.program[unit]):
            return False
        instruction = self.program[unit][len(self.spans[unit])]
        if unit not in self.part:
            times = self.issue(unit)
            if times is None:
                return False
            self.part[unit] = [*times, 0, 0]
        if isinstance(instruction, Load):
            return self._load(instruction)
        if isinstance(instruction, (Array, Depthwise)):
            return self._tile(unit, instruction)
        if isinstance(instruction, Move):
            return self._move(instruction)
        assert isinstance(instruction, Vector)
        return self._vector(instruction)

    def _finish(self, unit: Unit, end: int, done: int) -> bool:
        ready, ordered, free, issue, _, stalled = self.part.pop(unit)
        self.spans[unit].append(IssueRecord(ready, ordered, free, issue, end, done, stalled))
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

    def _tile(self, unit: Unit, instruction: Array | Depthwise) -> bool:
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
        return self._finish(unit, end, end + mine.latency)

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
        return self._finish(Unit.VECTOR, end, end + vector_latency())

    def _move(self, instruction: Move) -> bool:
        assert self.moves is not None
        done = self.moves.done(instruction, self.part[Unit.MOVE][3])
        return self._finish(Unit.MOVE, done - 1, done)


def timeline(config: HwConfig, program: Code, weightless: bool = False) -> Timeline:
    """The times of every instruction of a program: lists by unit; a unit may be left out. To be read only.

    With `weightless` the loads are left out and nothing waits for them: when tiles would start if each were there.

    Raises `InternalError` E1110 if the program cannot end (an ordering or weight deadlock).
    """
    if program.get(Unit.MOVE) and not weightless:
        return _of_linked(config, tuple(tuple(program.get(unit, ())) for unit in Unit))
    return _timeline(config, program, weightless)


@lru_cache(1)
def _of_linked(config: HwConfig, code: tuple[tuple[Ordered, ...], ...]) -> Timeline:
    """The times of a program with moves, which is long: who links it, checks it and reports of it asks for them."""
    return _timeline(config, dict(zip(Unit, code, strict=True)), False)


def _timeline(config: HwConfig, program: Code, weightless: bool) -> Timeline:
    units = [unit for unit in Unit if program.get(unit) and not (weightless and unit == Unit.LOAD)]
    run = _Run(config, program, weightless)
    while any([run.advance(unit) for unit in units]):
        pass
    stuck = [unit for unit in units if len(run.spans[unit]) < len(run.program[unit])]
    if stuck:
        unit = stuck[0]
        index = len(run.spans[unit])
        raise InternalError("E1110", f"deadlock: {unit}[{index}] never issues: {run.program[unit][index].text()}")
    ends = [span.done for spans in run.spans.values() for span in spans]
    starts = [kind.start for kind in run.tiles] + [[]]
    return Timeline(run.spans, max(ends, default=0) + FINISH, run.load_start, starts[0], starts[1])
