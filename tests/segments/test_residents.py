"""Constants that stay on chip: which, and that the program never writes over them."""

from dataclasses import replace

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, chain

from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space, host_stride
from onnxhw.isa.units import Unit
from onnxhw.segments import PartCycles, link, make_plan
from onnxhw.segments.placing import place_segments
from onnxhw.segments.residents import choices, constants_of, images

SPACES = (Space.WEIGHT, Space.PARAM, Space.TABLE)
WIDE = replace(SMALL, name="wide", weight_depth=1024)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_stays_leaves_room_for_what_every_segment_needs_besides(name: str) -> None:
    graph = NETWORKS[name]()
    placed = place_segments(graph, make_plan(graph, SMALL, PartCycles(SMALL)), SMALL)
    found = list(choices(placed, SMALL))
    assert len({each[Space.WEIGHT].words for each in found}) == len(found)
    for resident in found:
        for one in placed:
            if one.part.streams:
                assert not resident[Space.WEIGHT].words
                continue
            mine = {each.key: each.words for each in constants_of(one.part, SMALL)[Space.WEIGHT]}
            missing = sum(words for key, words in mine.items() if key not in resident[Space.WEIGHT].at)
            assert resident[Space.WEIGHT].words + missing <= SMALL.weight_depth


def test_everything_that_fits_stays() -> None:
    graph = chain()
    program = link(graph, make_plan(graph, WIDE, PartCycles(WIDE)), WIDE)
    assert not [i for i in program.code[Unit.MOVE] if isinstance(i, Move) and i.space in SPACES]
    assert len(program.weights)
    assert len(program.params)


def test_images_hold_the_constants_where_they_are_told_to_lie() -> None:
    graph = NETWORKS["inverted"]()
    placed = place_segments(graph, make_plan(graph, WIDE, PartCycles(WIDE)), WIDE)
    resident = list(choices(placed, WIDE))[-1]
    weights, params, _ = images(resident, WIDE)
    known = 0
    for one in placed:
        lowered, at = one.part.lowered.images, resident[Space.WEIGHT].at
        for piece, each in zip(lowered.weight_pieces, constants_of(one.part, WIDE)[Space.WEIGHT], strict=True):
            if each.key in at:
                assert np.array_equal(weights[at[each.key] : at[each.key] + len(piece)], piece)
                known += 1
        for each in constants_of(one.part, WIDE)[Space.PARAM]:
            if each.key in resident[Space.PARAM].at:
                first = resident[Space.PARAM].at[each.key]
                assert np.array_equal(params[first : first + each.words], lowered.param_image)
    assert known


@pytest.mark.parametrize("name", NETWORKS)
def test_no_move_writes_over_what_stays(name: str) -> None:
    graph = NETWORKS[name]()
    program = link(graph, make_plan(graph, WIDE, PartCycles(WIDE)), WIDE)
    held = {Space.WEIGHT: len(program.weights) * host_stride(WIDE.weight_word), Space.TABLE: 256 * len(program.tables)}
    held[Space.PARAM] = len(program.params) * host_stride(8 * WIDE.lanes)
    assert held[Space.PARAM]
    for i in program.code[Unit.MOVE]:
        assert isinstance(i, Move)
        assert i.chip >= held.get(Space(i.space), 0)
