"""The executor sees what is wrong in a plan that was not proved."""

from dataclasses import replace

import pytest
from small_networks import NETWORKS, SMALL, anything, inputs

from onnxhw.golden import run
from onnxhw.ir.graph import Graph
from onnxhw.segments import Plan, Region, differences, execute, make_plan

GRAPH = NETWORKS["residual"]()
PLAN = make_plan(GRAPH, SMALL, anything)


BRANCHES = NETWORKS["branches"]()
WITH_KEPT = make_plan(BRANCHES, SMALL, anything)


@pytest.mark.parametrize(("graph", "plan"), [(GRAPH, PLAN), (BRANCHES, WITH_KEPT)], ids=["residual", "branches"])
def test_every_tensor_is_made(graph: Graph, plan: Plan) -> None:
    values = inputs(graph, 1)
    assert differences(graph, plan, values) == []
    expected, made = run(graph, values), list(execute(graph, plan, values))
    assert {region.tensor for region, _ in made} == {op.output for op in graph.ops}
    assert all((found == expected[region.tensor][region.box.slices]).all() for region, found in made)


def test_a_lost_segment_is_seen() -> None:
    for n in range(len(PLAN.segments)):
        segments = PLAN.segments[:n] + PLAN.segments[n + 1 :]
        loads = tuple(replace(each, loads=each.inputs) for each in segments)
        assert differences(GRAPH, replace(PLAN, segments=loads), inputs(GRAPH)), n


def test_tensors_that_lie_on_each_other_are_seen() -> None:
    """Of all buffers of activations at one address, some are read after another was written."""
    buffers = tuple(replace(each, address=0) for each in PLAN.buffers)
    assert differences(GRAPH, replace(PLAN, buffers=buffers), inputs(GRAPH))


def test_an_output_that_is_not_made_is_named() -> None:
    """Nothing of it, or not all."""
    last = Region.whole(GRAPH, GRAPH.outputs[-1].tensor)
    assert last in differences(GRAPH, replace(PLAN, segments=PLAN.segments[:-1]), inputs(GRAPH))
    last = Region.whole(BRANCHES, BRANCHES.outputs[-1].tensor)
    assert WITH_KEPT.segments[-2].outputs[0].tensor == last.tensor
    some = replace(WITH_KEPT, segments=WITH_KEPT.segments[:-1])
    assert differences(BRANCHES, some, inputs(BRANCHES)) == [last]
