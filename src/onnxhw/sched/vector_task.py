"""Tasks of the operations that run on the vector unit alone: Add, Mul, MaxPool, AveragePool, Table."""

import dataclasses
from functools import lru_cache
from itertools import product

from .. import fixed
from ..config import HwConfig
from ..errors import UnsupportedError, assert_never
from ..ir.graph import Add, AveragePool, Graph, MaxPool, Mul, Pool, Table, Tensor
from ..ir.windows import Window
from ..isa.instructions import Vector, VectorOp
from .aliases import block_count
from .constant_memories import ConstantMemories
from .task import MakeTasks, TileTask, Tiling, VectorStep, WordRegion, window_region

ADDRESS = 0xFFFF
Span = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class OutputTile:
    """Output rows and columns that one instruction template serves."""

    rows: Span
    cols: Span
    template: Vector


CALIBRATE = (
    "the ratio is input scale / output scale: calibrate again, or give the operands and the result "
    "scales that are nearer to each other"
)
"""What to do about constants that cannot be proved."""

add_scale = lru_cache(maxsize=256)(fixed.scale_for_add)
average_scale = lru_cache(maxsize=256)(fixed.scale_for_average)


VectorOperation = Add | Mul | Table | MaxPool | AveragePool
"""Operations that `lower_vector` takes."""


def lower_vector(op: VectorOperation, graph: Graph, images: ConstantMemories, config: HwConfig) -> MakeTasks:
    """Find the constants of a vector operation; `UnsupportedError` E4304 if they cannot be proved."""
    x, *others = graph.operands(op)
    y = graph.tensors[op.output]
    other = others[0] if others else None
    if isinstance(op, Mul) and other and x.shape != y.shape:
        x, other = other, x
    try:
        parts = _parts(op, x, other, y, images)
    except fixed.NotProvable as error:
        raise UnsupportedError("E4304", str(error), where=op.where, hint=CALIBRATE) from error
    return lambda tiling: _tasks(op.name, parts, op.window, x, other, y, tiling, config)


def _parts(
    op: VectorOperation, x: Tensor, other: Tensor | None, y: Tensor, images: ConstantMemories
) -> list[OutputTile]:
    """The instructions' templates with their constants."""
    match op:
        case Add() | Mul():
            assert other
            template = _pair(op, x, other, y, images)
        case Table():
            table = images.table(op.table)
            template = _plain(op.name, VectorOp.SUM, images).but(use_table=1, table_index=table & 15)
        case MaxPool():
            _check_windows(op, x)
            template = _plain(op.name, VectorOp.MAX, images)
        case AveragePool():
            return _average_parts(op, x, y, images)
        case _:
            assert_never(op)
    return [OutputTile((0, y.height), (0, y.width), template)]


def _plain(layer: str, op: VectorOp, images: ConstantMemories) -> Vector:
    return Vector(op=op, exact=1, param_base=images.scalar(layer, fixed.ONE))


def _pair(op: Add | Mul, a: Tensor, b: Tensor, y: Tensor, images: ConstantMemories) -> Vector:
    kind, za, zb, zy = VectorOp.MUL, a.zero_point, b.zero_point, y.zero_point
    if isinstance(op, Add):
        kind, (scale, exact) = VectorOp.ADD, add_scale(op.ratio_a, op.ratio_b, za, zb, op.lo, op.hi, zy)
    else:
        scale, exact = fixed.scale_for_multiply(op.ratio), True
    base = images.scalar(op.name, scale)
    return Vector(op=kind, exact=int(exact), param_base=base, za=za, zb=zb, zy=zy, lo=op.lo, hi=op.hi)


def _inside(window: Window, x: Tensor, y: Tensor, axis: int) -> list[tuple[Span, int]]:
    """Runs of output rows (or columns) whose windows have equally many inside the input: ``((first, end), count)``."""
    found: list[tuple[Span, int]] = []
    pad, _, kernel, stride, dilation = window.axis(axis)
    size = x.shape[2 + axis]
    for row in range(y.shape[2 + axis]):
        count = sum(0 <= row * stride - pad + k * dilation < size for k in range(kernel))
        if found and found[-1][1] == count:
            found[-1] = (found[-1][0][0], row + 1), count
        else:
            found.append(((row, row + 1), count))
    return found


def _check_windows(op: Pool, x: Tensor) -> None:
    if not op.window.always_inside((x.height, x.width)):
        hint = "pads must be smaller than the kernel: export the node with less padding"
        raise UnsupportedError("E4306", "a window lies in the padding altogether", where=op.where, hint=hint)


def _average_parts(op: AveragePool, x: Tensor, y: Tensor, images: ConstantMemories) -> list[OutputTile]:
    """Regions of equal divisor; without padding, or if the padding counts, there is one."""
    _check_windows(op, x)
    whole = op.kernel[0] * op.kernel[1]
    if op.count_pad:
        regions = [((0, y.height), (0, y.width), whole)]
    else:
        down, across = _inside(op.window, x, y, 0), _inside(op.window, x, y, 1)
        regions = [(rows, cols, n * m) for rows, n in down for cols, m in across]
    parts = []
    for rows, cols, count in regions:
        scale, exact = average_scale(op.ratio, count, x.zero_point)
        base = images.scalar(op.name, scale)
        template = Vector(
            op=VectorOp.SUM, exact=int(exact), param_base=base, za=x.zero_point, zy=y.zero_point, lo=op.lo, hi=op.hi
        )
        parts.append(OutputTile(rows, cols, template))
    return parts


def _tasks(
    name: str,
    parts: list[OutputTile],
    window: Window,
    x: Tensor,
    other: Tensor | None,
    y: Tensor,
    tiling: Tiling,
    config: HwConfig,
) -> list[TileTask]:
    """One task per box of rows and blocks."""
    tasks = []
    for (first, end), span in boxes(y, tiling, config):
        steps: list[VectorStep] = []
        for part in parts:
            rows = max(first, part.rows[0]), min(end, part.rows[1])
            if rows[0] < rows[1]:
                for some, groups in even_blocks(span, y, config):
                    steps.append(_step(part, window, x, other, y, rows, some, groups))
        tasks.append(TileTask(name, (), tuple(steps)))
    return tasks


def boxes(y: Tensor, tiling: Tiling, config: HwConfig) -> list[tuple[Span, Span]]:
    """Rows and blocks of the result that each task of a vector operation writes, rows outermost."""
    count = block_count(y, config)
    blocks = [(i, i + 1) for i in range(count)] if tiling.blocks_first else [(0, count)]
    return list(product(tiling.tiles, blocks))


def even_blocks(blocks: Span, y: Tensor, config: HwConfig) -> list[tuple[Span, int]]:
    """The blocks in runs that need equally many lane groups: the last one may be narrower."""
    last = -(-y.channels // config.word) - 1
    narrow = -(-(y.channels - last * config.word) // config.lanes)
    if blocks[1] <= last or narrow == config.lane_groups:
        return [(blocks, config.lane_groups)]
    runs = [((blocks[0], last), config.lane_groups)] if blocks[0] < last else []
    return [*runs, ((last, last + 1), narrow)]


def _step(
    part: OutputTile, w: Window, x: Tensor, other: Tensor | None, y: Tensor, rows: Span, blocks: Span, groups: int
) -> VectorStep:
    cols = part.cols
    ih0, iw0 = rows[0] * w.strides[0] - w.pads[0], cols[0] * w.strides[1] - w.pads[1]
    in_plane, out_plane = x.height * x.width, y.height * y.width
    out_at = blocks[0] * out_plane + rows[0] * y.width + cols[0]
    b, b_fields = None, {}
    if other is not None and other.shape == y.shape:
        b = WordRegion(other.name, blocks, rows, cols)
        b_fields = {"b_base": out_at & ADDRESS, "b_cb": out_plane & ADDRESS, "b_oh": y.width, "b_ow": 1}
    elif other is not None:
        b = WordRegion(other.name, blocks, (0, 1), (0, 1))
        b_fields = {"b_base": blocks[0], "b_cb": 1}
    vector = dataclasses.replace(
        part.template,
        cb_n=blocks[1] - blocks[0],
        oh_n=rows[1] - rows[0],
        ow_n=cols[1] - cols[0],
        kh_n=w.kernel[0],
        kw_n=w.kernel[1],
        a_base=(blocks[0] * in_plane + ih0 * x.width + iw0) & ADDRESS,
        a_cb=in_plane & ADDRESS,
        a_oh=w.strides[0] * x.width & ADDRESS,
        a_ow=w.strides[1],
        a_kh=w.dilations[0] * x.width & ADDRESS,
        a_kw=w.dilations[1],
        ih0=ih0,
        iw0=iw0,
        ih_kh=w.dilations[0],
        iw_kw=w.dilations[1],
        ih_oh=w.strides[0],
        iw_ow=w.strides[1],
        in_h=x.height,
        in_w=x.width,
        o_base=out_at & ADDRESS,
        o_cb=out_plane & ADDRESS,
        o_oh=y.width,
        o_ow=1,
        groups=groups,
        **b_fields,
    )
    return VectorStep(vector, window_region(x, blocks, w, rows, cols), b, WordRegion(y.name, blocks, rows, cols))
