"""Estimates of plans made by hand, cycle by cycle."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, anything, chain, dense_channels, inverted

from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Graph, Op
from onnxhw.segments import Buffer, PartCycles, Plan, Region, Segment, estimate_cycles, kind, make_plan
from onnxhw.segments.cutting import cut
from onnxhw.segments.estimate import LINEAR, SPILLED, SWAP, depends, new_weights, weight_bytes
from onnxhw.segments.plan import weights_of

RUN = 1000


def always(_: Graph) -> int:
    return RUN


def stripe(graph: Graph, rows: tuple[int, int], early: bool = False) -> Segment:
    """Rows of the first operation's result."""
    y = graph.tensors[graph.ops[0].output]
    segment = cut(graph, graph.ops[:1], {y.name: Box.whole(y.shape)._replace(rows=rows)})
    assert segment is not None
    return replace(segment, early=early)


def spilled(regions: tuple[Region, ...]) -> int:
    return ceil(sum(region.box.size for region in regions) / (2 * SPILLED))


@pytest.mark.parametrize("early", [False, True])
def test_stripes_of_one_operation(early: bool) -> None:
    """Weights once; the second stripe's loads beside the first run, or behind it; its stores behind its own."""
    graph = inverted()
    segments = stripe(graph, (0, 5)), stripe(graph, (5, 10), early)
    found = estimate_cycles(Plan(segments, ()), replace(SMALL, act_depth=1024), always)
    weights = weight_bytes(weights_of(segments[0], SMALL), SMALL)
    first = ceil(weights / (2 * LINEAR)) + spilled(segments[0].loads)
    loads, stores = spilled(segments[1].loads), spilled(segments[1].outputs)
    assert loads < RUN
    assert found.cycles == first + 2 * (RUN + SWAP) + stores + (0 if early else loads)
    assert found.run == 2 * (RUN + SWAP)
    assert found.weight_bytes == weights == 2 * 6 * 16 + 8 * 24  # two by six tiles of 4 x 4, 24 parameters
    assert found.activation_bytes == 2 * (8 + 24) * 50
    assert found.memory == first + loads + spilled(segments[0].outputs) + stores
    assert found.share == (weights + found.activation_bytes) / (2 * found.cycles)


def test_other_channels_weights_that_are_the_same_numbers_are_there() -> None:
    """As of a mean, whose blocks of channels all have ones: parameters come, and no words."""
    graph = inverted()
    y = graph.tensors[graph.ops[0].output]

    def block(ops: list[Op], low: int) -> Segment:
        made = cut(graph, ops, {y.name: Box.whole(y.shape)._replace(channels=(low, low + 12))})
        assert made is not None
        return made

    ones = [replace(graph.ops[0], weight=np.ones_like(graph.ops[0].weight))]
    blocks, others = ([block(ops, low) for low in (0, 12)] for ops in (ones, graph.ops[:1]))
    key = (graph.ops[0].name, (12, 24))
    words = weights_of(others[1], SMALL)[key]
    assert new_weights(others[0], others[1], SMALL) == {key: words}
    assert new_weights(blocks[0], blocks[1], SMALL) == {key: 0}
    assert new_weights(None, blocks[1], SMALL) == {key: words}


def test_weights_wait_for_room() -> None:
    """Of the next weights as many come during a run as the memory has words free."""
    graph = chain()
    ops = [cut(graph, [op], {op.output: Box.whole(graph.tensors[op.output].shape)}) for op in graph.ops[:2]]
    segments = tuple(segment for segment in ops if segment)
    words = sum(weights_of(segments[0], SMALL).values())
    roomy, tight = (
        estimate_cycles(Plan(segments, ()), replace(SMALL, weight_depth=depth), always) for depth in (2 * words, words)
    )
    late = ceil(weight_bytes(weights_of(segments[1], SMALL), SMALL) / (2 * LINEAR))
    assert tight.cycles == roomy.cycles + late
    assert tight.memory == roomy.memory


def test_weights_in_pieces_come_beside_their_own_run_and_for_each_stripe() -> None:
    """Runs that are long hide all but what comes before the first; those of short runs are what the memory takes."""
    graph, stripes = dense_channels(), 3
    y = graph.tensors[graph.ops[0].output]
    boxes = [Box((0, 4), (row, row + 1), (0, 3)) for row in range(stripes)]
    segments = tuple(segment for box in boxes if (segment := cut(graph, graph.ops, {y.name: box})))
    each = 720 * SMALL.weight_word + 8 * 4
    slow, fast = (estimate_cycles(Plan(segments, ()), SMALL, lambda _, run=run: run) for run in (10**6, 1))
    assert slow.weight_bytes == fast.weight_bytes == stripes * each
    assert slow.memory == fast.memory
    assert fast.cycles >= stripes * each / (2 * LINEAR)
    assert slow.cycles < stripes * (10**6 + SWAP) + slow.memory - 2 * each / (2 * LINEAR)


def test_weights_of_later_segments_come_during_a_long_run() -> None:
    """The third segment's come beside the first, if there is room for three, else beside the short second run, behind
    the first one's stores."""
    graph = chain()
    made = [cut(graph, [op], {op.output: Box.whole(graph.tensors[op.output].shape)}) for op in graph.ops]
    segments = tuple(replace(segment, loads=()) for segment in made if segment)
    each, runs = weights_of(segments[0], SMALL), (RUN, 1, 1)
    words = sum(each.values())

    def found(depth: int) -> int:
        left = iter(runs)
        return estimate_cycles(Plan(segments, ()), replace(SMALL, weight_depth=depth), lambda _: next(left)).cycles

    late = spilled(segments[0].outputs) + ceil(weight_bytes(each, SMALL) / (2 * LINEAR)) - (1 + SWAP)
    assert late > 0
    assert found(2 * words) == found(3 * words) + late
    assert found(3 * words) == found(9 * words)


def test_stores_hold_up_what_needs_their_place() -> None:
    graph = inverted()
    segments = tuple(replace(stripe(graph, (at, at + 5)), loads=()) for at in (0, 5))
    roomy, full = (estimate_cycles(Plan(segments, ()), replace(SMALL, act_depth=depth), always) for depth in (1024, 64))
    assert full.cycles == roomy.cycles + spilled(segments[0].outputs)


def test_what_is_being_made_is_not_there_yet() -> None:
    graph = inverted()
    made, other = stripe(graph, (0, 5)).outputs, stripe(graph, (5, 10)).outputs
    reader = replace(stripe(graph, (0, 5)), loads=made)
    assert depends(reader, made)
    assert not depends(reader, other)
    assert not depends(stripe(graph, (0, 5)), made)


def test_kinds_are_told_apart_by_all_but_names_and_values() -> None:
    graph = inverted()
    first, middle, last = (stripe(graph, rows).graph for rows in ((0, 2), (4, 6), (8, 10)))
    assert kind(first) == kind(middle) == kind(last)  # 1 x 1
    named = replace(first, ops=[replace(first.ops[0], name="other", lo=first.ops[0].lo)])
    assert kind(named) == kind(first)
    assert kind(replace(first, ops=[replace(first.ops[0], pads=(1, 0, 0, 0))])) != kind(first)
    assert kind(stripe(graph, (0, 3)).graph) != kind(first)
    wider = np.zeros((24, 8, 1, 3), np.int8)
    assert kind(replace(first, ops=[replace(first.ops[0], weight=wider)])) != kind(first)  # type: ignore[call-arg]


def test_a_kind_is_scheduled_once() -> None:
    cycles, graph = PartCycles(SMALL), inverted()
    assert cycles(stripe(graph, (0, 2))) == cycles(stripe(graph, (4, 6))) > 0
    assert len(cycles.known) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_no_estimate_is_below_its_parts(name: str) -> None:
    made = make_plan(NETWORKS[name](), SMALL, anything)
    found = estimate_cycles(made, SMALL, always)
    assert max(found.run, found.memory) <= found.cycles <= found.run + found.memory
    assert found.run == len(made.segments) * (RUN + SWAP)


def test_buffers_cost_nothing() -> None:
    segments = (stripe(inverted(), (0, 5)),)
    buffers = (Buffer("x", 0, 800, -1, 1),)
    assert estimate_cycles(Plan(segments, buffers), SMALL, always) == estimate_cycles(Plan(segments, ()), SMALL, always)
