"""The cheapest candidates: what the one before leaves on chip, and all ways for comparison."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from random import Random

import pytest
from small_networks import chain

from onnxhw.segments.group_choice import SAME, Choice, Left, NoPartError
from onnxhw.segments.groups import UNCUT, Candidate

OPS = chain().ops
COUNT = len(OPS)


def test_what_costs_less_behind_a_whole_result_is_taken() -> None:
    whole, striped = Candidate(0, 1, UNCUT, cost=10.0, behind=10.0), Candidate(0, 1, (1, 2, 1), cost=9.0, behind=9.0)
    others = [Candidate(n, n + 1, (1, 2, 1), cost=8.0, behind=6.0) for n in range(1, COUNT)]
    choice = Choice(OPS, {0: [whole, striped]} | {each.first: [each] for each in others})
    assert choice.best({}, {}) == (16.0 + 8.0 * (COUNT - 2), [whole, *others])
    assert choice.best({}, {whole: replace(whole, cost=12.0)}) == (17.0 + 8.0 * (COUNT - 2), [striped, *others])
    assert choice.best({whole: "too large"}, {})[1][0] is striped


def test_a_result_stays_unstored_only_for_one_that_reads_all_of_it() -> None:
    first = Candidate(0, 1, (1, 2, 1), gathered=True, cost=10.0, behind=10.0, unstored=7.0, behind_unstored=7.0)
    others = [Candidate(n, n + 1, (1, 2, 1), cost=8.0, behind=6.0, sole=n == 1) for n in range(1, COUNT)]
    by_first = {each.first: [each] for each in (first, *others)}
    assert Choice(OPS, by_first).best({}, {})[0] == 7.0 + 6.0 + 8.0 * (COUNT - 2)
    by_first[1] = [replace(others[0], sole=False)]
    assert Choice(OPS, by_first).best({}, {})[0] == 10.0 + 6.0 + 8.0 * (COUNT - 2)
    by_first = {0: [first]} | {n: [replace(first, first=n, end=n + 1, sole=True)] for n in range(1, COUNT)}
    assert Choice(OPS, by_first).best({}, {})[0] == 7.0 * (COUNT - 1) + 10.0  # the last one's is an output


def test_the_first_of_equal_costs_is_taken() -> None:
    ways = [Candidate(0, COUNT, (1, n, 1), cost=cost) for n, cost in ((2, 10.0 + SAME / 2), (3, 10.0), (4, 9.9))]
    assert Choice(OPS, {0: ways}).best({}, {}) == (10.0 + SAME / 2, [ways[0]])


def test_an_operation_that_no_candidate_makes_is_named() -> None:
    found = [Candidate(n, n + 1, UNCUT) for n in range(COUNT)]
    choice = Choice(OPS, {each.first: [each] for each in found})
    with pytest.raises(NoPartError, match="no part of it fits the chip; last: too large") as error:
        choice.best({found[1]: "too large"}, {})
    assert error.value.operation == OPS[1].name


@pytest.mark.parametrize("seed", range(20))
def test_the_cost_is_the_least_of_all_ways(seed: int) -> None:
    random = Random(seed)

    def candidate(first: int, end: int) -> Candidate:
        costs = sorted((random.randrange(10, 100) for _ in range(4)), reverse=True)
        gathered = random.random() < 0.5
        unstored, both = costs[2:] if gathered else (inf, inf)
        sole = random.random() < 0.5
        return Candidate(first, end, (1, 2, 1), False, gathered, costs[0], costs[1], unstored, both, sole)

    groups = [(first, end) for first in range(COUNT) for end in range(first + 1, COUNT + 1) for _ in range(2)]
    by_first = {first: [candidate(*each) for each in groups if each[0] == first] for first in range(COUNT)}

    def ways(first: int, left: Left) -> Iterator[float]:
        if first == COUNT and left is not Left.ALONE:
            yield 0.0
        for each in by_first.get(first, ()):
            if left is Left.ALONE and not each.sole:
                continue
            stored, alone = (each.cost, each.unstored) if left is Left.NOTHING else (each.behind, each.behind_unstored)
            yield from (stored + more for more in ways(each.end, Left.STORED if each.left else Left.NOTHING))
            yield from (alone + more for more in ways(each.end, Left.ALONE) if each.left)

    cost, path = Choice(OPS, by_first).best({}, {})
    assert cost == min(ways(0, Left.NOTHING))
    assert [each.first for each in path] == [0, *(each.end for each in path[:-1])]
