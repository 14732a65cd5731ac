"""`make_plan`: groups of operations, and the boxes of their results that are made one after the other.

A group is a run of operations, in the graph's order, or in that in which each comes behind what it reads as soon as may
be, whichever costs less. What lies between its operations never leaves the chip. Groups (`groups`) are chosen so that
the sum of their rough costs (`group_costs`) is least; what the scheduler then refuses is left out, what it takes is
counted as it is, and they are chosen again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError, UsageError
from ..ir.graph import Graph
from ..passes.packed_inputs import too_large
from .buffers import assign
from .chaining import chained
from .checker import check_plan
from .effort import THOROUGH, Effort
from .group_choice import Choice, NoPartError
from .group_costs import GroupCosts, misfit
from .groups import UNCUT, Candidate, Groups
from .operation_order import depth_first
from .part_work import run_cycles
from .plan import Occupancy, Plan, Segment, weights_of
from .techniques import ALL, Techniques

FEW = 48
"""Segments at most for which costs do not know banks: finer stripes move more, and leave less time in which
weights of a later group could come. ResNet-8, of eleven, takes 6 % fewer cycles without."""
WORSE = 1.05
"""An order of the operations that costs so many times the other one by rough costs is not scheduled: with the exact
cycles of runs YOLOv5n costs 1 % more than by those, SqueezeNet 0.5 %."""
FAR = 2
"""Times its rough cycles that a candidate's runs take, from which on they are counted as they are with less effort,
too: of an image whose stripes do not lie packed in their bank, say, three times as many."""
ROUNDS = 200
"""Times that groups are chosen again at most; then the cheapest of those that were tried are taken."""


Cycles = Callable[[Segment], int | None]
"""Of a segment's run; None: not known."""


def make_plan(
    graph: Graph, config: HwConfig, cycles: Cycles, techniques: Techniques = ALL, effort: Effort = THOROUGH
) -> Plan:
    """The checked plan of a graph for a configuration with external memory.

    `cycles` has those of a segment's run, or raises `DoesNotFitError` or `UnsupportedError` if it cannot be scheduled
    (`onnxhw.segments.PartCycles`; for a forecast of less `effort` `ScaledCycles`). `UsageError` E2190: the
    configuration has no external memory. `DoesNotFitError` E5190: it is too small. `NoPartError` E5191: of an operation
    there is no part that fits the chip.
    """
    if config.external is None:
        raise UsageError("E2190", f"{config.name} has no external memory", hint="a preset with +sdram")
    if not techniques.depth_first:
        effort = replace(effort, longest=1)
    try:
        segments = _either(graph, config, cycles, effort)
    except NoPartError:
        if not effort.packed:
            raise
        segments = _either(graph, config, cycles, replace(effort, packed=False))
    linked = chained(segments, config)
    found = Plan(linked, assign(graph, linked, config, config.external))
    check_plan(graph, found, config)
    return found


def _either(graph: Graph, config: HwConfig, cycles: Cycles, effort: Effort) -> list[Segment]:
    """The segments that cost least with costs that know banks, or if these are few, with others."""
    segments = _cheapest(graph, config, cycles, effort, True)
    return segments if len(segments) > FEW else _cheapest(graph, config, cycles, effort, False)


def _cheapest(graph: Graph, config: HwConfig, cycles: Cycles, effort: Effort, banks: bool) -> list[Segment]:
    """The segments of the order of operations that costs less; `banks`: costs know that transfers wait for banks that
    runs use; otherwise they go beside runs wherever there are words for them."""
    known: dict[object, list[Candidate]] = {}
    orders = [graph] if (order := depth_first(graph)) == graph.ops else [graph, replace(graph, ops=order)]
    plans: list[tuple[float, list[Segment]]] = []
    least = inf
    for each in orders:
        search = _Search(each, config, effort, known, banks)
        try:
            rough, _ = search.choice.best({}, {})
            if rough > WORSE * least:
                continue
            least = rough
            plans.append(_accepted(search, cycles))
        except NoPartError:
            if each is orders[-1] and not plans:
                raise
    return min(plans, key=lambda each: each[0])[1]


def _accepted(search: "_Search", cycles: Cycles) -> tuple[float, list[Segment]]:
    """The cost and the segments of the cheapest candidates of which nothing is refused, and whose runs are counted as
    they are if groups are chosen again; `NoPartError` E5191."""
    again, config = search.groups.effort.again, search.groups.config
    refused: dict[Candidate, str] = {}
    accepted: dict[Candidate, list[Segment]] = {}
    exact: dict[Candidate, Candidate] = {}
    """Of accepted candidates those with the costs of their runs."""
    for _ in range(ROUNDS):
        _, chosen = search.choice.best(refused, exact)
        new = [candidate for candidate in chosen if candidate not in accepted]
        if not new:
            break
        for candidate in new:
            made = search.groups.segments(candidate)
            # `ScaledCycles` schedules those of most work.
            ordered = made if again else sorted(made or (), key=lambda each: -run_cycles(each.graph, config))
            if why := _refusal(search.groups, ordered, cycles):
                refused[candidate] = why
            elif made:
                accepted[candidate] = made
                runs = [cycles(segment) for segment in made]
                known = [run for run in runs if run is not None]
                if not again and sum(known) < FAR * sum(run_cycles(segment.graph, config) for segment in made):
                    continue
                exact[candidate] = search.counted(candidate, sum(known)) if len(known) == len(runs) else candidate
    others = [each for mine in search.by_first.values() for each in mine if each not in accepted]
    cost, chosen = search.choice.best({each: refused.get(each, "not tried") for each in others}, exact)
    return cost, [part for each in chosen for part in accepted[each]]


def _refusal(groups: Groups, segments: Sequence[Segment] | None, cycles: Cycles) -> str:
    """Why a candidate cannot be; "" if it can."""
    config = groups.config
    try:
        for segment in segments or ():
            weights, used = sum(weights_of(segment, config).values()), Occupancy(segment.graph, config)
            if why := misfit(groups.graph, segment, config, weights, used):
                return why
            if groups.effort.packed and too_large(segment.graph, config, segment.origins):
                return "its box of an input would not lie packed, as smaller ones do"
            cycles(segment)
    except (DoesNotFitError, UnsupportedError) as error:
        return error.what
    return "" if segments else "it cannot be cut so"


class _Search:
    """Candidates of a graph on a configuration; `known`: those of groups that another order of the operations has
    behind the same one, too; `banks`: costs know of them."""

    def __init__(
        self, graph: Graph, config: HwConfig, effort: Effort, known: dict[object, list[Candidate]], banks: bool = True
    ) -> None:
        self.groups = Groups(graph, config, effort)
        self.costs = GroupCosts(self.groups, banks)
        self.by_first: dict[int, list[Candidate]] = {}
        stuck: set[int] = set()
        for end in range(1, len(graph.ops) + 1):
            for first in reversed(range(max(0, end - effort.longest), end)):
                if not self.groups.have_tables(first, end):
                    break
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
        self.choice = Choice(graph.ops, self.by_first)

    def counted(self, candidate: Candidate, runs: int) -> Candidate:
        """A candidate with its costs if its segments run for so many cycles."""
        each = self.costs.of(candidate, runs)
        same = candidate.by_stripe, candidate.gathered
        return next(found for found, _ in each if (found.by_stripe, found.gathered) == same)

    def _of(self, first: int, end: int) -> Iterator[Candidate]:
        """Everything at once if that fits; else of each number of blocks and of columns, in each order, gathered or
        not, the fewest stripes of rows that fit, and the fewest with which transfers and runs can go on side by side.
        Numbers of blocks that are none of `Effort.cuts` are tried only if no fewer fit."""
        for candidate, _ in self.costs.of(Candidate(first, end, UNCUT)):
            yield candidate
        fits = False
        for finer in self.groups.cuts(first, end):
            if fits and finer and finer[0][0] not in self.groups.effort.cuts:
                break
            found: dict[tuple[bool, bool], bool] = {}
            """By order, and whether it is gathered, whether transfers and runs of what was found go on side by side."""
            for cuts in finer:
                tried = Candidate(first, end, cuts)
                for candidate, beside in self.costs.of(tried, found=found):
                    way = candidate.by_stripe, candidate.gathered
                    yield candidate
                    fits = True
                    found[way] = beside
                if not found or not all(found.values()):
                    continue
                if any(gathered for _, gathered in found) or not self.groups.may_gather(tried):
                    break
