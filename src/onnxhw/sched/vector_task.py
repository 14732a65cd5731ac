"""Tasks of the operations that run on the vector unit alone: Add, Mul, MaxPool, AveragePool, Table."""

import dataclasses
from functools import lru_cache
from itertools import product

from .. import fixed
from ..config import HwConfig
from ..errors import UnsupportedError
from ..ir.graph import Add, AveragePool, MaxPool, Mul, Op, Pool, Table, Tensor
from ..ir.windows import Window
from ..isa.instructions import ADDRESS, Vector, VectorOp
from .aliases import block_count
from .constant_memories import ConstantMemories
from .lowering_context import LoweringContext
from .task import MakeTasks, TileTask, Tiling, VectorStep, WordRegion, window_region

Span = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class OutputTile:
    """Output rows and columns that one instruction template serves."""

    rows: Span
    cols: Span
    template: Vector


add_scale = lru_cache(maxsize=256)(fixed.scale_for_add)
average_scale = lru_cache(maxsize=256)(fixed.scale_for_average)


def lower_add(op: Add, context: LoweringContext) -> MakeTasks:
    """The tasks of an Add; `NotProvable` if no constant equals its ratios."""
    (a, b), y = context.graph.operands(op), context.graph.tensors[op.output]
    scale, exact = add_scale(op.ratio_a, op.ratio_b, a.zero_point, b.zero_point, op.lo, op.hi, y.zero_point)
    return _pair(op, VectorOp.ADD, scale, exact, a, b, context)


def lower_mul(op: Mul, context: LoweringContext) -> MakeTasks:
    """The tasks of a Mul; `NotProvable` if no constant equals its ratio."""
    (a, b), y = context.graph.operands(op), context.graph.tensors[op.output]
    a, b = (a, b) if a.shape == y.shape else (b, a)
    return _pair(op, VectorOp.MUL, fixed.scale_for_multiply(op.ratio), True, a, b, context)


def lower_table(op: Table, context: LoweringContext) -> MakeTasks:
    """The tasks of a Table."""
    table = context.images.table(op.table)
    return _everywhere(op, _plain(op, VectorOp.SUM, context).but(use_table=1, table_index=table & 15), context)


def lower_max_pool(op: MaxPool, context: LoweringContext) -> MakeTasks:
    """The tasks of a MaxPool; `UnsupportedError` E4306 if a window may lie in the padding altogether."""
    _check_windows(op, context)
    return _everywhere(op, _plain(op, VectorOp.MAX, context), context)


def lower_average_pool(op: AveragePool, context: LoweringContext) -> MakeTasks:
    """The tasks of an AveragePool; `UnsupportedError` as of a MaxPool, `NotProvable` if no constant equals a ratio."""
    _check_windows(op, context)
    (x,), y = context.graph.operands(op), context.graph.tensors[op.output]
    parts = _average_parts(op, x, y, context.images)
    return lambda tiling: _tasks(op.name, parts, op.window, x, None, y, tiling, context.config)


def _plain(op: Op, kind: VectorOp, context: LoweringContext) -> Vector:
    return Vector(op=kind, exact=1, param_base=context.images.scalar(op.name, fixed.ONE))


def _pair(
    op: Add | Mul, kind: VectorOp, scale: fixed.Scale, exact: bool, a: Tensor, b: Tensor, context: LoweringContext
) -> MakeTasks:
    base, zy = context.images.scalar(op.name, scale), context.graph.tensors[op.output].zero_point
    template = Vector(
        op=kind, exact=int(exact), param_base=base, za=a.zero_point, zb=b.zero_point, zy=zy, lo=op.lo, hi=op.hi
    )
    return _everywhere(op, template, context, a, b)


def _everywhere(
    op: Op, template: Vector, context: LoweringContext, a: Tensor | None = None, b: Tensor | None = None
) -> MakeTasks:
    """The tasks of one template for the whole result."""
    x, y = a or context.graph.tensors[op.inputs[0]], context.graph.tensors[op.output]
    parts = [OutputTile((0, y.height), (0, y.width), template)]
    return lambda tiling: _tasks(op.name, parts, op.window, x, b, y, tiling, context.config)


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


def _check_windows(op: Pool, context: LoweringContext) -> None:
    x = context.graph.tensors[op.inputs[0]]
    if not op.window.always_inside((x.height, x.width)):
        hint = "pads must be smaller than the kernel: export the node with less padding"
        raise UnsupportedError("E4306", "a window lies in the padding altogether", where=op.where, hint=hint)


def _average_parts(op: AveragePool, x: Tensor, y: Tensor, images: ConstantMemories) -> list[OutputTile]:
    """Regions of equal divisor; without padding, or if the padding counts, there is one."""
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
    cols, reads = part.cols, window_region(x, blocks, w, rows, part.cols)
    w, x = folded(w, x)
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
    return VectorStep(vector, reads, b, WordRegion(y.name, blocks, rows, cols))


MOST_ROWS, MOST_COLS = ((1 << spec.bits) - 1 for spec in Vector.specs() if spec.name in ("kh_n", "kw_n"))
"""Of a window."""


def folded(window: Window, x: Tensor) -> tuple[Window, Tensor]:
    """A window over the whole of an operand that is larger than its fields hold as one of other rows and columns that
    they do: pixels lie one behind the other. As it is where there is none, or no need."""
    rows, cols = window.kernel
    if (rows, cols) != x.shape[2:] or any(window.pads) or (rows <= MOST_ROWS and cols <= MOST_COLS):
        return window, x
    for height in range(1, MOST_ROWS + 1):
        if rows * cols % height == 0 and rows * cols // height <= MOST_COLS:
            size = height, rows * cols // height
            return Window(size), dataclasses.replace(x, shape=(1, x.channels, *size))
    return window, x
