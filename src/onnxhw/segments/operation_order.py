"""`depth_first`: operations in an order in which more of them are runs with one result."""

from ..ir.graph import Graph, Op


def depth_first(graph: Graph) -> list[Op]:
    """The operations, each as soon as may be behind the last one that it reads of; exporters and quantizers write all
    branches side by side, of which no run is a group with one result."""
    made = {op.output: op for op in graph.ops}
    readers: dict[str, list[int]] = {}
    missing: list[int] = []
    for n, op in enumerate(graph.ops):
        mine = {name for name in op.inputs if name in made}
        missing.append(len(mine))
        for name in mine:
            readers.setdefault(name, []).append(n)
    ready = [n for n in reversed(range(len(graph.ops))) if not missing[n]]
    found: list[Op] = []
    while ready:
        op = graph.ops[ready.pop()]
        found.append(op)
        for n in reversed(readers.get(op.output, ())):
            missing[n] -= 1
            if not missing[n]:
                ready.append(n)
    return found
