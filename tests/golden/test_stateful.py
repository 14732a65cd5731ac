"""Runs with states are runs of the graph alone, each given what the one before has made."""

import numpy as np
import pytest
from streaming_networks import STREAMING

from onnxhw import golden


@pytest.mark.parametrize("name", STREAMING)
def test_what_a_run_makes_the_next_one_finds(name: str) -> None:
    graph, states = STREAMING[name]()
    runs, rng = golden.StatefulRuns(graph, states), np.random.default_rng(0)
    kept = {state.read for state in states}
    for _ in range(2):
        runs.clear()
        values = {state.read: state.initial for state in states}
        for _ in range(3):
            given = {
                port.tensor: rng.integers(-128, 128, port.shape).astype(np.int8)
                for port in graph.inputs if port.tensor not in kept
            }  # fmt: skip
            wanted, made = golden.run(graph, {**given, **values}), runs.run(given)
            assert all(np.array_equal(made[tensor], wanted[tensor]) for tensor in wanted)
            values = {state.read: wanted[state.made] for state in states}
            assert all(np.array_equal(runs.values[tensor], values[tensor]) for tensor in values)


def test_without_states_it_is_a_run_of_the_graph() -> None:
    graph, _ = STREAMING["cell"]()
    given = {port.tensor: np.full(graph.tensors[port.tensor].shape, 5, np.int8) for port in graph.inputs}
    made, wanted = golden.StatefulRuns(graph).run(given), golden.run(graph, given)
    assert all(np.array_equal(made[tensor], wanted[tensor]) for tensor in wanted)
