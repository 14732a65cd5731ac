"""Tasks of MatMul: every element of the result is the DOT of a row of a and a column of b.

The result's pixel (m, n) is a window of 1 x K positions; both operands step along it. Whether an operand lies
transposed is a matter of its steps::

    a  (M, K)  a_oh = K, a_kw = 1        (K, M)  a_oh = 1, a_kw = M
    b  (K, N)  b_ow = 1, b_kw = N        (N, K)  b_ow = K, b_kw = 1

One instruction per group of lanes, for a group keeps its lanes' multipliers for a whole window.
"""

import dataclasses

from ..config import HwConfig
from ..fixed import scale_for_dot
from ..ir.graph import MatMul, Tensor
from ..isa.instructions import ADDRESS, Vector, VectorOp
from .lowering_context import LoweringContext
from .task import MakeTasks, TileTask, VectorStep, WordRegion
from .vector_task import Span, boxes, even_blocks


def lower_matmul(op: MatMul, context: LoweringContext) -> MakeTasks:
    """The tasks of a MatMul; `NotProvable` if a sum may exceed 25 bits or no constant equals the scale."""
    (a, b), y, config = context.graph.operands(op), context.graph.tensors[op.output], context.config
    count = a.height if op.transposed_a else a.width
    scale = scale_for_dot(op.multiplier, count, a.zero_point, b.zero_point)
    template = Vector(
        op=VectorOp.DOT,
        ow_n=y.width,
        kw_n=count,
        in_h=1,
        in_w=1,
        a_cb=a.height * a.width & ADDRESS,
        a_oh=1 if op.transposed_a else a.width,
        a_kw=a.width if op.transposed_a else 1,
        b_cb=b.height * b.width & ADDRESS,
        b_ow=b.width if op.transposed_b else 1,
        b_kw=1 if op.transposed_b else b.width,
        o_cb=y.height * y.width & ADDRESS,
        o_oh=y.width,
        o_ow=1,
        param_base=context.images.scalar(op.name, scale),
        za=a.zero_point,
        zb=b.zero_point,
        zy=y.zero_point,
        lo=op.lo,
        hi=op.hi,
    )
    return lambda tiling: [_task(op, a, b, y, template, *box, config) for box in boxes(y, tiling, config)]


def _task(
    op: MatMul, a: Tensor, b: Tensor, y: Tensor, template: Vector, rows: Span, span: Span, config: HwConfig
) -> TileTask:
    steps = []
    across = (0, a.width)
    for blocks, groups in even_blocks(span, y, config):
        vector = dataclasses.replace(
            template,
            cb_n=blocks[1] - blocks[0],
            oh_n=rows[1] - rows[0],
            a_base=(blocks[0] * a.height * a.width + rows[0] * template.a_oh) & ADDRESS,
            b_base=blocks[0] * b.height * b.width & ADDRESS,
            o_base=(blocks[0] * y.height * y.width + rows[0] * y.width) & ADDRESS,
        )
        of_a = ((0, a.height), rows) if op.transposed_a else (rows, across)
        for group in range(groups):
            steps.append(
                VectorStep(
                    dataclasses.replace(vector, lane_group=group),
                    WordRegion(a.name, blocks, *of_a),
                    WordRegion(b.name, blocks, (0, b.height), (0, b.width)),
                    WordRegion(y.name, blocks, rows, (0, y.width)),
                )
            )
    return TileTask(op.name, (), tuple(steps))
