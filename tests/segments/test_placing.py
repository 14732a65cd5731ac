"""Segments placed so that moves can go on beside them."""

from dataclasses import replace
from itertools import pairwise

import pytest
from small_networks import NETWORKS, SMALL

from onnxhw.errors import InternalError
from onnxhw.segments import PartCycles, make_plan
from onnxhw.segments.placing import place_segments
from onnxhw.segments.regions import words_of


def test_inputs_are_loaded_or_where_the_segment_before_left_them() -> None:
    for make in NETWORKS.values():
        graph = make()
        plan = make_plan(graph, SMALL, PartCycles(SMALL))
        placed = place_segments(graph, plan, SMALL)
        assert [each.segment for each in placed] == list(plan.segments)
        for before, one in zip([None, *placed], placed, strict=False):
            loaded = {region for region, _ in one.loads}
            names = dict(zip(one.segment.inputs, (port.tensor for port in one.segment.graph.inputs), strict=True))
            for region, name in names.items():
                if region in loaded:
                    continue
                assert before is not None
                parts = [place for each in placed if each.segment.gathered == region for place in each.results.values()]
                if parts and before.segment.gathered == region:
                    assert one.part.places[name].base == min(place.base for place in parts)
                    continue
                ports = zip(before.segment.inputs, before.segment.graph.inputs, strict=True)
                kept = {mine: before.part.places[port.tensor] for mine, port in ports}
                there = before.results.get(region) or kept[region]
                assert one.part.places[name] == there
                if region not in before.results:  # an input of the segment before that nothing was written over
                    assert not before.use.written[words_of(there, SMALL)].any()


def test_every_result_that_is_loaded_later_is_stored_before() -> None:
    for make in NETWORKS.values():
        graph = make()
        plan = make_plan(graph, SMALL, PartCycles(SMALL))
        placed = place_segments(graph, plan, SMALL)
        stored = {region for one in placed for region, _ in one.stored} | set(placed[-1].results)
        made = {region for one in placed for region in one.results}
        for one in placed:
            for region, _ in one.loads:
                for result in made:
                    if result.tensor == region.tensor and result.box.meets(region.box):
                        assert result in stored


def test_loads_find_words_that_the_segment_before_leaves_alone_where_there_is_room() -> None:
    graph, roomy = NETWORKS["residual"](), replace(SMALL, act_depth=512)
    placed = place_segments(graph, make_plan(graph, SMALL, PartCycles(SMALL)), roomy)
    assert any(one.loads for one in placed[1:])
    for before, one in pairwise(placed):
        for _, name in one.loads:
            words = words_of(one.part.places[name], roomy)
            assert not any(mine[words].any() for mine in before.use.touched.values())


def test_every_schedule_is_proved_to_read_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise InternalError("E1213", "reads 'a' for 'b'")

    graph = NETWORKS["residual"]()
    plan = make_plan(graph, SMALL, PartCycles(SMALL))
    monkeypatch.setattr("onnxhw.segments.placing.check_reaching_definitions", wrong)
    with pytest.raises(InternalError, match="E1213"):
        place_segments(graph, plan, SMALL)
