"""Groups: the boxes of their results, and what neighbours have in common."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net
from small_networks import NETWORKS, SMALL, candidates

from onnxhw.ir.graph import Table
from onnxhw.segments.effort import THOROUGH
from onnxhw.segments.group_costs import GroupCosts
from onnxhw.segments.groups import UNCUT, Candidate, Groups
from onnxhw.segments.planner import _Search


def test_an_operand_that_two_blocks_share_is_counted_once_and_both_orders_are_tried() -> None:
    graph, found = NETWORKS["residual"](), 0
    groups = Groups(graph, SMALL)
    for candidate in candidates(GroupCosts(groups)):
        made = groups.segments(candidate)
        if not candidate.by_stripe or not made:
            continue
        boxes = [segment.outputs[0].box for segment in made]
        blocks = len({box.channels for box in boxes})
        assert len(set(boxes)) == len(boxes)
        # All blocks of channels of the first stripe come before another stripe.
        assert len({(box.rows, box.cols) for box in boxes[:blocks]}) == 1 < blocks < len(boxes)
        at = groups.boxes(candidate).middle()
        kept, times = groups.reused(candidate, groups.boxes(candidate), made[at])
        assert times == blocks
        if kept:
            assert set(kept) == {region for region in made[at].loads if region in made[at + 1].loads}
            found += 1
    assert found


def test_boxes_are_all_of_a_result_once() -> None:
    graph = NETWORKS["residual"]()
    groups, end = Groups(graph, SMALL), len(graph.ops)
    y = graph.tensors[graph.ops[-1].output]
    for cuts in [(1, 2, 1), (1, 3, 2), (1, 1, 4)]:
        boxes = groups.boxes(Candidate(end - 1, end, cuts))
        assert sum(boxes[n].size for n in range(len(boxes))) == y.channels * y.height * y.width
    assert all(UNCUT not in finer for finer in groups.cuts(0, end))


def test_several_results_are_cut_alike() -> None:
    """A convolution of 1 x 1 follows the stripes of what it reads; one of 3 x 3 would need rows of the next."""
    net = Net(8, 8)
    y = net.conv("x", 8)
    point, wide = net.conv(y, 16, 1), net.conv(y, 4)
    graph = net.graph("two", y, point, wide)
    groups = Groups(graph, SMALL)
    made = groups.segments(Candidate(0, 2, (1, 4, 1)))
    assert made
    boxes = [[(region.tensor, region.box.rows) for region in segment.outputs] for segment in made]
    assert boxes == [[(y, (at, at + 2)), (point, (at, at + 2))] for at in range(0, 8, 2)]
    assert groups.segments(Candidate(0, 3, (1, 4, 1))) is None
    assert groups.segments(Candidate(0, 2, (2, 1, 1))) is None  # other channels of the first than of the second
    assert not groups.may_gather(Candidate(0, 2, (1, 4, 1)))


def test_results_are_what_others_read() -> None:
    graph = NETWORKS["branches"]()
    groups, count = Groups(graph, SMALL), len(graph.ops)
    assert sorted(groups.results(0, count)) == sorted(port.tensor for port in graph.outputs)
    for first in range(count):
        read = {name for op in graph.ops[first + 1 :] for name in op.inputs}
        read |= {port.tensor for port in graph.outputs}
        name = graph.ops[first].output
        assert groups.results(first, first + 1) == ([name] if name in read else [])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_group_that_grows_to_the_front_is_cut_as_if_alone(name: str) -> None:
    graph = NETWORKS[name]()
    kept, found = Groups(graph, SMALL), 0
    for end in range(1, len(graph.ops) + 1):
        for first in reversed(range(max(0, end - 5), end)):
            for cuts in (UNCUT, (1, 2, 1), (2, 1, 1), (2, 3, 2)):
                candidate = Candidate(first, end, cuts)
                boxes = kept.boxes(candidate)
                needed = kept.needed(candidate, boxes, 0, len(boxes) // 2 % boxes.stripes)
                alone = Groups(graph, SMALL).needed(candidate, boxes, 0, len(boxes) // 2 % boxes.stripes)
                assert (needed and needed.boxes) == (alone and alone.boxes)
                found += needed is not None
    assert found > 20


def test_a_group_needs_no_more_tables_than_there_are() -> None:
    """Equal ones are one. The scheduler refuses others, one after the other: of a chain of 90 functions too many."""
    net, y = Net(4, 3), "x"
    for shift in (0, 1, 1, 2, 3, 4, 0):
        y = net._op(Table, (y,), (4, 3, 3), table=np.roll(np.arange(-128, 128), shift).astype(np.int8))
    graph = net.graph("functions", y)
    config = replace(SMALL, tables=4)
    groups = Groups(graph, config)
    assert [groups.have_tables(0, end) for end in range(1, 8)] == [True] * 5 + [False] * 2
    search = _Search(graph, config, THOROUGH, {})
    found = {(each.first, each.end) for mine in search.by_first.values() for each in mine}
    assert max(end for first, end in found if first == 0) == 5
    assert (2, 6) in found
    assert all(groups.have_tables(*each) for each in found)
