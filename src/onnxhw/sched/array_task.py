"""Tasks of the operations that run on the array: Conv, and Concat where it copies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from ..config import HwConfig
from ..fixed import INT8_MAX, INT8_MIN
from ..ir.graph import Conv, Graph, Tensor
from ..ir.windows import ONE_PIXEL, Window
from ..isa.instructions import ADDRESS, Array, Load, Vector, VectorOp
from .array_mapping import BlockRun, ColumnTile, DrainSet, drain_sets, grouped_columns, weight_step
from .task import ArrayStep, TileTask, Tiling, VectorStep, WordRegion, window_region


@dataclass(frozen=True)
class Geometry:
    """The spatial side of an array operation: one window rule for all input tensors."""

    op: str
    y: Tensor
    pad: int = 0
    window: Window = ONE_PIXEL
    zero_point: int = 0
    lo: int = INT8_MIN
    hi: int = INT8_MAX
    exact: int = 1
    packed: Conv | None = None


def geometry(op: Conv, graph: Graph) -> Geometry:
    """The geometry of a convolution."""
    y, zero = graph.tensors[op.output], graph.tensors[op.inputs[0]].zero_point
    packed = op if op.tiles else None
    return Geometry(op.name, y, zero, op.window, y.zero_point, op.lo, op.hi, exact=0, packed=packed)


def max_rows(y: Tensor, config: HwConfig) -> int:
    """Most output rows of a tile: what the accumulators hold and the instruction can count."""
    return max(1, min(config.acc_depth // min(y.width, config.acc_depth), 4095))


def limit(cuts: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """The same cuts and as many more as make every tile at most `rows` high."""
    out = [0]
    for first, end in pairwise(cuts):
        parts = -(-(end - first) // rows)
        out += [first + (end - first) * i // parts for i in range(1, parts + 1)]
    return tuple(out)


def coarsest(y: Tensor, config: HwConfig) -> Tiling:
    """The fewest tiles of a result."""
    return Tiling(limit((0, y.height), max_rows(y, config)), whole=True)


def array_tasks(g: Geometry, columns: list[ColumnTile], tiling: Tiling, config: HwConfig) -> list[TileTask]:
    """One task per row tile and column-tile group; rows wider than the accumulators are cut into columns.

    With `Tiling.lookahead` the first two groups are one task.
    """
    y = g.y
    parts = -(-y.width // config.acc_depth)
    edges = [y.width * i // parts for i in range(parts + 1)]
    boxes = [(rows, cols) for rows in tiling.tiles for cols in pairwise(edges)]
    largest = max((rows[1] - rows[0]) * (cols[1] - cols[0]) for rows, cols in boxes)
    groups = grouped_columns(columns, tiling.columns, config.acc_depth // largest)
    pairs = [(box, which) for box in boxes for which in range(len(groups))]
    if tiling.blocks_first:
        pairs = [(box, which) for which in range(len(groups)) for box in boxes]
    by_turns = bool(tiling.lookahead and tiling.split) and len(groups) > 1 and not tiling.blocks_first
    cuts = [tiling.split, (tiling.lookahead,) if by_turns else ()] + [()] * len(groups)
    tasks: list[TileTask] = []
    for box, which in pairs:
        task = _task(g, groups[which], *box, cuts[which], tiling.drain_per_block, config)
        if by_turns and which == 1:
            task = _by_turns(tasks.pop(), task, tiling)
        tasks.append(task)
    return tasks


def _by_turns(one: TileTask, other: TileTask, tiling: Tiling) -> TileTask:
    """The tasks of two groups as one: the lookahead of the second comes before the last part of the first."""
    second = [replace(step, bank=1) for step in other.arrays]
    early, count = (_within(steps, end) for steps, end in ((one.arrays, tiling.split[-1]), (second, tiling.lookahead)))
    arrays = [*one.arrays[:early], *second[:count], *one.arrays[early:], *second[count:]]
    return TileTask(one.op, tuple(arrays), one.vectors + tuple(replace(step, bank=1) for step in other.vectors))


def _within(steps: Sequence[ArrayStep], end: int) -> int:
    """How many steps from the first on read blocks before `end` alone."""
    return len(list(takewhile(lambda step: step.reads and step.reads[0].blocks[1] <= end, steps)))


def _task(
    g: Geometry, tiles: list[ColumnTile], rows: tuple[int, int], cols: tuple[int, int], cuts: tuple[int, ...],
    per_block: bool, config: HwConfig,
) -> TileTask:
    arrays = list[ArrayStep]()
    across = weight_step(*tiles[:2]) if len(tiles) > 1 else 0
    if g.packed:
        cuts = tuple(range(1, len(g.packed.tiles)))
    runs = [part for whole in tiles[0].runs for part in whole.cuts(cuts, config)]
    for run in runs:
        load = Load(base=run.weights, tiles=run.tiles, nt_n=len(tiles), nt_step=across or 0)
        array, region = (_packed if g.packed else _words)(g, run, rows, cols)
        fields = {"nt_n": len(tiles), "accumulate": int(bool(arrays))}
        arrays.append(ArrayStep(load, array.but(**fields), run.tensor.name, () if region.empty else (region,)))
    found = drain_sets([column.drains for column in tiles], per_block)
    return TileTask(g.op, tuple(arrays), tuple(drain_steps(g, found, rows, cols)))


def _words(g: Geometry, run: BlockRun, rows: tuple[int, int], cols: tuple[int, int]) -> tuple[Array, WordRegion]:
    """The instruction that streams the blocks of a run for a box of output rows and columns, and what it reads."""
    w, x = g.window, run.tensor
    plane = x.height * x.width
    ih0, iw0 = rows[0] * w.strides[0] - w.pads[0], cols[0] * w.strides[1] - w.pads[1]
    array = Array(
        act_base=(run.block * plane + ih0 * x.width + iw0) & ADDRESS,
        kt_n=run.kt_n,
        sub_n=run.sub_n,
        kh_n=w.kernel[0],
        kw_n=w.kernel[1],
        oh_n=rows[1] - rows[0],
        ow_n=cols[1] - cols[0],
        a_kt=plane & ADDRESS,
        a_kh=w.dilations[0] * x.width & ADDRESS,
        a_kw=w.dilations[1],
        a_oh=w.strides[0] * x.width & ADDRESS,
        a_ow=w.strides[1],
        ih0=ih0,
        iw0=iw0,
        ih_kh=w.dilations[0],
        iw_kw=w.dilations[1],
        ih_oh=w.strides[0],
        iw_ow=w.strides[1],
        in_h=x.height,
        in_w=x.width,
        pad=g.pad,
    )
    return array, window_region(x, (run.block, run.block + run.kt_n), w, rows, cols)


def _packed(g: Geometry, run: BlockRun, rows: tuple[int, int], cols: tuple[int, int]) -> tuple[Array, WordRegion]:
    """The same of an operand whose bytes lie in a row: one read for each position."""
    assert g.packed
    x, tile, (down, across) = run.tensor, g.packed.tiles[run.block], g.packed.pitch
    first = tile.first + rows[0] * down + cols[0] * across
    last = first + (rows[1] - 1 - rows[0]) * down + (cols[1] - 1 - cols[0]) * across + x.channels - 1
    array = Array(
        act_base=first & ADDRESS,
        oh_n=rows[1] - rows[0],
        ow_n=cols[1] - cols[0],
        a_oh=down,
        a_ow=across,
        pad=g.pad,
        unaligned=1,
        split=tile.split,
        jump=tile.jump,
    )
    end = last // x.channels + (tile.jump if tile.split else 0) + 1
    return array, WordRegion(x.name, (0, 1), (0, 1), (first // x.channels, end))


def drain_steps(
    g: Geometry, found: list[DrainSet], rows: tuple[int, int], cols: tuple[int, int]
) -> list[VectorStep]:
    """The vector steps that write the sums of a box of output rows and columns."""
    y = g.y
    pixels = (rows[1] - rows[0]) * (cols[1] - cols[0])
    steps = []
    for drain, tile, count, every, params in found:
        vector = Vector(
            op=VectorOp.DRAIN,
            per_channel=1,
            exact=g.exact,
            cb_n=count,
            oh_n=rows[1] - rows[0],
            ow_n=cols[1] - cols[0],
            a_base=tile * pixels,
            a_cb=every * pixels,
            a_oh=cols[1] - cols[0],
            a_ow=1,
            o_base=(drain.block * y.height * y.width + rows[0] * y.width + cols[0]) & ADDRESS,
            o_cb=y.height * y.width & ADDRESS,
            o_oh=y.width,
            o_ow=1,
            groups=drain.groups,
            column_group=drain.column_group,
            lane_group=drain.lane_group,
            param_base=drain.params,
            param_cb=params,
            zy=g.zero_point,
            lo=g.lo,
            hi=g.hi,
        )
        steps.append(VectorStep(vector, None, None, WordRegion(y.name, (drain.block, drain.block + count), rows, cols)))
    return steps
