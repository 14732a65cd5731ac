"""`State`: a tensor that stays from one run to the next."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .graph import Graph
from .operation import Array8


@dataclass(frozen=True, eq=False)
class State:
    """What a run makes as tensor `made` the next one finds as tensor `read`; the first one finds `initial`, int8
    ``(1, C, H, W)``. `output` and `input` are the model's names of both, which the host neither receives nor sends."""

    output: str
    input: str
    made: str
    read: str
    initial: Array8


def interface(graph: Graph, states: Iterable[State]) -> Graph:
    """The graph with those ports alone that the host sends and receives."""
    pairs = [(state.output, state.input) for state in states]
    made, read = {output for output, _ in pairs}, {name for _, name in pairs}
    inputs = [port for port in graph.inputs if port.name not in read]
    return replace(graph, inputs=inputs, outputs=[port for port in graph.outputs if port.name not in made])
