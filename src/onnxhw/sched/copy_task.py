"""Tasks of Copy: each piece is a vector instruction that reads and writes with the piece's own steps.

The sum over a window of one position is the position's value; a window outside the input sums to nothing, and the
zero point that is added then is the fill::

    piece    SUM, in_h = in_w = 1, ih = iw = 0 throughout: only the address moves
    fill     SUM, ih0 = -1: outside throughout
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..fixed import ONE
from ..ir.graph import Copy, Piece, Tensor
from ..isa.instructions import ADDRESS, Vector, VectorOp
from .lowering_context import LoweringContext
from .task import MakeTasks, TileTask, VectorStep, WordRegion
from .vector_task import Span, boxes, even_blocks


def lower_copy(op: Copy, context: LoweringContext) -> MakeTasks:
    """The tasks of a Copy; nothing in it can fail."""
    inputs, y, config = context.graph.operands(op), context.graph.tensors[op.output], context.config
    template = Vector(op=VectorOp.SUM, exact=1, param_base=context.images.scalar(op.name, ONE))
    empty = op.index(inputs, y) < 0

    return lambda tiling: [_task(op, inputs, y, template, empty, *box, config) for box in boxes(y, tiling, config)]


def _task(
    op: Copy,
    inputs: list[Tensor],
    y: Tensor,
    template: Vector,
    empty: npt.NDArray[np.bool_],
    rows: Span,
    span: Span,
    config: HwConfig,
) -> TileTask:
    steps = []
    for blocks, groups in even_blocks(span, y, config):
        base = dataclasses.replace(template, cb_n=blocks[1] - blocks[0], groups=groups)
        for piece in op.pieces:
            part = _rows(piece, rows)
            if part is not None:
                steps.append(_copied(base, part, inputs[part.source], y, blocks))
        steps += [_filled(base, op.fill, y, box, blocks) for box in rectangles(empty, rows)]
    return TileTask(op.name, (), tuple(steps))


def _rows(piece: Piece, rows: Span) -> Piece | None:
    """The part of a piece that lies in some rows of the result."""
    first = max(0, -(-(rows[0] - piece.y) // piece.dy))
    end = min(piece.rows, -(-(rows[1] - piece.y) // piece.dy))
    if first >= end:
        return None
    return dataclasses.replace(
        piece, start=piece.start + first * piece.row, rows=end - first, y=piece.y + first * piece.dy
    )


def _copied(base: Vector, piece: Piece, x: Tensor, y: Tensor, blocks: Span) -> VectorStep:
    in_plane, out_plane = x.height * x.width, y.height * y.width
    vector = dataclasses.replace(
        base,
        oh_n=piece.rows,
        ow_n=piece.cols,
        a_base=(blocks[0] * in_plane + piece.start) & ADDRESS,
        a_cb=in_plane & ADDRESS,
        a_oh=piece.row & ADDRESS,
        a_ow=piece.col & ADDRESS,
        in_h=1,
        in_w=1,
        o_base=(blocks[0] * out_plane + piece.y * y.width + piece.x) & ADDRESS,
        o_cb=out_plane & ADDRESS,
        o_oh=piece.dy * y.width & ADDRESS,
        o_ow=piece.dx,
    )
    rows, cols = [0, (piece.rows - 1) * piece.row], [0, (piece.cols - 1) * piece.col]
    low, high = piece.start + min(rows) + min(cols), piece.start + max(rows) + max(cols)
    across = (0, x.width) if low // x.width != high // x.width else (low % x.width, high % x.width + 1)
    reads = WordRegion(x.name, blocks, (low // x.width, high // x.width + 1), across)
    bottom, right = piece.y + (piece.rows - 1) * piece.dy + 1, piece.x + (piece.cols - 1) * piece.dx + 1
    return VectorStep(vector, reads, None, WordRegion(y.name, blocks, (piece.y, bottom), (piece.x, right)))


def _filled(base: Vector, fill: int, y: Tensor, box: tuple[Span, Span], blocks: Span) -> VectorStep:
    (top, bottom), (left, right) = box
    vector = dataclasses.replace(
        base,
        oh_n=bottom - top,
        ow_n=right - left,
        ih0=-1,
        in_h=1,
        in_w=1,
        zy=fill,
        o_base=(blocks[0] * y.height * y.width + top * y.width + left) & ADDRESS,
        o_cb=y.height * y.width & ADDRESS,
        o_oh=y.width,
        o_ow=1,
    )
    return VectorStep(vector, None, None, WordRegion(y.name, blocks, *box))


def rectangles(mask: npt.NDArray[np.bool_], rows: Span) -> list[tuple[Span, Span]]:
    """Disjoint boxes ``(rows, columns)`` that cover what is set in some rows of a mask."""
    found: list[tuple[Span, Span]] = []
    first = rows[0]
    while first < rows[1]:
        end = first + 1
        while end < rows[1] and np.array_equal(mask[end], mask[first]):
            end += 1
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask[first].astype(np.int8), [0]])))
        found += [((first, end), (int(left), int(right))) for left, right in edges.reshape(-1, 2)]
        first = end
    return found
