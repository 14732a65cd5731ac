"""`sort_nodes`: nodes in topological order, where a file has them in another.

The specification demands the order. Exporters break it (onnxruntime's float16 converter appends the Casts of inputs),
and every order that is topological means the same.
"""

import heapq
from collections.abc import Iterator
from contextlib import suppress
from graphlib import CycleError
from typing import TYPE_CHECKING

import onnx

from ..diagnostics import Diagnostic
from .specification.findings import Findings, label
from .specification.functions import identity, spelled
from .specification.order import sorter
from .subgraph_copy import nested, own_names

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

HINT = "the nodes were sorted at reading: nothing is to be done"


def sort_nodes(model: onnx.ModelProto) -> list[Diagnostic]:
    """Put the nodes of the graph, of the graphs in it and of functions into topological order, in place.

    Nodes keep their order wherever that is possible; W3380 for each list that had another. Lists that no order sorts,
    and those that give a name twice, stay as they are, and `specification.diagnose` says what is wrong with them.
    Linear in the size of the model, but for lists that are to be sorted: n log n.
    """
    findings = Findings()
    _graph(model.graph, findings)
    for function in model.functions:
        _sorted(function.node, f"function {spelled(identity(function))!r}", findings)
    return findings.found


def _graph(graph: onnx.GraphProto, findings: Findings) -> set[str]:
    """Sort a graph and the graphs in it; the names that it takes from around."""
    taken = _sorted(graph.node, f"graph {graph.name!r}", findings)
    own = own_names(graph) | {name for node in graph.node for name in node.output}
    return (taken | {value.name for value in graph.output}) - own


def _sorted(nodes: "RepeatedCompositeFieldContainer[onnx.NodeProto]", where: str, findings: Findings) -> set[str]:
    """Sort a list of nodes; all names that they, and the graphs in them, read."""
    uses = [_uses(node, findings) for node in nodes]
    makes = [[name for name in node.output if name] for node in nodes]
    left = {name for names in makes for name in names}
    early = None
    if len(left) == sum(map(len, makes)):  # a name that is there twice has no one maker
        for index, names in enumerate(makes):
            if early is None and not uses[index].isdisjoint(left):
                early = index
            left.difference_update(names)
    order = [] if early is None else list(_order(makes, uses))
    if early is not None and len(order) == len(nodes):
        what = f"{label(nodes[early])} comes before the node that makes what it reads"
        findings.warning("W3380", where, what, HINT)
        ranks = iter(sorted(range(len(order)), key=order.__getitem__))
        nodes.sort(key=lambda _: next(ranks))  # keys are asked for in the order of the list; no node is copied
    return set().union(*uses)


def _uses(node: onnx.NodeProto, findings: Findings) -> set[str]:
    """The names that a node and the graphs in it read, "" not among them."""
    found = {name for name in node.input if name}
    for graph in nested(node) if node.attribute else ():
        found |= _graph(graph, findings)
    return found


def _order(makes: list[list[str]], uses: list[set[str]]) -> Iterator[int]:
    """The indices of nodes, each after those that make what it uses, the first in the list first; what is in or behind
    a cycle is missing."""
    waiting = sorter(makes, uses)
    with suppress(CycleError):
        waiting.prepare()
    ready = sorted(waiting.get_ready())
    while ready:
        index = heapq.heappop(ready)
        yield index
        waiting.done(index)
        for other in waiting.get_ready():
            heapq.heappush(ready, other)
