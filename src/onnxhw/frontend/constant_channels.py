"""`constant_channels`: convolution channels that can take only one value get the plainest constants that make it."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .. import fixed
from ..ir.graph import Conv, Graph, Op, Tensor

Ints = npt.NDArray[np.int64]


def constant_channels(graph: Graph) -> Graph:
    """Before: ``weight[o], bias[o], multiplier[o]`` whose lowest and highest sums have one result, y.

    After: ``weight[o] = 0, bias[o] = y - zero_point, multiplier[o] = 1``. Requantization is monotone, so every sum in
    between has that result too. Trained networks have such channels: without weights, with biases up to 2^30
    and multipliers down to 2^-36, which no hardware constant should have to hold. The clamp stays.
    """
    return Graph(graph.name, graph.tensors, [_rewrite(graph, op) for op in graph.ops], graph.inputs, graph.outputs)


def sum_range(op: Conv, x: Tensor) -> tuple[Ints, Ints]:
    """The lowest and the highest sum of each channel, bias included, over all int8 inputs."""
    weight = op.weight.astype(np.int64).reshape(len(op.weight), -1)
    positive, negative = np.maximum(weight, 0).sum(1), np.minimum(weight, 0).sum(1)
    low, high = -128 - x.zero_point, 127 - x.zero_point  # a position in the padding adds 0, which lies between
    return op.bias + positive * low + negative * high, op.bias + positive * high + negative * low


def _rewrite(graph: Graph, op: Op) -> Op:
    if not isinstance(op, Conv):
        return op
    y = graph.tensors[op.output]
    least, most = (
        fixed.requantize(sums, op.multiplier, y.zero_point, op.lo, op.hi)
        for sums in sum_range(op, graph.tensors[op.inputs[0]])
    )
    constant = least == most
    if not constant.any():
        return op
    return replace(
        op,
        weight=np.where(constant[:, None, None, None], np.int8(0), op.weight),
        bias=np.where(constant, least - y.zero_point, op.bias).astype(np.int32),
        multiplier=np.where(constant, np.float32(1), op.multiplier).astype(np.float32),
    )
