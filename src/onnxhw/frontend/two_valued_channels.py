"""`two_valued_channels`: channels with sums too large for the hardware that only ever give one of two values."""

from dataclasses import replace

import numpy as np

from .. import fixed
from ..ir.graph import Conv, Graph, Op, Tensor
from .constant_channels import sum_range

WIDEST = 1 << 20
"""Most sums of a channel that are examined."""


def two_valued_channels(graph: Graph) -> Graph:
    """Before: sums from L to H, too large for `fixed.scale_for_requantize`, give y below a sum t and y + 1 from t on.

    After: multiplier ``2**-k`` with ``2**k > H - L``, and the bias moved so that the rounding turns exactly at t. Done
    only after all sums were compared. Such channels have a large bias and next to no weights.
    """
    return Graph(graph.name, graph.tensors, [_rewrite(graph, op) for op in graph.ops], graph.inputs, graph.outputs)


def _rewrite(graph: Graph, op: Op) -> Op:
    if not isinstance(op, Conv):
        return op
    y = graph.tensors[op.output]
    bias, multiplier = op.bias.copy(), op.multiplier.copy()
    for channel, (low, high) in enumerate(zip(*sum_range(op, graph.tensors[op.inputs[0]]), strict=True)):
        try:
            fixed.scale_for_requantize(float(multiplier[channel]), int(low), int(high))
        except fixed.NotProvable:
            found = _equal(op, channel, int(low), int(high), y)
            if found is not None:
                bias[channel], multiplier[channel] = found
    return replace(op, bias=bias, multiplier=multiplier)


def _equal(op: Conv, channel: int, low: int, high: int, y: Tensor) -> tuple[int, np.float32] | None:
    """A bias and a multiplier with the same results for all sums, or None."""
    if high - low >= WIDEST:
        return None
    sums = np.arange(low, high + 1)
    wanted = fixed.requantize(sums, op.multiplier[channel], y.zero_point, op.lo, op.hi)
    first = int(wanted[0])
    if set(wanted.tolist()) != {first, first + 1}:
        return None
    turn, scale = low + int(np.argmax(wanted > first)), 1 << (high - low).bit_length()
    below = first - y.zero_point
    # Half way between two integers rounds to the even one: up at the tie itself, or just above it.
    moved = below * scale + scale // 2 + (below % 2 == 0) - turn
    multiplier = np.float32(1 / scale)
    if not np.array_equal(fixed.requantize(sums + moved, multiplier, y.zero_point, op.lo, op.hi), wanted):
        return None
    return int(op.bias[channel]) + moved, multiplier
