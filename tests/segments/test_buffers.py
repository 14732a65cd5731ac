"""Buffers against their definition: as large as what lies in them, apart where they are in use together, low."""

from dataclasses import replace
from itertools import combinations
from math import prod

import pytest
from small_networks import NETWORKS, SMALL, anything

from onnxhw.external import ULX3S
from onnxhw.segments import make_plan
from onnxhw.segments.buffers import ALIGN, assign
from onnxhw.segments.plan import Plan


@pytest.fixture(scope="module", params=NETWORKS)
def planned(request: pytest.FixtureRequest) -> tuple[str, Plan]:
    return request.param, make_plan(NETWORKS[request.param](), SMALL, anything)


def test_buffers_in_use_together_are_apart(planned: tuple[str, Plan]) -> None:
    graph, made = NETWORKS[planned[0]](), planned[1]
    for a, b in combinations(made.buffers, 2):
        together = range(max(a.first, b.first), min(a.last, b.last) + 1)
        mine, others = (set(range(each.address, each.address + each.size)) for each in (a, b))
        assert not (together and mine & others), (a, b)
    sizes = {buffer.name: buffer.size for buffer in made.buffers if not buffer.weights}
    assert sizes == {name: prod(graph.tensors[name].shape) for name in sizes}
    assert all(buffer.address % ALIGN == 0 for buffer in made.buffers)
    assert made.external_bytes == max(buffer.address + buffer.size for buffer in made.buffers)


def test_places_are_used_again() -> None:
    graph = NETWORKS["inverted"]()
    made = make_plan(graph, SMALL, anything)
    assert made.external_bytes < sum(buffer.size for buffer in made.buffers)


def test_buffers_are_assigned_from_the_segments_alone() -> None:
    graph = NETWORKS["residual"]()
    made = make_plan(graph, SMALL, anything)
    assert assign(graph, made.segments, SMALL, replace(ULX3S, rows=4096)) == made.buffers
