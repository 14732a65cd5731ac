"""Plans of networks that are too large: golden results, and what cannot be planned."""

from dataclasses import replace
from typing import Any

import pytest
from heuristics import Net
from small_networks import NETWORKS, SMALL, anything, chain, inputs, inverted

from onnxhw.errors import DoesNotFitError, UsageError
from onnxhw.external import ULX3S
from onnxhw.ir.graph import Add, Graph, Port, Tensor
from onnxhw.presets import preset
from onnxhw.segments import QUICK, THOROUGH, PartCycles, Plan, Region, Segment, differences, make_plan, planner
from onnxhw.segments.group_choice import NoPartError
from onnxhw.segments.operation_order import depth_first
from onnxhw.segments.part_work import run_cycles
from onnxhw.segments.plan import OperationPart
from onnxhw.segments.planner import _accepted, _cheapest, _Search


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("act_depth", [64, 128, 1024])
def test_plans_make_what_the_golden_model_makes(name: str, act_depth: int) -> None:
    graph, config = NETWORKS[name](), replace(SMALL, act_depth=act_depth)
    made = make_plan(graph, config, anything)
    assert differences(graph, made, inputs(graph)) == []
    assert len(made.segments) > 2


def test_what_fits_is_one_segment() -> None:
    graph = chain()
    (segment,) = make_plan(graph, preset("ulx3s-85f+sdram"), anything).segments
    assert [part.op for part in segment.parts] == [op.name for op in graph.ops]
    assert segment.inputs == segment.loads == (Region.whole(graph, "x"),)


def test_the_scheduler_takes_every_part() -> None:
    graph = inverted()
    cycles = PartCycles(SMALL)
    made = make_plan(graph, SMALL, cycles)
    assert differences(graph, made, inputs(graph)) == []
    assert all(cycles(segment) > 0 for segment in made.segments)
    assert len(made.segments) > 5


def test_what_is_refused_is_cut_otherwise() -> None:
    graph, seen = inverted(), list[int]()

    def single(part: Segment) -> None:
        seen.append(len(part.graph.ops))
        if len(part.graph.ops) > 1:
            raise DoesNotFitError("E5101", "too many")

    made = make_plan(graph, SMALL, single)
    assert max(seen) > 1
    assert {len(segment.graph.ops) for segment in made.segments} == {1}
    assert differences(graph, made, inputs(graph)) == []


def test_runs_are_counted_as_they_are() -> None:
    graph = inverted()
    longest = max(len(segment.parts) for segment in make_plan(graph, SMALL, anything).segments)
    made = make_plan(graph, SMALL, lambda part: 10**6 if len(part.graph.ops) > 1 else 1)
    assert longest > 1
    assert {len(segment.graph.ops) for segment in made.segments} == {1}


@pytest.mark.parametrize(("times", "kept"), [(1.9, True), (200, False)])
def test_with_less_effort_runs_that_are_far_off_are_counted_as_they_are(times: float, kept: bool) -> None:
    """Of groups of several operations, as where their stripes of an image do not lie packed."""

    def cycles(part: Segment) -> int:
        return round(run_cycles(part.graph, SMALL) * (times if len(part.graph.ops) > 1 else 1))

    found = make_plan(inverted(), SMALL, cycles, effort=QUICK)
    assert any(len(segment.graph.ops) > 1 for segment in found.segments) is kept


def test_when_rounds_are_over_the_cheapest_that_were_tried_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain()
    search = _Search(graph, SMALL, replace(THOROUGH, longest=3), {})
    _, first = search.choice.best({}, {})
    monkeypatch.setattr(planner, "ROUNDS", 1)
    cost, segments = _accepted(search, lambda _: 10**6)
    assert cost >= 10**6 * len(segments)
    made = [segment.parts for each in first for segment in search.groups.segments(each) or []]
    assert [segment.parts for segment in segments] == made
    monkeypatch.setattr(planner, "ROUNDS", 0)
    with pytest.raises(NoPartError, match="no part of it fits the chip; last: not tried"):
        make_plan(graph, SMALL, anything)


def test_what_is_long_is_cut_into_many_columns() -> None:
    net = Net(8, 1)
    net.tensors["x"] = replace(net.tensors["x"], shape=(1, 8, 1, 600))
    graph = net.graph("sound", net.conv(net.conv("x", 8), 8))
    made = make_plan(graph, SMALL, PartCycles(SMALL))
    assert differences(graph, made, inputs(graph)) == []
    # 1,200 words of 256: more than the four columns that an image is cut into
    assert len({region.box.cols for segment in made.segments for region in segment.outputs}) > 8


def test_a_column_of_tiles_at_a_time_where_no_more_fit() -> None:
    net = Net(64, 1)
    graph = net.graph("classes", net.conv("x", 600, 1))
    # Memory for one column of 16 tiles, which make 4 of 600 channels.
    config = replace(SMALL, weight_depth=64 * SMALL.cols // SMALL.weight_word)
    made = make_plan(graph, config, PartCycles(config))
    assert differences(graph, made, inputs(graph)) == []
    assert len(made.segments) == -(-600 // SMALL.cols)


@pytest.mark.parametrize("few", [0, 1000])
def test_costs_of_few_segments_do_not_know_banks(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, asked = inverted(), list[bool]()

    def recorded(*args: Any) -> list[Segment]:
        asked.append(args[-1])
        return _cheapest(*args)

    monkeypatch.setattr(planner, "FEW", few)
    monkeypatch.setattr(planner, "_cheapest", recorded)
    made = make_plan(graph, SMALL, anything)
    assert asked == ([True] if few == 0 else [True, False])
    assert len(made.segments) > 5


def test_where_nothing_is_small_enough_to_lie_packed_it_need_not(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = inverted()
    wanted = make_plan(graph, SMALL, anything).segments
    monkeypatch.setattr(planner, "too_large", lambda *_: True)
    assert [each.parts for each in make_plan(graph, SMALL, anything).segments] == [each.parts for each in wanted]


def test_what_no_part_of_fits_is_named() -> None:
    graph = inverted()

    def never(part: Segment) -> None:
        if len(part.graph.ops) == 1 and "averagepool" in part.graph.ops[0].name:
            raise DoesNotFitError("E5101", "never")
        if any("averagepool" in op.name for op in part.graph.ops):
            raise DoesNotFitError("E5101", "not even together")

    with pytest.raises(DoesNotFitError, match=r"averagepool.*no part of it fits the chip") as error:
        make_plan(graph, SMALL, never)
    assert error.value.code == "E5191"


def test_without_external_memory_there_is_no_plan() -> None:
    with pytest.raises(UsageError) as error:
        make_plan(inverted(), preset("mini"), anything)
    assert error.value.code == "E2190"


def test_external_memory_may_be_too_small() -> None:
    tiny = replace(ULX3S, rows=2, columns=8, banks=2)
    with pytest.raises(DoesNotFitError, match=f"small has {tiny.size}") as error:
        make_plan(inverted(), replace(SMALL, external=tiny), anything)
    assert error.value.code == "E5190"


def test_a_part_that_is_larger_than_the_one_looked_at_is_refused() -> None:
    """Of seven rows in two stripes, the second has fewer."""
    graph, config = inverted(8, 7), replace(SMALL, act_banks=2)
    assert differences(graph, make_plan(graph, config, anything), inputs(graph)) == []


def test_a_row_is_cut_into_columns() -> None:
    x, y = (Tensor(name, (1, 4, 1, 400), 0.05, 3) for name in ("x", "y"))
    ports = [[Port(one.name, one.shape, "int8", one.name)] for one in (x, y)]
    add = Add("add", ("x", "x"), "y")
    graph = Graph("row", {"x": x, "y": y}, [add], *ports)
    made = make_plan(graph, SMALL, anything)
    assert [region.box.cols for segment in made.segments for region in segment.outputs] == [
        (at, at + 100) for at in range(0, 400, 100)
    ]  # fmt: skip
    assert differences(graph, made, inputs(graph)) == []


def test_a_result_that_is_read_later_in_its_group_can_be_an_output() -> None:
    graph = chain()
    middle = graph.ops[1].output
    graph.outputs.insert(0, Port("middle", graph.tensors[middle].shape, "int8", middle))
    made = make_plan(graph, preset("ulx3s-85f+sdram"), anything)
    assert [region.tensor for segment in made.segments for region in segment.outputs] == [
        middle, graph.ops[2].output
    ]  # fmt: skip
    assert differences(graph, made, inputs(graph)) == []


def parts_of(plan: Plan) -> list[OperationPart]:
    return [part for segment in plan.segments for part in segment.parts]


def test_the_order_that_costs_less_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """`upsampled` has a branch that had better wait for the other; what is not taken costs more."""
    graph = NETWORKS["upsampled"]()
    taken = parts_of(make_plan(graph, SMALL, PartCycles(SMALL)))
    costs = [
        _accepted(_Search(replace(graph, ops=ops), SMALL, THOROUGH, {}, banks=False), PartCycles(SMALL))[0]
        for ops in (graph.ops, depth_first(graph))
    ]
    monkeypatch.setattr("onnxhw.segments.planner.depth_first", lambda graph: graph.ops)
    assert (parts_of(make_plan(graph, SMALL, PartCycles(SMALL))) == taken) == (costs[0] <= costs[1])
    assert costs[0] != costs[1]


def test_an_order_that_costs_much_more_is_not_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, scheduled = NETWORKS["upsampled"](), list[list[str]]()
    orders = [[op.name for op in ops] for ops in (graph.ops, depth_first(graph))]

    def recorded(search: _Search, *args: Any) -> tuple[float, list[Segment]]:
        scheduled.append([op.name for op in search.groups.graph.ops])
        return _accepted(search, *args)

    monkeypatch.setattr(planner, "_accepted", recorded)
    monkeypatch.setattr(planner, "FEW", 0)
    for worse, wanted in ((1000.0, orders), (0.001, orders[:1])):
        scheduled.clear()
        monkeypatch.setattr(planner, "WORSE", worse)
        make_plan(graph, SMALL, anything)
        assert scheduled == wanted
