"""`StatefulRuns`: runs of a graph one after the other, with states that go from one to the next."""

from collections.abc import Mapping, Sequence

from ..ir.graph import Array8, Graph
from ..ir.states import State
from .model import run


class StatefulRuns:
    """What `State` means, step by step: each run is given what the one before has made. `values` has it, by the name of
    the tensor that is read. Without states a run is `onnxhw.golden.run`."""

    def __init__(self, graph: Graph, states: Sequence[State] = ()) -> None:
        self.graph, self.states = graph, tuple(states)
        self.clear()

    def clear(self) -> None:
        """Begin again with the initial values."""
        self.values: dict[str, Array8] = {state.read: state.initial for state in self.states}

    def run(self, tensors: Mapping[str, Array8]) -> dict[str, Array8]:
        """All tensors of one run, from those inputs that are no state, of one sample."""
        found = run(self.graph, {**tensors, **self.values})
        self.values = {state.read: found[state.made] for state in self.states}
        return found
