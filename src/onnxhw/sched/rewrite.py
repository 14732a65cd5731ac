"""Rewrites that make a graph mappable: `same_operand`.

    Add(x, x)  ->  Table(x),  table[q] = add(q - z, q - z)
    Mul(x, x)  ->  Table(x),  table[q] = multiply(q - z, q - z)

An activation bank has one read port, so the vector unit cannot read one word as both operands.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from .. import fixed
from ..ir.graph import Add, Graph, Mul, Op, Reshape, Table


def same_operand(graph: Graph) -> Graph:
    """The graph with every Add and Mul of a tensor with itself replaced by a Table."""
    reshapes = {op.output: op for op in graph.ops if isinstance(op, Reshape)}
    return dataclasses.replace(graph, ops=[_rewrite(op, graph, reshapes) for op in graph.ops])


def _rewrite(op: Op, graph: Graph, reshapes: Mapping[str, Reshape]) -> Op:
    if not isinstance(op, (Add, Mul)):
        return op
    if _source(op.inputs[0], graph, reshapes) != _source(op.inputs[1], graph, reshapes):
        return op
    values = np.arange(-128, 128, dtype=np.int64)
    a, b = (values - graph.tensors[name].zero_point for name in op.inputs)
    zero = graph.tensors[op.output].zero_point
    if isinstance(op, Add):
        table = fixed.add(a, b, op.ratio_a, op.ratio_b, zero, op.lo, op.hi)
    else:
        table = fixed.multiply(a, b, op.ratio, zero, op.lo, op.hi)
    return Table(op.name, op.inputs[:1], op.output, op.nodes, table=table.astype(np.int8))


def _source(name: str, graph: Graph, reshapes: Mapping[str, Reshape]) -> str:
    """The tensor behind reshapes that keep the shape."""
    while name in reshapes:
        x, y = graph.tensors[reshapes[name].inputs[0]], graph.tensors[name]
        if x.shape != y.shape:
            break
        name = x.name
    return name
