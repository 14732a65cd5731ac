"""How long things take: latencies and distances of the units, in cycles. The RTL reads the same constants.

When they happen is told by `onnxhw.isa.timeline`.
"""

from ..config import WINDOW, HwConfig
from .instructions import Array, Depthwise, Load, Vector

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
REDUCE = 2
"""Cycles from two operands to the sums or maxima of their window."""
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
one column per stage, which chains of small layers wait for: AD takes 1,445 cycles on `ulx3s-85f-dense`, not 1,525; with
four per stage 1,405, but then a register's wires are as long as the clock allows."""
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


def drain_later(config: HwConfig) -> int:
    """Cycles from a drain's address until its row is asked for: as much later than other operands are, as it is there
    sooner, so that both come to the lanes in the same cycle. With a depthwise unit there is a register more on its
    way."""
    return ACT_READ + REDUCE - DRAIN_READ - bool(config.depthwise)


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
