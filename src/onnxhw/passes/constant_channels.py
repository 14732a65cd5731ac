"""`constant_channels`: convolution channels without weights get the plainest constants that make the same value."""

from dataclasses import replace

import numpy as np

from .. import fixed
from ..ir.graph import Conv, Graph, Op


def constant_channels(graph: Graph) -> Graph:
    """Before: ``weight[o] == 0, bias[o] = b, multiplier[o] = m``. After: ``bias[o] = y - zero_point, multiplier[o] = 1``.

    y is the channel's value, ``requantize(b, m)``. Trained networks have such channels with biases up to
    2^30 and multipliers down to 2^-36, which no hardware constant should have to hold. The clamp stays.
    """
    return Graph(graph.name, graph.tensors, [_rewrite(graph, op) for op in graph.ops], graph.inputs, graph.outputs)


def _rewrite(graph: Graph, op: Op) -> Op:
    if not isinstance(op, Conv):
        return op
    empty = ~op.weight.any(axis=(1, 2, 3))
    if not empty.any():
        return op
    zero_point = graph.tensors[op.output].zero_point
    values = fixed.requantize(op.bias.astype(np.int64), op.multiplier, zero_point, op.lo, op.hi)
    bias = np.where(empty, values - zero_point, op.bias).astype(np.int32)
    return replace(op, bias=bias, multiplier=np.where(empty, np.float32(1), op.multiplier).astype(np.float32))
