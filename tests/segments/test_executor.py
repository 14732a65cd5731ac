"""The executor sees what is wrong in a plan that was not proved."""

from dataclasses import replace

from small_networks import NETWORKS, SMALL, anything, inputs

from onnxhw.golden import run
from onnxhw.segments import Region, differences, execute, make_plan

GRAPH = NETWORKS["residual"]()
PLAN = make_plan(GRAPH, SMALL, anything)


def test_every_tensor_is_made() -> None:
    values = inputs(GRAPH, 1)
    assert differences(GRAPH, PLAN, values) == []
    expected, made = run(GRAPH, values), list(execute(GRAPH, PLAN, values))
    assert {region.tensor for region, _ in made} == {op.output for op in GRAPH.ops}
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
    segments = PLAN.segments[:-1]
    last = GRAPH.outputs[-1].tensor
    assert Region.whole(GRAPH, last) in differences(GRAPH, replace(PLAN, segments=segments), inputs(GRAPH))
