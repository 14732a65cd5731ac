"""The tensor table of segments beside moves: a tensor is left alone until all of it is there."""

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, candidates, joined

from onnxhw.ir.graph import Graph
from onnxhw.isa.units import Unit
from onnxhw.segments import PartCycles, Plan, Segment, make_plan
from onnxhw.segments.buffers import assign
from onnxhw.segments.chaining import chained
from onnxhw.segments.group_costs import GroupCosts
from onnxhw.segments.groups import Groups
from onnxhw.segments.part_entries import part_entries, witnesses
from onnxhw.segments.placed_segment import PlacedSegment
from onnxhw.segments.placing import place_segments
from onnxhw.segments.regions import words_of


def placed(graph: Graph) -> list[PlacedSegment]:
    return place_segments(graph, make_plan(graph, SMALL, PartCycles(SMALL)), SMALL)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_comes_next_waits_until_a_tensor_is_complete(name: str) -> None:
    for each in placed(NETWORKS[name]()):
        for entry in part_entries(each.part).values():
            assert (each.use.touched[Unit.VECTOR][words_of(entry.place, SMALL)] >= entry.ready).all()


def test_the_witness_of_what_is_joined_waits_for_its_inputs() -> None:
    """A Concat of what moves bring is complete with the first vector instruction, which waits for all of it."""
    graph, found = joined(8, 10, 1, 16), 0
    costs, segments = GroupCosts(Groups(graph, SMALL)), list[Segment]()
    for first, end in ((0, 1), (1, 2), (2, 3), (3, 5)):  # the Concat and the convolution that reads it
        group = [each for each in candidates(costs, 2) if (each.first, each.end) == (first, end)]
        segments += costs.groups.segments(min(group, key=lambda each: each.cost)) or []
    linked = chained(segments, SMALL)
    assert SMALL.external
    plan = Plan(linked, assign(graph, linked, SMALL, SMALL.external))
    for each in place_segments(graph, plan, SMALL):
        written = np.unique(np.concatenate([one.writes for one in each.use.footprints[Unit.VECTOR]] or [[]]))
        for entry in part_entries(each.part).values():
            words = words_of(entry.place, SMALL)
            if not np.isin(words, written).any():
                assert entry.ready == 1
                assert np.isin(words, each.use.footprints[Unit.VECTOR][0].reads).all()
                found += 1
    assert found


def test_what_moves_alone_make_is_not_in_the_table() -> None:
    alone = [each.part for each in placed(joined(8, 6, 3, 16)) if not each.part.candidate.code[Unit.VECTOR]]
    assert alone
    for part in alone:
        assert part_entries(part) == {}
        assert witnesses(part, SMALL) == {}
