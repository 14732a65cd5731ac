"""`reach`: which int8 values a tensor of a conversion can hold."""

from ..fixed import INT8_MAX, INT8_MIN
from ..ir.graph import Add, AveragePool, Concat, Conv, Copy, MatMul, MaxPool, Mul, Reshape, Table, Tensor
from .context import Context

Interval = tuple[int, int]
DEEPEST = 64
"""Operations that only move values through which is looked."""


def reach(context: Context, tensor: Tensor, inputs: bool = True) -> Interval:
    """Smallest and largest value, both included: what clamps leave; with `inputs` also those of the model's inputs."""
    return _reach(context, tensor.name, inputs, DEEPEST)


def _reach(context: Context, name: str, inputs: bool, depth: int) -> Interval:
    op = context.makers.get(name)
    if op is None:
        return context.ranges.get(name, (INT8_MIN, INT8_MAX)) if inputs else (INT8_MIN, INT8_MAX)
    if isinstance(op, (Conv, Add, Mul, MatMul, AveragePool)):
        return op.lo, op.hi
    if depth == 0 or not isinstance(op, (Table, MaxPool, Reshape, Concat, Copy)):
        return INT8_MIN, INT8_MAX
    found = [_reach(context, source, inputs, depth - 1) for source in dict.fromkeys(op.inputs)]
    low, high = min(low for low, _ in found), max(high for _, high in found)
    if isinstance(op, Table):
        reached = op.table[low + 128 : high + 129]
        return int(reached.min()), int(reached.max())
    if isinstance(op, Copy):
        return min(low, op.fill), max(high, op.fill)
    return low, high
