"""`merge_copies`: padding and slicing before a window become the window's own padding.

    Copy(x), framed with the zero point -> Conv          Conv with larger pads
    Copy(x), a box of x's pixels        -> Conv, pool    the window with negative pads

A side that is cut is merged only where the window adds no padding of its own there: it would see what was cut.
"""

from dataclasses import replace

from ..ir.graph import Graph, Op


def merge_copies(graph: Graph) -> Graph:
    """The graph with every window reading past the copies it can do without; dead copies stay."""
    makers: dict[str, Op] = {}
    ops: list[Op] = []
    for op in graph.ops:
        op = _merged(op, graph, makers)
        makers[op.output] = op
        ops.append(op)
    return Graph(graph.name, graph.tensors, ops, graph.inputs, graph.outputs)


def _merged(op: Op, graph: Graph, makers: dict[str, Op]) -> Op:
    copy = makers.get(op.inputs[0])
    pads = copy.padding(graph.operands(copy), graph.tensors[copy.output]) if copy else None
    wider = op.padded(pads) if pads else None
    if copy is None or wider is None:
        return op
    nodes = tuple(dict.fromkeys([*copy.nodes, *op.nodes]))
    return _merged(replace(wider, inputs=copy.inputs, nodes=nodes), graph, makers)
