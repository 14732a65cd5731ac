"""Costs of groups: what comes once, shared banks, what is on chip before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest
from heuristics import Net
from small_networks import NETWORKS, SMALL, candidates, chain, dense_channels, inverted

from onnxhw.config import HwConfig
from onnxhw.ir.boxes import Box
from onnxhw.segments.cutting import cut
from onnxhw.segments.group_costs import GroupCosts, Way, have_own_banks
from onnxhw.segments.groups import UNCUT, Candidate, Groups
from onnxhw.segments.plan import Occupancy, Region


def test_shared_banks_cost_more() -> None:
    graph = inverted()
    with_banks, without = (
        {(each.first, each.end, each.cuts, each.by_stripe): each.cost for each in candidates(costs)}
        for costs in (GroupCosts(Groups(graph, SMALL), banks) for banks in (True, False))
    )
    both = with_banks.keys() & without.keys()
    assert all(with_banks[way] >= without[way] for way in both)
    assert any(with_banks[way] > without[way] for way in both)


def test_banks_of_their_own() -> None:
    net = Net(8, 16)
    graph = net.graph("two", net.conv(net.conv("x", 8, 1), 8, 1))
    (y,) = graph.outputs
    segment = cut(graph, graph.ops, {y.tensor: Box.whole(graph.tensors[y.tensor].shape)})
    assert segment is not None

    def own(kept: Sequence[Region], config: HwConfig) -> bool:
        return have_own_banks(segment, kept, config, Occupancy(segment.graph, config))

    # 512 words each of inputs, between the operations, and results, with the neighbours' inputs and results
    assert own((), replace(SMALL, act_depth=1024))
    assert own(segment.loads, replace(SMALL, act_depth=512, act_banks=4))
    assert not own((), replace(SMALL, act_depth=512, act_banks=4))


def test_runs_that_are_known_are_counted() -> None:
    costs = GroupCosts(Groups(chain(), SMALL))
    slow, slower = (next(costs.of(Candidate(0, 1, UNCUT), runs))[0].cost for runs in (10**6, 10**6 + 1000))
    assert slower - slow == 1000


def test_weights_in_pieces_come_anew_in_each_segment() -> None:
    """Also for stripes of the same channels, and once more for each part that the accumulators hold."""
    graph = dense_channels()
    each = 720 * SMALL.weight_word

    def cost(rows: int, acc_depth: int = SMALL.acc_depth) -> float:
        costs = GroupCosts(Groups(graph, replace(SMALL, acc_depth=acc_depth)))
        return min(found.cost for found, _ in costs.of(Candidate(0, 1, (6, rows, 1))))

    assert cost(3) - cost(1) > 12 * each / 2
    assert cost(1, 8) > 2 * 6 * each / 2 > cost(1, 16)


def test_a_result_that_is_on_chip_is_neither_stored_nor_loaded() -> None:
    graph = chain()
    costs = GroupCosts(Groups(graph, SMALL))
    (first,), (second,), (last,) = ([found for found, _ in costs.of(Candidate(n, n + 1, UNCUT))] for n in range(3))
    assert first.behind == first.cost  # there is nothing before it
    moving = costs.moving([Region.whole(graph, graph.ops[0].output)])
    assert moving > Box.whole(graph.tensors[graph.ops[0].output].shape).size / 2  # two bytes a cycle
    assert second.sole
    less = 0.99 * moving  # sums of floating-point numbers
    assert second.cost - second.behind > less
    assert first.cost - first.unstored > less
    assert second.behind - second.behind_unstored > less
    assert last.unstored < last.cost  # which is not to be had: the planner ends with what is stored


def test_runs_of_rows_cost_more_than_whole_blocks() -> None:
    """Of the same words, those that do not lie one behind the other; a word that is not full counts as a whole."""
    graph = Net(6, 12).graph("one", "x")
    costs = GroupCosts(Groups(graph, SMALL))
    costs.inputs = set()
    whole, left, top = (Region("x", Box((0, 6), rows, cols)) for rows, cols in
                        (((0, 12), (0, 12)), ((0, 12), (0, 6)), ((0, 6), (0, 12))))  # fmt: skip
    assert costs.moving([left]) > costs.moving([top])
    assert costs.moving([top, top]) > costs.moving([whole]) > 8 * 144 / 2


def test_what_is_gathered_needs_room_for_all_of_it() -> None:
    graph = Net(8, 8)
    made = graph.graph("pair", graph.conv(graph.conv("x", 8), 8))
    for depth, there in ((64, True), (32, False)):  # 80 words of the operand and 128 of the result
        costs = GroupCosts(Groups(made, replace(SMALL, act_depth=depth)))
        ways = [found for found, _ in costs.of(Candidate(0, 1, (1, 2, 1)))]
        assert any(each.gathered for each in ways) == there
        assert all(each.left == each.gathered for each in ways)
        assert all((each.unstored < each.cost) == each.gathered for each in ways)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("act_depth", [32, 128])
def test_what_is_not_promising_before_it_is_cut_does_not_fit(
    name: str, act_depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds leave out nothing of what fits, nor of what has room and banks beside it."""
    graph, config = NETWORKS[name](), replace(SMALL, act_depth=act_depth)

    def ways(found: Mapping[Way, bool]) -> list[tuple[object, ...]]:
        costs = GroupCosts(Groups(graph, config))
        groups = [(first, end) for end in range(1, len(graph.ops) + 1) for first in range(max(0, end - 3), end)]
        tried = [Candidate(*each, cuts) for each in groups for mine in costs.groups.cuts(*each) for cuts in mine]
        return [(each.first, each.end, each.cuts, each.by_stripe, each.gathered, each.cost, beside)
                for one in tried for each, beside in costs.of(one, found=found)]  # fmt: skip

    for found in ({}, dict.fromkeys(product((False, True), repeat=2), False)):
        bounded = ways(found)
        with monkeypatch.context() as patched:
            patched.setattr(GroupCosts, "_promising", lambda self, candidate, needed, ways, found: ways)
            assert ways(found) == bounded
        assert bounded
        assert not found or all(each[-1] for each in bounded)
