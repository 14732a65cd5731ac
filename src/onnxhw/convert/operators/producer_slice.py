"""`producer_slice`: some output channels of the operation that makes a tensor, as an operation of its own.

    x -> Conv of 512 -> table -> y          y[256:] = x -> Conv of the last 256 -> table

If nothing else reads the whole tensor, which a Split of it in parts makes so, this computes nothing twice, and nothing
has to choose channels.
"""

from dataclasses import replace

import numpy as np

from ...ir.channels import VARIES
from ...ir.graph import Tensor
from ..context import Context
from ..values import Ints

DEEPEST = 4
"""Functions of single elements behind the convolution through which is looked."""


def is_sliceable(context: Context, tensor: Tensor, depth: int = DEEPEST) -> bool:
    """Does an operation make the tensor that can make any of its channels alone?"""
    op = context.makers.get(tensor.name)
    if op is None or (depth == 0 and not op.any_order):
        return False
    if op.any_order:
        return len(op.inputs) == 1
    (source, *others) = [context.graph.tensors[name] for name in op.inputs]
    alike = op.elementwise and not others and source.shape == tensor.shape
    return alike and is_sliceable(context, source, depth - 1)


def producer_slice(context: Context, tensor: Tensor, wanted: Ints, output: str, name: str) -> Tensor | None:
    """The channels `wanted` of a tensor that `is_sliceable`; None if one is a constant, or a bias leaves int32."""
    if wanted.min() < 0:
        return None
    op = context.makers[tensor.name]
    (source,) = [context.graph.tensors[operand] for operand in op.inputs]
    order = np.arange(source.channels)
    if not op.any_order:
        part = producer_slice(context, source, wanted, f"{output}.before", name)
        if part is None:
            return None
        chosen = op.reading((part.name,), output)
    else:
        made = op.select([np.full(source.channels, VARIES)], [source], [order], wanted)
        if made is None:
            return None
        chosen = made.reading((source.name,), output)
    shape = (1, len(wanted), tensor.height, tensor.width)
    return context.put(replace(chosen, name=name, nodes=(*op.nodes, name)), shape, tensor.scale, tensor.zero_point)
