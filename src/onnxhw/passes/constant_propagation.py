"""`constant_channels`: which channels of a graph hold one value everywhere, whatever the input."""

import numpy as np

from ..fixed import Ints
from ..ir.channels import VARIES
from ..ir.graph import Graph


def constant_channels(graph: Graph) -> dict[str, Ints]:
    """Per tensor ``[C]``: the value that every element of the channel has, or `VARIES`."""
    known = {port.tensor: np.full(graph.tensors[port.tensor].channels, VARIES, np.int64) for port in graph.inputs}
    for op in graph.ops:
        of_operands = [known[name] for name in op.inputs]
        known[op.output] = op.constant_channels(of_operands, graph.operands(op), graph.tensors[op.output])
    return known


def has_constants(graph: Graph) -> bool:
    """Whether any operation makes a constant channel of ones that vary: quick, and False for most models."""
    return not all(op.weight.any(axis=(1, 2, 3)).all() for op in graph.ops)
