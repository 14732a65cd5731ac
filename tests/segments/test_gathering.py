"""Results of several segments that stay on chip as a whole tensor."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from heuristics import Net
from small_networks import SMALL, inputs, inverted

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.errors import DoesNotFitError, InternalError
from onnxhw.ir.graph import Graph
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.units import Unit
from onnxhw.program.model import DeviceProgram
from onnxhw.sched import Occupied, check
from onnxhw.segments import PartCycles, Plan, Region, Segment, check_plan, differences, link, make_plan
from onnxhw.segments.buffers import assign
from onnxhw.segments.chaining import chained
from onnxhw.segments.gathering import gathered_inputs, gathered_words, not_gathered, on_chip
from onnxhw.segments.groups import UNCUT, Candidate, Cuts, Groups
from onnxhw.segments.part_schedule import PartSchedules, ScheduledPart
from onnxhw.segments.placing import place_segments

ROOMY = replace(SMALL, act_depth=128)
"""512 words of activations; a tensor of `pair` has 128."""


def pair() -> Graph:
    """Two convolutions of 3 x 3: the second reads all rows and channels of the first one's result."""
    net = Net(8, 8)
    return net.graph("pair", net.conv(net.conv("x", 8), 8))


def segments_of(graph: Graph, cuts: Cuts, second: Cuts = UNCUT, config: HwConfig = ROOMY) -> tuple[Segment, ...]:
    """The first convolution in parts that are gathered, and the second one."""
    groups = Groups(graph, config)
    candidates = Candidate(0, 1, cuts, gathered=True), Candidate(1, 2, second)
    made = [segment for each in candidates for segment in groups.segments(each) or []]
    assert len(made) == cuts[0] * cuts[1] + second[0] * second[1]
    return chained(made, config)


def plan_of(graph: Graph, segments: tuple[Segment, ...], config: HwConfig = ROOMY) -> Plan:
    assert config.external
    return Plan(segments, assign(graph, segments, config, config.external))


def stored_bytes(program: DeviceProgram) -> int:
    moves = (i for i in program.code[Unit.MOVE] if isinstance(i, Move) and i.store)
    return sum(4 * i.runs * i.word_n for i in moves)


@pytest.mark.parametrize("cuts", [(1, 2, 1), (2, 1, 1), (2, 2, 1), (1, 3, 1)], ids=str)
@pytest.mark.parametrize("second", [UNCUT, (2, 1, 1)], ids=str)
def test_a_tensor_in_parts_is_neither_stored_nor_loaded(cuts: Cuts, second: Cuts) -> None:
    graph = pair()
    plan = plan_of(graph, segments_of(graph, cuts, second))
    check_plan(graph, plan, ROOMY)
    whole = Region.whole(graph, graph.ops[0].output)
    assert not any(region.tensor == whole.tensor for segment in plan.segments for region in segment.loads)
    assert differences(graph, plan, inputs(graph)) == []
    program = link(graph, plan, ROOMY)
    check(program)
    assert stored_bytes(program) == 8 * 8 * 8  # the output alone
    values = inputs(graph, 3)
    made, wanted = Emulator(program).run(values, trace=True), golden.run(graph, values)
    assert all((made.outputs[name] == wanted[name]).all() for name in made.outputs)
    parts = [(entry.part, made.tensors[name]) for name, entry in program.tensors.items() if entry.part]
    assert len(parts) == len(plan.segments)
    assert all((found == wanted[part.tensor][part.box.slices]).all() for part, found in parts if part)


def test_parts_lie_where_they_belong() -> None:
    graph = pair()
    placed = place_segments(graph, plan_of(graph, segments_of(graph, (2, 2, 1))), ROOMY)
    places = [place for each in placed[:4] for place in each.results.values()]
    base = min(place.base for place in places)
    assert [(place.base - base, place.plane) for place in places] == [(0, 64), (32, 64), (64, 64), (96, 64)]
    (name,) = (port.tensor for port in placed[4].segment.graph.inputs)
    assert placed[4].part.places[name].base == base
    assert not placed[4].loads
    assert not any(each.stored for each in placed)
    for one in placed[1:4]:  # the parts before stay as they are
        words = {word for place in places[:-1] for word in place.addresses(ROOMY.word).ravel().tolist()}
        mine = {word for place in one.results.values() for word in place.addresses(ROOMY.word).ravel().tolist()}
        assert not one.use.written[sorted(words - mine)].any()


def test_what_nobody_finds_is_not_gathered() -> None:
    graph = pair()
    made = segments_of(graph, (1, 2, 1), (1, 2, 1))  # of stripes, which read some of its rows
    assert {segment.gathered for segment in made} == {None}
    whole = Region.whole(graph, graph.ops[0].output)
    gathered = segments_of(graph, (1, 2, 1))
    assert [segment.gathered for segment in gathered] == [whole, whole, None]
    assert whole in on_chip(gathered[:2])
    assert whole not in on_chip(gathered[:1])
    assert gathered_inputs(gathered, 2) == {whole}
    assert gathered_words(gathered[0], ROOMY) == 64
    stored = not_gathered(gathered, whole)
    assert stored[2].loads == (whole,)
    assert [gathered_words(segment, ROOMY) for segment in stored] == [0, 0, 0]


class NoneGathered(PartSchedules):
    """Finds no place for a part of a larger tensor."""

    def __call__(self, graph: Graph, occupied: Occupied, packed: Mapping[str, int]) -> ScheduledPart:
        if occupied.planes:
            raise DoesNotFitError("E5101", "no place")
        return super().__call__(graph, occupied, packed)


def test_what_has_no_place_on_chip_is_stored_and_loaded() -> None:
    graph = pair()
    plan, whole = plan_of(graph, segments_of(graph, (1, 2, 1))), Region.whole(graph, graph.ops[0].output)
    placed = place_segments(graph, plan, ROOMY, NoneGathered(ROOMY))
    assert [region for region, _ in placed[-1].loads] == [whole]
    assert sum(len(each.stored) for each in placed) == 2
    program = link(graph, plan, ROOMY, NoneGathered(ROOMY))
    check(program)
    values = inputs(graph, 2)
    made, wanted = Emulator(program).run(values), golden.run(graph, values)
    assert all((found == wanted[name]).all() for name, found in made.outputs.items())


def changed(segments: tuple[Segment, ...], n: int, **fields: object) -> tuple[Segment, ...]:
    return (*segments[:n], replace(segments[n], **fields), *segments[n + 1 :])  # type: ignore[arg-type]


def test_broken_plans_are_refused() -> None:
    graph = pair()
    segments = segments_of(graph, (1, 2, 1))
    whole, part = Region.whole(graph, graph.ops[0].output), segments[0].outputs[0]
    broken = {
        "is not on chip": changed(segments, 0, gathered=None),
        "is not of whole rows": changed(segments, 0, gathered=Region.whole(graph, "x")),
        "is not whole": changed(segments, 0, gathered=part),
        "is read before it is written": (segments[0], replace(segments[2], loads=(whole,)), segments[1]),
    }
    for why, made in broken.items():
        with pytest.raises(InternalError, match=why):
            check_plan(graph, plan_of(graph, made), ROOMY)
    # Of the first part its operand and all of the tensor are on chip: 80 and 128 words.
    late = tuple(replace(each, early=False) for each in segments)
    check_plan(graph, plan_of(graph, late), replace(ROOMY, act_depth=256, act_banks=1))
    with pytest.raises(InternalError, match="208 activation words of 192"):
        check_plan(graph, plan_of(graph, late), replace(ROOMY, act_depth=64, act_banks=3))


def test_the_planner_gathers_where_it_costs_less() -> None:
    graph, cycles = inverted(), PartCycles(SMALL)
    plan = make_plan(graph, SMALL, cycles)
    wholes = {segment.gathered for segment in plan.segments} - {None}
    assert wholes
    loads = {region.tensor for segment in plan.segments for region in segment.loads}
    assert not loads & {whole.tensor for whole in wholes if whole}
    program = link(graph, plan, SMALL, cycles.schedules)
    check(program)
    values = inputs(graph, 1)
    made, wanted = Emulator(program).run(values), golden.run(graph, values)
    assert all((found == wanted[name]).all() for name, found in made.outputs.items())
