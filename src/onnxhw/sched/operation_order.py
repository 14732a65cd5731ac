"""Another order of the operations: short branches first.

Where an operation joins branches, whatever feeds the last operand delays it. Computing the branch of
fewer operations first leaves the long one to run beside the join::

    a = conv1(x); b = conv2(a); s = conv3(x); y = b + s
    ->  s = conv3(x); a = conv1(x); b = conv2(a); y = b + s
"""

import dataclasses

from ..ir.graph import Graph, Op
from .aliases import producers


def short_branches_first(graph: Graph) -> Graph:
    """The same graph in an order that takes shorter operands first; operations without use keep the end."""
    makers = producers(graph)
    depth: dict[str, int] = {}
    for op in graph.ops:
        depth[op.output] = 1 + max((depth.get(name, 0) for name in op.inputs), default=0)
    ordered: list[Op] = []
    done: set[str] = set()
    # A stack: the outputs come off first, in their order, then whatever no output needs.
    pending = [op.output for op in reversed(graph.ops)] + [port.tensor for port in reversed(graph.outputs)]
    while pending:
        name = pending[-1]
        if name in done or name not in makers:
            pending.pop()
            continue
        op = makers[name]
        missing = [operand for operand in op.inputs if operand in makers and operand not in done]
        if missing:
            pending += sorted(dict.fromkeys(missing), key=lambda operand: -depth[operand])
            continue
        pending.pop()
        done.add(name)
        ordered.append(op)
    return dataclasses.replace(graph, ops=ordered)
