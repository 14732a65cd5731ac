"""`eliminate_dead_nodes`: operations that no output needs."""

from ..ir.graph import Graph, Op


def eliminate_dead_nodes(graph: Graph) -> Graph:
    """Before: ``a -> op1 -> x -> op2 -> output;  a -> op3 -> y``. After: without op3 and y.

    Needs a verified graph. Inputs of the model stay, used or not; a tensor made of one goes if nothing reads it and
    another is made of the same.
    """
    needed = {port.tensor for port in graph.outputs}
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if op.output in needed:
            needed.update(op.inputs)
            kept.append(op)
    fed = {port.name for port in graph.inputs if port.tensor in needed}
    inputs = []
    for port in graph.inputs:
        if port.tensor in needed or port.name not in fed:
            inputs.append(port)
            fed.add(port.name)
    needed.update(port.tensor for port in inputs)
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in needed}
    return Graph(graph.name, tensors, kept[::-1], inputs, graph.outputs)
