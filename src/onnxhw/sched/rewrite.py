"""Rewrites that make a graph mappable: `same_operand`.

    Add(x, x)  ->  Table(x),  table[q] = add(q - z, q - z)
    Mul(x, x)  ->  Table(x),  table[q] = multiply(q - z, q - z)

An activation bank has one read port, so the vector unit cannot read one word as both operands.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..ir.graph import Graph, Op, Table


def same_operand(graph: Graph) -> Graph:
    """The graph with every elementwise operation of a tensor with itself replaced by a Table."""
    reshapes = {op.output: op for op in graph.ops if op.joins}
    return dataclasses.replace(graph, ops=[_rewrite(op, graph, reshapes) for op in graph.ops])


def _rewrite(op: Op, graph: Graph, reshapes: Mapping[str, Op]) -> Op:
    sources = {_source(name, graph, reshapes) for name in op.inputs}
    if op.table.size or not op.elementwise or len(sources) > 1:
        return op
    values = np.arange(-128, 128).astype(np.int8).reshape(1, 1, 1, 256)
    table = op.evaluate([values] * len(op.inputs), graph.operands(op), graph.tensors[op.output])
    return Table(op.name, op.inputs[:1], op.output, op.nodes, table=table.ravel().astype(np.int8))


def _source(name: str, graph: Graph, reshapes: Mapping[str, Op]) -> str:
    """The tensor behind reshapes that keep the shape."""
    while name in reshapes:
        x, y = graph.tensors[reshapes[name].inputs[0]], graph.tensors[name]
        if x.shape != y.shape:
            break
        name = x.name
    return name
