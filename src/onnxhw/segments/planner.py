"""`make_plan`: groups of operations, and the boxes of their results that are made one after the other.

A group is a run of operations, in the graph's order, or in that in which each comes behind what it reads as soon as may
be, whichever costs less. What lies between its operations never leaves the chip. Groups (`groups`) are chosen so that
the sum of their rough costs (`group_costs`) is least; what the scheduler then refuses is left out, what it takes is
counted as it is, and they are chosen again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError, UsageError
from ..ir.graph import Graph, Op
from .buffers import assign
from .chaining import chained
from .checker import check_plan
from .group_costs import GroupCosts, misfit
from .groups import CUTS, UNCUT, Candidate, Groups
from .operation_order import depth_first
from .plan import Plan, Segment
from .techniques import ALL, Techniques

LONGEST = 14
"""Most operations of a group: a stage of two branches with a SiLU behind each of five convolutions has so many. YOLOv5n
takes 9 % more cycles with 8."""
FEW = 48
"""Segments at most for which costs do not know banks: finer stripes move more, and leave less time in which
weights of a later group could come. ResNet-8, of eleven, takes 6 % fewer cycles without."""
SAME = 0.5
"""Cycles below which costs are equal: the first, of fewest operations, is taken. Sums of parts differ by roundings."""
ROUNDS = 200
"""Times that groups are chosen again at most; then the cheapest of those that were tried are taken."""


Cycles = Callable[[Graph], int | None]
"""Of a segment's run; None: not known."""


class NoPartError(DoesNotFitError):
    """E5191: of an operation of a graph no part fits the chip; `operation` is its name."""

    def __init__(self, op: Op, refusals: Sequence[str]) -> None:
        last = f"; last: {refusals[-1]}" if refusals else ""
        super().__init__("E5191", f"no part of it fits the chip{last}", where=op.where, hint="a larger preset")
        self.operation = op.name


def make_plan(graph: Graph, config: HwConfig, cycles: Cycles, techniques: Techniques = ALL) -> Plan:
    """The checked plan of a graph for a configuration with external memory.

    `cycles` has those of a segment's run, or raises `DoesNotFitError` or `UnsupportedError` if it cannot be scheduled
    (`onnxhw.segments.PartCycles`). `UsageError` E2190: the configuration has no external memory. `DoesNotFitError`
    E5190: it is too small. `NoPartError` E5191: of an operation there is no part that fits the chip.
    """
    if config.external is None:
        raise UsageError("E2190", f"{config.name} has no external memory", hint="a preset with +sdram")
    segments = _cheapest(graph, config, cycles, techniques, True)
    if len(segments) <= FEW:
        segments = _cheapest(graph, config, cycles, techniques, False)
    linked = chained(segments, config)
    found = Plan(linked, assign(graph, linked, config, config.external))
    check_plan(graph, found, config)
    return found


def _cheapest(graph: Graph, config: HwConfig, cycles: Cycles, techniques: Techniques, banks: bool) -> list[Segment]:
    """The segments of the order of operations that costs less; `banks`: costs know that transfers wait for banks that
    runs use; otherwise they go beside runs wherever there are words for them."""
    known: dict[object, list[Candidate]] = {}
    orders = [graph] if (order := depth_first(graph)) == graph.ops else [graph, replace(graph, ops=order)]
    plans: list[tuple[float, list[Segment]]] = []
    for each in orders:
        search = _Search(each, config, LONGEST if techniques.depth_first else 1, known, banks)
        try:
            plans.append(_accepted(search, cycles))
        except NoPartError:
            if each is orders[-1] and not plans:
                raise
    return min(plans, key=lambda each: each[0])[1]


def _accepted(search: "_Search", cycles: Cycles) -> tuple[float, list[Segment]]:
    """The cost and the segments of the cheapest candidates of which nothing is refused, and whose runs are counted as
    they are; `NoPartError` E5191."""
    refused: dict[Candidate, str] = {}
    accepted: dict[Candidate, list[Segment]] = {}
    exact: dict[Candidate, Candidate] = {}
    """Of accepted candidates those with the costs of their runs."""
    for _ in range(ROUNDS):
        _, chosen = search.best(refused, exact)
        new = [candidate for candidate in chosen if candidate not in accepted]
        if not new:
            break
        for candidate in new:
            made = search.groups.segments(candidate)
            if why := _refusal(search.groups, made, cycles):
                refused[candidate] = why
            elif made:
                accepted[candidate] = made
                runs = [cycles(segment.graph) for segment in made]
                known = [run for run in runs if run is not None]
                exact[candidate] = search.counted(candidate, sum(known)) if len(known) == len(runs) else candidate
    others = [each for mine in search.by_first.values() for each in mine if each not in accepted]
    cost, chosen = search.best({each: refused.get(each, "not tried") for each in others}, exact)
    return cost, [part for each in chosen for part in accepted[each]]


def _refusal(groups: Groups, segments: Sequence[Segment] | None, cycles: Cycles) -> str:
    """Why a candidate cannot be; "" if it can."""
    try:
        for segment in segments or ():
            if why := misfit(groups.graph, segment, groups.config):
                return why
            cycles(segment.graph)
    except (DoesNotFitError, UnsupportedError) as error:
        return error.what
    return "" if segments else "it cannot be cut so"


class Left(Enum):
    """What a group leaves on chip of its last result as a whole: nothing, what is stored besides, or what is there
    alone."""

    NOTHING = 0
    STORED = 1
    ALONE = 2


def _costs(candidate: Candidate, left: Left) -> Iterator[tuple[Left, float]]:
    """What a candidate may leave if the one before has left this, with its costs; nothing if it cannot be behind it."""
    if left is Left.ALONE and not candidate.sole:
        return
    stored, unstored = candidate.cost, candidate.unstored
    if left is not Left.NOTHING:
        stored, unstored = candidate.behind, candidate.behind_unstored
    yield Left.STORED if candidate.left else Left.NOTHING, stored
    if candidate.left:
        yield Left.ALONE, unstored


class _Search:
    """Candidates of a graph on a configuration, of `longest` operations at most; `known`: those of groups that another
    order of the operations has behind the same one, too; `banks`: costs know of them."""

    def __init__(
        self, graph: Graph, config: HwConfig, longest: int, known: dict[object, list[Candidate]], banks: bool = True
    ) -> None:
        self.groups = Groups(graph, config)
        self.costs = GroupCosts(self.groups, banks)
        self.by_first: dict[int, list[Candidate]] = {}
        stuck: set[int] = set()
        for end in range(1, len(graph.ops) + 1):
            for first in reversed(range(max(0, end - longest), end)):
                if first in stuck:
                    continue
                before = graph.ops[first - 1].output if first else None
                key = before, *(op.output for op in graph.ops[first:end])
                if key not in known:
                    known[key] = [*self._of(first, end)]
                there = known[key][:1]
                same = all((each.first, each.end) == (first, end) for each in there)
                found = known[key] if same else [replace(each, first=first, end=end) for each in known[key]]
                self.by_first.setdefault(first, []).extend(found)
                if not found and len(self.groups.results(first, end)) == 1:
                    stuck.add(first)  # one that is longer takes more memory

    def best(
        self, refused: Mapping[Candidate, str], exact: Mapping[Candidate, Candidate]
    ) -> tuple[float, list[Candidate]]:
        """The cheapest candidates that make all operations, in order, and their cost; E5191 if there are none. `exact`:
        those whose costs are known better."""
        ops = self.groups.graph.ops
        count = len(ops)
        chosen: dict[tuple[int, Left], tuple[float, Candidate | None, Left]]
        chosen = {(count, left): (0.0, None, Left.NOTHING) for left in (Left.NOTHING, Left.STORED)}
        """From an operation on, by what the one before has left: the least cost, the next candidate, and what that
        leaves."""
        for first in reversed(range(count)):
            able = [each for each in self.by_first.get(first, ()) if (each.end, Left.NOTHING) in chosen]
            ways = [(each, exact.get(each, each)) for each in able if each not in refused]
            for left in Left:
                found = [
                    (cost + chosen[each.end, leaves][0], each, leaves)
                    for each, known in ways for leaves, cost in _costs(known, left) if (each.end, leaves) in chosen
                ]  # fmt: skip
                if found:
                    least = min(total for total, _, _ in found) + SAME
                    chosen[first, left] = next(one for one in found if one[0] < least)
        if (0, Left.NOTHING) not in chosen:
            stuck = max(n for n in range(count) if (n, Left.NOTHING) not in chosen)
            raise NoPartError(ops[stuck], [why for each, why in refused.items() if each.first == stuck])
        path: list[Candidate] = []
        at = 0, Left.NOTHING
        while (step := chosen[at][1]) is not None:
            path.append(step)
            at = step.end, chosen[at][2]
        return chosen[0, Left.NOTHING][0], path

    def counted(self, candidate: Candidate, runs: int) -> Candidate:
        """A candidate with its costs if its segments run for so many cycles."""
        each = self.costs.of(candidate, runs)
        same = candidate.by_stripe, candidate.gathered
        return next(found for found, _ in each if (found.by_stripe, found.gathered) == same)

    def _of(self, first: int, end: int) -> Iterator[Candidate]:
        """Everything at once if that fits; else of each number of blocks and of columns, in each order, gathered or
        not, the fewest stripes of rows that fit, and the fewest with which transfers and runs can go on side by side.
        More than 64 blocks are tried only if no fewer fit."""
        for candidate, _ in self.costs.of(Candidate(first, end, UNCUT)):
            yield candidate
        fits = False
        for finer in self.groups.cuts(first, end):
            if fits and finer and finer[0][0] > CUTS[-1]:
                break
            found: dict[tuple[bool, bool], bool] = {}
            """By order, and whether it is gathered, whether transfers and runs of what was found go on side by side."""
            for cuts in finer:
                for candidate, beside in self.costs.of(Candidate(first, end, cuts), found=found):
                    way = candidate.by_stripe, candidate.gathered
                    yield candidate
                    fits = True
                    found[way] = beside
                gathers = self.groups.may_gather(Candidate(first, end, cuts)) and not any(way[1] for way in found)
                if found and all(found.values()) and not gathers:
                    break
