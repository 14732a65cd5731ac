"""Which int8 values each tensor can hold: what the producers' clamps leave."""

import numpy as np

from ..fixed import INT8_MAX, INT8_MIN
from ..ir.graph import Add, AveragePool, Concat, Conv, Copy, Graph, MatMul, MaxPool, Mul, Op, Reshape, Table

Interval = tuple[int, int]


def value_ranges(graph: Graph) -> dict[str, Interval]:
    """Smallest and largest value of every tensor, by name, both included."""
    ranges: dict[str, Interval] = {port.tensor: (INT8_MIN, INT8_MAX) for port in graph.inputs}
    for op in graph.ops:
        ranges[op.output] = _range(op, [ranges[name] for name in op.inputs])
    return ranges


def _range(op: Op, inputs: list[Interval]) -> Interval:
    if isinstance(op, (Conv, Add, Mul, MatMul, AveragePool)):
        return op.lo, op.hi
    if isinstance(op, Table):
        low, high = inputs[0]
        reached = op.table[low + 128 : high + 129].astype(np.int64)
        return int(reached.min()), int(reached.max())
    if isinstance(op, (MaxPool, Reshape, Concat)):
        return min(low for low, _ in inputs), max(high for _, high in inputs)
    if isinstance(op, Copy):
        ends = [*inputs, (op.fill, op.fill)]
        return min(low for low, _ in ends), max(high for _, high in ends)
    return INT8_MIN, INT8_MAX
