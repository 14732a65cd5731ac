"""When things happen: the exact cycle of every instruction, as a function of the program alone.

The RTL reads the same constants. Cycle 0 is the first cycle in which the units run. Per unit::

    ready[i]  = (issue[i-1] + 1, or 0) + fetch(i)        # the next instruction is fetched while one runs
    issue[i]  = max(ready[i], free[i], done[after_*] + ORDER)    # `done` of the last instruction waited for

With `more_reads` it is also at least ``end + 1 + ORDER`` of the last vector instruction whose operands must have been
read. ``free[i]`` is the cycle after the end of the one before.

Then, with P = oh_n * ow_n pixels per weight tile and T steps per tile load (R / k, or `depthwise_words`):

- load tile n starts at ``l[n] = max(issue + 1, l[n-1] + T, s[n-1] + shadow_free)``, a `shadow_free` of tile n-1;
- array tile n starts at ``s[n] = max(issue + START, s[n-1] + D, l[n] + shadow_ready)``, where D is P, but at least
  MIN_TILE after an instruction's last tile, and between all its tiles if ``nt_n * P < MIN_TILE``;
- a depthwise tile starts no sooner than `settle` cycles after the end of the last array tile before it;
- a vector instruction takes ``words * (K + G - 1)`` cycles plus the pipeline, where K is the window and G
  the number of lane groups; the next one issues when it is done, or if it `follows` it, after its end and no
  sooner than `vector_apart` cycles after its issue.

The two tile recurrences run across instructions: tiles are numbered over the whole program.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..config import WINDOW, HwConfig
from ..errors import InternalError
from .instructions import UNITS, Array, Load, Ordered, Vector, follows

MEMORY = 2
"""Cycles from a block RAM's address to its registered output."""
FETCH_OVERHEAD = MEMORY + 1
"""Cycles of a fetch beyond one per word."""
ORDER = 1
"""Cycles from a completion until an instruction that waited for it may issue."""
START = 2
"""Cycles from the issue of an array or vector instruction to its first operand address."""
MULTIPLY = 3
"""Cycles of a multiplier: input, pipeline and output register."""
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
SCALE = MULTIPLY + 1
"""Cycles of a requantizer lane's multipliers: those made of fabric have a register behind each level of adders."""
REQUANTIZE = 10 + 2 * SCALE
"""Cycles of a requantizer lane, from its operands to the rounded and clamped result."""
FINISH = 3
"""Cycles of a run that no instruction accounts for: one until the units leave reset, two to notice the end."""


def weight_hops(config: HwConfig, row: int) -> int:
    """Register stages that the weights of an array row pass on their way down, one more every `WEIGHT_HOP` rows."""
    return row // config.load_rows * config.load_rows // WEIGHT_HOP if config.load_rows > 1 else 0


def weight_skew(config: HwConfig, row: int, column: int) -> int:
    """By how many cycles the load unit gives a row and column of a weight word later, if a word is a whole tile.

    Then weights walk through the array as the swap does: behind the column of activation products, down the elements
    and across the columns.
    """
    return int(config.fast) + row // config.element_rows + column if config.tile_words == 1 else 0


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
        return max(shadow_free(config), STREAM_TO_SWAP + 1 - LOAD_TO_SHADOW)
    return STREAM_TO_SWAP - LOAD_TO_SHADOW + max(_lead(config))


def shadow_ready(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from the start of a tile's load until that tile may start.

    The array's swap must not overtake the load; the depthwise unit needs all of it.
    """
    if depthwise:
        used = WINDOW**2 * config.depthwise_lanes
        places = (divmod(byte, config.weight_word) for byte in range(used))
        last = max(step + weight_skew(config, *divmod(byte, config.cols)) for step, byte in places)
        return max(1, last + LOAD_TO_SHADOW - STREAM_TO_SWAP)
    return max(1, LOAD_TO_SHADOW + 1 - STREAM_TO_SWAP - min(_lead(config)))


def array_pipeline(config: HwConfig) -> int:
    """Cycles from operands at the west edge to aligned sums at the south edge.

    Down the elements of a column, across the columns; the fast inner product has one column more and a subtraction.
    """
    down = config.rows // config.element_rows - 1
    return MULTIPLY + 1 + down + (config.cols - 1) + (2 if config.fast else 0)


def sums_pipeline(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from operands to sums at the accumulators.

    Where there is a depthwise unit, its sums and the array's meet in a register, and the array's come no sooner.
    """
    if not config.depthwise:
        return array_pipeline(config)
    return (DEPTHWISE if depthwise else max(array_pipeline(config), DEPTHWISE)) + 1


def settle(config: HwConfig) -> int:
    """Cycles between the last pixel of an array tile and the first of a depthwise tile: sums must not overtake."""
    return sums_pipeline(config) - sums_pipeline(config, 1)


def array_latency(config: HwConfig, depthwise: int = 0) -> int:
    """Cycles from the issue of the last pixel until its accumulators can be read.

    Operand read, pad multiplexer, the way to the sums, addition, write.
    """
    return ACT_READ + 1 + sums_pipeline(config, depthwise) + 2


def vector_latency() -> int:
    """Cycles from a word's last operand read to the completion of its first group's write.

    Operand read, zero point, reduction, group multiplexer, lane, table, write and bank register, write.
    """
    return ACT_READ + 3 + REQUANTIZE + MEMORY + 1 + 3


def vector_apart() -> int:
    """Fewest cycles between the issues of two vector instructions.

    From an issue until the instruction's bounds are needed where results are written, just before its first result.
    """
    return vector_latency() - 4


def fetch_cycles(instruction: Ordered) -> int:
    """Cycles to fetch an instruction."""
    return instruction.words() + FETCH_OVERHEAD


def pixels(instruction: Array) -> int:
    """Activation words streamed per weight tile."""
    return instruction.oh_n * instruction.ow_n


def tiles(instruction: Load | Array) -> int:
    """Weight tiles that a load provides or an array instruction takes."""
    if isinstance(instruction, Load):
        return instruction.tiles * instruction.nt_n
    return instruction.kt_n * instruction.sub_n * instruction.kh_n * instruction.kw_n * instruction.nt_n


def tile_distance(instruction: Array, last: bool) -> int:
    """Cycles from the start of a weight tile (perhaps the instruction's `last`) until the next may start."""
    alone = instruction.nt_n * pixels(instruction) < MIN_TILE
    return max(pixels(instruction), MIN_TILE if alone or last else 1)


def sums(instruction: Array) -> tuple[int, int]:
    """Rows and columns of sums per weight tile: its pixels, or the windows of its strip."""
    if not instruction.depthwise:
        return instruction.oh_n, instruction.ow_n
    rows, cols = max(0, instruction.oh_n - WINDOW), max(0, instruction.ow_n - WINDOW)
    return rows // max(1, instruction.dw_sh) + 1, cols // max(1, instruction.dw_sw) + 1


def load_steps(instruction: Load, config: HwConfig) -> int:
    """Weight words, and cycles, of each tile of a load."""
    return config.depthwise_words if instruction.depthwise else config.tile_words


def vector_cycles(instruction: Vector) -> int:
    """Cycles that a vector instruction occupies its pipeline, without latency."""
    words = instruction.cb_n * instruction.oh_n * instruction.ow_n
    return words * (instruction.kh_n * instruction.kw_n + instruction.groups - 1)


@dataclass(frozen=True)
class Span:
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

    spans: dict[str, list[Span]] = field(default_factory=dict)
    cycles: int = 0
    """Cycles of the whole run, as the core's counter reports them."""
    load_start: list[int] = field(default_factory=list)
    tile_start: list[int] = field(default_factory=list)


class _Run:
    """State of the computation: each unit advances as far as what it waits for is known."""

    def __init__(self, config: HwConfig, program: Mapping[str, Sequence[Ordered]]) -> None:
        self.config = config
        self.program = {unit: list(program.get(unit, ())) for unit in UNITS}
        self.spans: dict[str, list[Span]] = {unit: [] for unit in UNITS}
        self.load_start: list[int] = []
        self.tile_start: list[int] = []
        self.load_end = 0
        self.tile_end = 0
        self.settled = 0
        self.free_shadow = 0
        self.part: dict[str, list[int]] = {}
        kinds = (0, 1) if config.depthwise else (0,)
        self.shadow_ready = [shadow_ready(config, kind) for kind in kinds]
        self.shadow_free = [shadow_free(config, kind) for kind in kinds]
        self.latency = [array_latency(config, kind) for kind in kinds]
        self.settle = settle(config)

    def issue(self, unit: str) -> tuple[int, int, int, int] | None:
        """Ready, ordered, free and issue cycle of the unit's next instruction, or None if not yet known."""
        done = self.spans[unit]
        instruction = self.program[unit][len(done)]
        ordered = 0
        for other in UNITS:
            count = getattr(instruction, f"after_{other}")
            if count > len(self.spans[other]):
                return None
            if count:
                ordered = max(ordered, self.spans[other][count - 1].done + ORDER)
        if isinstance(instruction, Array) and instruction.more_reads:
            count = instruction.after_vector + instruction.more_reads
            if count > len(self.spans["vector"]):
                return None
            ordered = max(ordered, self.spans["vector"][count - 1].read + ORDER)
        fetched = done[-1].issue + 1 if done else 0
        ready = fetched + fetch_cycles(instruction)
        free = self.free(unit, instruction)
        return ready, ordered, free, max(ready, ordered, free)

    def free(self, unit: str, instruction: Ordered) -> int:
        """The first cycle in which the instructions before let the unit take this one."""
        if not self.spans[unit]:
            return 0
        last = self.spans[unit][-1]
        if not isinstance(instruction, Vector):
            return last.end + 1
        before = self.program[unit][len(self.spans[unit]) - 1]
        assert isinstance(before, Vector)
        return max(last.end + 1, last.issue + vector_apart()) if follows(before, instruction) else last.done

    def step(self, unit: str) -> bool:
        """Advance the unit by one tile or one instruction; False if it must wait for another unit."""
        if len(self.spans[unit]) == len(self.program[unit]):
            return False
        instruction = self.program[unit][len(self.spans[unit])]
        if unit not in self.part:
            times = self.issue(unit)
            if times is None:
                return False
            self.part[unit] = [*times, 0, 0]
        return {"load": self._load, "array": self._array, "vector": self._vector}[unit](instruction)  # type: ignore[operator,no-any-return]  # each unit's memory has its kind

    def _finish(self, unit: str, end: int, done: int) -> bool:
        ready, ordered, free, issue, _, stalled = self.part.pop(unit)
        self.spans[unit].append(Span(ready, ordered, free, issue, end, done, stalled))
        return True

    def _load(self, instruction: Load) -> bool:
        n, steps = len(self.load_start), load_steps(instruction, self.config)
        start = self.part["load"][3] + 1
        if n:
            if n > len(self.tile_start):
                return False
            start = max(start, self.load_end, self.free_shadow)
        self.load_start.append(start)
        self.load_end = start + steps
        self.part["load"][4] += 1
        if self.part["load"][4] == tiles(instruction):
            self._finish("load", start + steps - 1, start + steps)
        return True

    def _array(self, instruction: Array) -> bool:
        n = len(self.tile_start)
        if n >= len(self.load_start):
            return False
        free = max(self.part["array"][3] + START, self.tile_end)
        if instruction.depthwise:
            free = max(free, self.settled)
        start = max(free, self.load_start[n] + self.shadow_ready[instruction.depthwise])
        self.part["array"][5] += start - free
        self.tile_start.append(start)
        self.free_shadow = start + self.shadow_free[instruction.depthwise]
        if not instruction.depthwise:
            self.settled = start + pixels(instruction) + self.settle
        self.part["array"][4] += 1
        last = self.part["array"][4] == tiles(instruction)
        self.tile_end = start + tile_distance(instruction, last)
        if last:
            end = start + pixels(instruction) - 1
            self._finish("array", end, end + self.latency[instruction.depthwise])
        return True

    def _vector(self, instruction: Vector) -> bool:
        end = self.part["vector"][3] + START - 1 + vector_cycles(instruction)
        return self._finish("vector", end, end + vector_latency())


def timeline(config: HwConfig, program: Mapping[str, Sequence[Ordered]]) -> Timeline:
    """The times of every instruction of a program ``{"load": [...], "array": [...], "vector": [...]}``.

    Raises `InternalError` E1110 if the program cannot end (an ordering or weight deadlock).
    """
    run = _Run(config, program)
    while any([run.step(unit) for unit in UNITS]):
        pass
    stuck = [unit for unit in UNITS if len(run.spans[unit]) < len(run.program[unit])]
    if stuck:
        unit = stuck[0]
        index = len(run.spans[unit])
        raise InternalError("E1110", f"deadlock: {unit}[{index}] never issues: {run.program[unit][index].text()}")
    ends = [span.done for spans in run.spans.values() for span in spans]
    return Timeline(run.spans, max(ends, default=0) + FINISH, run.load_start, run.tile_start)
