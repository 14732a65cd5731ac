"""Groups: the boxes of their results, and what neighbours have in common."""

from small_networks import NETWORKS, SMALL, candidates

from onnxhw.segments.group_costs import GroupCosts
from onnxhw.segments.groups import UNCUT, Candidate, Groups
from onnxhw.segments.plan import peak_words, ports_of


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
        kept, times, peak = groups.reused(candidate, made[at])
        assert times in (1, blocks)
        assert peak == peak_words(made[at].graph, SMALL, ports_of(made[at], kept))
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


def test_results_are_what_others_read() -> None:
    graph = NETWORKS["branches"]()
    groups, count = Groups(graph, SMALL), len(graph.ops)
    assert sorted(groups.results(0, count)) == sorted(port.tensor for port in graph.outputs)
    for first in range(count):
        read = {name for op in graph.ops[first + 1 :] for name in op.inputs}
        read |= {port.tensor for port in graph.outputs}
        name = graph.ops[first].output
        assert groups.results(first, first + 1) == ([name] if name in read else [])
