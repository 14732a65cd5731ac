"""`place_segments`: every segment's schedule beside what its neighbours leave in activation memory, so that moves can
go on while segments run.

A load waits until nobody touches its words and the vector unit writes into none of its banks; a store keeps others from
reading its banks. So of several ways to place a segment's tensors (`placement_ways`) that one is taken which holds up
least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.states import State, interface
from ..program.layout import Place
from ..sched import check_reaching_definitions
from .estimate import kind
from .gathering import gathered_inputs, not_gathered, on_chip
from .hazards import SegmentUse
from .part_entries import part_entries, witnesses
from .part_schedule import LIKE, PartSchedules, ScheduledPart, code_key
from .placed_segment import PlacedPart, PlacedSegment
from .placement_cost import placement_cost
from .placement_ways import ActivationState, PlacementWays, Way
from .plan import Plan, Region, act_words, packed_words
from .regions import words_of

ENOUGH = 0.01
"""A way that holds up less than this share of the segment's run is taken without a look at the others."""


def place_segments(
    graph: Graph, plan: Plan, config: HwConfig, schedules: PartSchedules | None = None, states: Sequence[State] = ()
) -> list[PlacedSegment]:
    """All segments in order; `schedules`: with what is known of their kinds. A tensor of several segments beside which
    one has no place does not stay on chip. `states` do not lie packed: their words are written as they are made.

    `DoesNotFitError` and `UnsupportedError` as of the scheduler, for a segment alone.
    """
    schedules = schedules or PartSchedules(config)
    while True:
        placing, placed = _Placing(graph, plan, config, schedules, states), list[PlacedSegment]()
        try:
            while len(placed) < len(plan.segments):
                placed.append(placing.placed(len(placed)))
            return placed
        except (DoesNotFitError, UnsupportedError):
            segments = plan.segments
            wholes = {*gathered_inputs(segments, len(placed)), segments[len(placed)].gathered} - {None}
            if not wholes:
                raise
            for whole in wholes:
                assert whole is not None
                segments = not_gathered(segments, whole)
            plan = replace(plan, segments=segments)


class _Placing:
    def __init__(
        self, graph: Graph, plan: Plan, config: HwConfig, schedules: PartSchedules, states: Sequence[State]
    ) -> None:
        self.plan, self.config = plan, config
        self.inputs = {port.tensor for port in interface(graph, states).inputs}
        self.outputs = {port.tensor for port in graph.outputs}
        self.schedules = schedules
        self.there = ActivationState({segment.gathered for segment in plan.segments if segment.gathered})
        self.ways = PlacementWays(plan, config, self.inputs, self.there)
        self.state: object = None
        """Kind and places of the segment before."""
        self.chosen: dict[object, int] = {}
        """Which way was taken, by everything that it depends on."""
        self.uses: dict[object, SegmentUse] = {}

    def placed(self, n: int) -> PlacedSegment:
        """The segment `n`, behind those before it."""
        segment, ways = self.plan.segments[n], list(self.ways.of(n))
        mine = kind(segment.graph)
        stores = tuple(self._numbers_stored(n, way) for way in ways)
        key = mine, self.state, tuple(way.key for way in ways), stores, self._ahead(n)
        known = self.chosen.get(key)
        way, found = self._best(n, ways if known is None else [ways[known]])
        self.chosen[key] = ways.index(way)
        places, written = found.part.places, found.use.written > 0
        elsewhere = {name: place.base for name, place in places.items() if name not in way.occupied.planes}
        self.state = mine, tuple(sorted(elsewhere.items()))
        named = [(region, port.tensor) for port, region in zip(segment.graph.inputs, segment.inputs, strict=True)]
        intact = {
            region: places[name] for region, name in named
            if name not in found.part.storage and not written[words_of(places[name], self.config)].any()
        }  # fmt: skip
        pairs = zip(segment.graph.outputs, segment.outputs, strict=True)
        results = {region: places[port.tensor] for port, region in pairs}
        before = self.there.before.results if self.there.before else {}
        stored = tuple((region, before[region]) for region in self._stored(n, way.fixed))
        loads = tuple(each for each in named if each[0] not in way.fixed)
        self.there.chip = {**intact, **results}
        if segment.gathered and way.whole:
            self.there.wholes[segment.gathered] = way.whole
            if segment.gathered in on_chip(self.plan.segments[: n + 1]):
                self.there.chip[segment.gathered] = way.whole
        self.there.before = PlacedSegment(found.part, found.use, segment, loads, results, stored)
        return self.there.before

    def _best(self, n: int, ways: Sequence[Way]) -> tuple[Way, PlacedPart]:
        """The way that holds up least, with the schedule."""
        segment = self.plan.segments[n]
        names = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        results = self.there.before.results if self.there.before else {}
        best: tuple[float, Way, PlacedPart] | None = None
        error: DoesNotFitError | UnsupportedError | None = None
        for way in ways:
            if best is not None and len(way.packed) < len(ways[0].packed):
                break
            try:
                part = self.schedules(segment.graph, way.occupied, way.packed)
            except (DoesNotFitError, UnsupportedError) as refused:
                error = refused
                continue
            if any(part.places[names[region]] != place for region, place in way.fixed.items()):
                continue
            found = PlacedPart(part, self._use(segment.graph, part))
            if len(ways) == 1:
                return way, found
            loaded = [name for region, name in names.items() if region not in way.fixed]
            loads = [words_of(part.places[name], self.config) for name in loaded]
            stores = [words_of(results[region], self.config) for region in self._stored(n, way.fixed)]
            cost = placement_cost(self.there.before, found, loads, stores, self._ahead(n), self.config)
            if best is None or cost < best[0]:
                best = cost, way, found
            cycles, alone = part.candidate.cycles, self.schedules.alone(segment.graph, way.packed).cycles
            if cost <= (1 + ENOUGH) * cycles and cycles <= LIKE * alone:
                break
        if best is None:
            raise error or DoesNotFitError("E5101", "a segment's inputs have no place")
        return best[1:]

    def _use(self, graph: Graph, part: ScheduledPart) -> SegmentUse:
        """What a schedule touches, once it is proved that each word that it reads holds what is meant (E1213); segments
        of a kind have equal code in the same places."""
        key = kind(graph), code_key(part.candidate.code)
        if key not in self.uses:
            check_reaching_definitions(part.lowered, part.candidate, part_entries(part))
            self.uses[key] = SegmentUse(part.candidate.code, self.config, witnesses(part, self.config))
        return self.uses[key]

    def _stored(self, n: int, kept: Mapping[Region, Place]) -> tuple[Region, ...]:
        """The results of the segment before `n` that are outputs, or that somebody reads who does not find them on
        chip, if `n` finds those that are kept."""
        found = []
        for region in self.there.before.results if self.there.before else ():
            later = self.plan.segments[n + 1 :] if region in kept else self.plan.segments[n:]
            read = (mine for each in later for mine in each.inputs
                    if mine.tensor == region.tensor and not self.there.finds(each, mine))  # fmt: skip
            if region.tensor in self.outputs or any(mine.box.meets(region.box) for mine in read):
                found.append(region)
        return tuple(found)

    def _numbers_stored(self, n: int, way: Way) -> tuple[int, ...]:
        """Which results of the segment before are stored."""
        results = list(self.there.before.results) if self.there.before else []
        return tuple(results.index(region) for region in self._stored(n, way.fixed))

    def _ahead(self, n: int) -> int:
        """Words that the segment behind `n` loads, about, if `n` leaves all its tensors there."""
        if n + 1 == len(self.plan.segments):
            return 0
        segment, after = self.plan.segments[n : n + 2]
        there = {*segment.inputs, *segment.outputs, *(each for each in after.inputs if self.there.finds(after, each))}
        ports = zip(after.inputs, after.graph.inputs, strict=True)
        return sum(self._words(after.graph, port.tensor, region) for region, port in ports if region not in there)

    def _words(self, graph: Graph, name: str, region: Region) -> int:
        x = graph.tensors[name]
        packed = [packed_words(x, op, self.config) for op in graph.ops if name in op.inputs]
        return max((each or act_words(x.shape, self.config) for each in packed if region.tensor in self.inputs),
                   default=act_words(x.shape, self.config))  # fmt: skip
