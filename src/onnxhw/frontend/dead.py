"""`remove_dead`: operations that no output needs."""

from ..ir.graph import Graph, Op


def remove_dead(graph: Graph) -> Graph:
    """Before: ``a -> op1 -> x -> op2 -> output;  a -> op3 -> y``. After: without op3 and y.

    Needs a verified graph. Inputs stay, used or not.
    """
    needed = {port.tensor for port in graph.outputs}
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if op.output in needed:
            needed.update(op.inputs)
            kept.append(op)
    needed.update(port.tensor for port in graph.inputs)
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in needed}
    return Graph(graph.name, tensors, kept[::-1], graph.inputs, graph.outputs)
