"""`constant_channels_last`: an order of the channels in which those that an operation need not compute lie together.

A convolution whose channels 3, 17 and 40 are constant, but seen at a border, computes them with all their neighbours in
the array's columns. At the end of the tensor they fill columns of their own, which stream no weights.
"""

import numpy as np

from ..fixed import Ints
from ..ir.channels import VARIES, Mask, Order
from ..ir.graph import Graph, Op


def constant_channels_last(graph: Graph, known: dict[str, Ints], drop: dict[str, Mask]) -> dict[str, Order]:
    """Per tensor its channels without those in `drop`: the model's order, but for constant ones of a convolution.

    Tensors whose channels an operation takes one by one have one order. Inputs keep the model's, and what is
    concatenated, reshaped into other channels or convolved in groups.
    """
    parent = {name: name for name in drop}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    for op in graph.ops:
        if _one_by_one(op, graph):
            for name in op.inputs:
                parent[root(name)] = root(op.output)
    pinned = {root(port.tensor) for port in graph.inputs}
    late = {name: np.zeros(len(mask), bool) for name, mask in drop.items()}
    for op in graph.ops:
        if op.any_order:
            late[root(op.output)] |= known[op.output] != VARIES
        elif not _one_by_one(op, graph):
            pinned |= {root(name) for name in (*op.inputs, op.output)}
    orders = {}
    for name, mask in drop.items():
        kept = np.flatnonzero(~mask)
        orders[name] = kept if root(name) in pinned else kept[np.argsort(late[root(name)][kept], kind="stable")]
    return orders


def _one_by_one(op: Op, graph: Graph) -> bool:
    """Whether channel c of the result is made of channel c of each operand."""
    keeps = op.joins and graph.tensors[op.inputs[0]].channels == graph.tensors[op.output].channels
    return keeps or op.channelwise
