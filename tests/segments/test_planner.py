"""Plans of networks that are too large: golden results, and what cannot be planned."""

from dataclasses import replace

import pytest
from small_networks import NETWORKS, SMALL, anything, chain, inputs, inverted

from onnxhw.config import preset
from onnxhw.errors import DoesNotFitError, UsageError
from onnxhw.external import ULX3S
from onnxhw.ir.graph import Graph
from onnxhw.segments import PartCycles, Region, differences, make_plan


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("act_depth", [64, 128, 1024])
def test_plans_make_what_the_golden_model_makes(name: str, act_depth: int) -> None:
    graph, config = NETWORKS[name](), replace(SMALL, act_depth=act_depth)
    made = make_plan(graph, config, anything)
    assert differences(graph, made, inputs(graph)) == []
    assert len(made.segments) > 3


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
    assert all(cycles(segment.graph) > 0 for segment in made.segments)
    assert len(made.segments) > 5


def test_what_is_refused_is_cut_otherwise() -> None:
    graph, seen = inverted(), list[int]()

    def single(part: Graph) -> None:
        seen.append(len(part.ops))
        if len(part.ops) > 1:
            raise DoesNotFitError("E5101", "too many")

    made = make_plan(graph, SMALL, single)
    assert max(seen) > 1
    assert {len(segment.graph.ops) for segment in made.segments} == {1}
    assert differences(graph, made, inputs(graph)) == []


def test_what_no_part_of_fits_is_named() -> None:
    graph = inverted()

    def never(part: Graph) -> None:
        if len(part.ops) == 1 and "averagepool" in part.ops[0].name:
            raise DoesNotFitError("E5101", "never")
        if any("averagepool" in op.name for op in part.ops):
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


def test_loads_come_early_where_there_is_room_and_not_at_all_where_they_are_there() -> None:
    segments = make_plan(NETWORKS["branches"](), replace(SMALL, act_depth=128), anything).segments
    assert {segment.early for segment in segments[1:]} == {False, True}
    assert not segments[0].early
    assert any(len(segment.loads) < len(segment.inputs) for segment in segments)
