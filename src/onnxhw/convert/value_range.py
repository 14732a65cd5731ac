"""`value_range`: which int8 values a tensor of a conversion can hold."""

from ..fixed import INT8_MAX, INT8_MIN
from ..ir.graph import Tensor
from ..ir.operation import Interval
from .context import Context

DEEPEST = 64
"""Operations that only move values through which is looked."""


def value_range(context: Context, tensor: Tensor, inputs: bool = True) -> Interval:
    """Smallest and largest value, both included: what clamps leave; with `inputs` also those of the model's inputs."""
    return _value_range(context, tensor.name, inputs, DEEPEST)


def _value_range(context: Context, name: str, inputs: bool, depth: int) -> Interval:
    op = context.makers.get(name)
    if op is None:
        return context.ranges.get(name, (INT8_MIN, INT8_MAX)) if inputs else (INT8_MIN, INT8_MAX)
    if op.clamps:
        return op.range(())
    if depth == 0:
        return INT8_MIN, INT8_MAX
    found = {source: _value_range(context, source, inputs, depth - 1) for source in dict.fromkeys(op.inputs)}
    return op.range([found[source] for source in op.inputs])
