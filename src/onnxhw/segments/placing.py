"""`place_segments`: every segment's schedule beside what its neighbours leave in activation memory, so that moves can
go on while segments run.

A load waits until nobody touches its words and the vector unit writes into none of its banks; a store keeps others from
reading its banks. So of several ways to place a segment's tensors that one is taken which holds up least: inputs in one
half of the banks and everything else in the other, either way round; in one bank and in the others; anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.states import State, interface
from ..program.layout import Place
from ..sched import Occupied, check_reaching_definitions
from .estimate import kind
from .gathering import gathered_inputs, not_gathered, on_chip, place_in
from .hazards import USERS, SegmentUse
from .part_entries import part_entries, witnesses
from .part_schedule import LIKE, PartSchedules, ScheduledPart, code_key
from .placement_cost import PlacedPart, placement_cost
from .plan import Plan, Region, Segment, act_words, packed_words
from .regions import words_of

ENOUGH = 0.01
"""A way that holds up less than this share of the segment's run is taken without a look at the others."""


@dataclass(frozen=True, eq=False)
class PlacedSegment(PlacedPart):
    """A segment's schedule.

    `loads`: inputs that are not on chip from the segment before, with their tensors' names. `results`: what it leaves,
    and where. `stored`: of the results of the segment before those that go to external memory.
    """

    segment: Segment
    loads: tuple[tuple[Region, str], ...]
    results: Mapping[Region, Place]
    stored: tuple[tuple[Region, Place], ...]


@dataclass(frozen=True, eq=False)
class Way:
    """A way to place a segment: beside what, inputs that are on chip, tensors that may lie packed, with how many rows
    of the model's above them, and where the tensor lies of which the segment makes a part."""

    occupied: Occupied
    fixed: Mapping[Region, Place]
    packed: Mapping[str, int]
    whole: Place | None = None

    @property
    def key(self) -> object:
        """Equal for equal ways of segments of a kind, whichever part of a tensor they make."""
        one = self.occupied
        fixed = tuple(sorted((name, base) for name, base in one.fixed.items() if name not in one.planes))
        ranges, packed = tuple(sorted(one.ranges.items())), frozenset(self.packed)
        return fixed, one.kept, one.reserved, one.busy, ranges, one.from_end, packed, self.whole


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
        self.chip: dict[Region, Place] = {}
        """What is in activation memory when the next segment begins, and where."""
        self.gathered = {segment.gathered for segment in plan.segments if segment.gathered}
        self.wholes: dict[Region, Place] = {}
        """Where those of them lie that are begun."""
        self.before: PlacedSegment | None = None
        self.state: object = None
        """Kind and places of the segment before."""
        self.chosen: dict[object, int] = {}
        """Which way was taken, by everything that it depends on."""
        self.uses: dict[object, SegmentUse] = {}

    def placed(self, n: int) -> PlacedSegment:
        """The segment `n`, behind those before it."""
        segment, ways = self.plan.segments[n], list(self._ways(n))
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
        before = self.before.results if self.before else {}
        stored = tuple((region, before[region]) for region in self._stored(n, way.fixed))
        loads = tuple(each for each in named if each[0] not in way.fixed)
        self.chip = {**intact, **results}
        if segment.gathered and way.whole:
            self.wholes[segment.gathered] = way.whole
            if segment.gathered in on_chip(self.plan.segments[: n + 1]):
                self.chip[segment.gathered] = way.whole
        self.before = PlacedSegment(found.part, found.use, segment, loads, results, stored)
        return self.before

    def _best(self, n: int, ways: Sequence[Way]) -> tuple[Way, PlacedPart]:
        """The way that holds up least, with the schedule."""
        segment = self.plan.segments[n]
        names = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        results = self.before.results if self.before else {}
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
            cost = placement_cost(self.before, found, loads, stores, self._ahead(n), self.config)
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
        for region in self.before.results if self.before else ():
            later = self.plan.segments[n + 1 :] if region in kept else self.plan.segments[n:]
            read = (mine for each in later for mine in each.inputs
                    if mine.tensor == region.tensor and not self._finds(each, mine))  # fmt: skip
            if region.tensor in self.outputs or any(mine.box.meets(region.box) for mine in read):
                found.append(region)
        return tuple(found)

    def _finds(self, segment: Segment, region: Region) -> bool:
        """Whether an input of a segment is a tensor that others have left on chip as a whole."""
        return region in self.gathered and region not in segment.loads

    def _numbers_stored(self, n: int, way: Way) -> tuple[int, ...]:
        """Which results of the segment before are stored."""
        results = list(self.before.results) if self.before else []
        return tuple(results.index(region) for region in self._stored(n, way.fixed))

    def _ahead(self, n: int) -> int:
        """Words that the segment behind `n` loads, about, if `n` leaves all its tensors there."""
        if n + 1 == len(self.plan.segments):
            return 0
        segment, after = self.plan.segments[n : n + 2]
        there = {*segment.inputs, *segment.outputs, *(each for each in after.inputs if self._finds(after, each))}
        ports = zip(after.inputs, after.graph.inputs, strict=True)
        return sum(self._words(after.graph, port.tensor, region) for region, port in ports if region not in there)

    def _words(self, graph: Graph, name: str, region: Region) -> int:
        x = graph.tensors[name]
        packed = [packed_words(x, op, self.config) for op in graph.ops if name in op.inputs]
        return max((each or act_words(x.shape, self.config) for each in packed if region.tensor in self.inputs),
                   default=act_words(x.shape, self.config))  # fmt: skip

    # -- ways to place a segment ---------------------------------------------------------------

    def _ways(self, n: int) -> Iterator[Way]:
        """From those that hold up least to those that find room most likely."""
        whole = self.plan.segments[n].gathered
        for place in self._wholes(n, whole) if whole else (None,):
            yield from self._ways_beside(n, place)

    def _wholes(self, n: int, whole: Region) -> list[Place]:
        """Where a tensor may lie of which the segment makes a part: where it was begun, or at either end of the memory;
        the other one is for a tensor that is read meanwhile. Packed inputs must lie near the begin."""
        if whole in self.wholes:
            return [self.wholes[whole]]
        shape, words = whole.box.shape, act_words(whole.box.shape, self.config)
        here = [self.chip[region] for region in self.plan.segments[n].inputs if region in self.chip]
        taken = {int(word) for place in here for word in words_of(place, self.config)}
        bases = [base for base in (self.config.act_words - words, 0) if taken.isdisjoint(range(base, base + words))]
        return [Place(base, shape[2] * shape[3], shape[3], shape) for base in bases]

    def _ways_beside(self, n: int, whole: Place | None) -> Iterator[Way]:
        segment = self.plan.segments[n]
        ports = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        after = self.plan.segments[n + 1] if n + 1 < len(self.plan.segments) else None
        packed = {name: region.box.rows[0] for region, name in ports.items() if region.tensor in self.inputs}
        there = {region: self.chip[region] for region in ports if region in self.chip}
        # Nobody stores what all find on chip.
        needed = {region: there[region] for region in there if self._finds(segment, region)}
        stays = frozenset(ports[region] for region in needed if after and region in after.inputs)
        kept = frozenset(name for region, name in ports.items()
                         if after and region in after.inputs and name not in packed)  # fmt: skip
        results = self.before.results if self.before and not self.before.segment.gathered else {}
        reserved = tuple((place.base, place.blocks(self.config.word) * place.plane)
                         for region, place in results.items() if region not in ports)  # fmt: skip
        made, planes, own = dict[str, int](), dict[str, int](), tuple[tuple[int, int], ...]()
        if whole:
            (port,), (region,) = segment.graph.outputs, segment.outputs
            place = place_in(whole, region.box, self.config.word)
            made, planes = {port.tensor: place.base}, {port.tensor: place.plane}
            own = ((whole.base, act_words(whole.shape, self.config)),)
        fixed = {ports[region]: place.base for region, place in there.items()} | made
        loaded = [name for region, name in ports.items() if region not in there]
        busy = self._busy() if loaded else ()
        # At either end in turn: so no gap that is too small for the next ones is left between them.
        from_end = frozenset(loaded) if n % 2 else frozenset[str]()
        free = self._between([*own, *((each.base, act_words(each.shape, self.config)) for each in needed.values())])
        for mine in (busy, ()) if busy else ((),):
            for ranges in self._ranges(segment.graph, loaded, fixed, free):
                beside = Occupied(fixed, kept, (*reserved, *own), mine, ranges, from_end, planes)
                yield Way(beside, there, packed, whole)
        yield Way(Occupied(fixed, kept, own, planes=planes), there, packed, whole)
        yield Way(Occupied(fixed, stays, own, planes=planes), there, packed, whole)
        if there:
            fixed = {ports[region]: place.base for region, place in needed.items()} | made
            yield Way(Occupied(fixed, stays, own, planes=planes), needed, packed, whole)
        if packed:  # near the begin there may be no place for them
            yield Way(Occupied(fixed, stays, own, planes=planes), needed, {}, whole)

    def _between(self, taken: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """First and end of the words between those that are taken at either end of the memory."""
        low, high = 0, self.config.act_words
        for first, words in taken:
            low, high = (max(low, first + words), high) if first == 0 else (low, min(high, first))
        return low, high

    def _busy(self) -> tuple[tuple[int, int], ...]:
        """First words and numbers of words that the segment before touches."""
        if self.before is None:
            return ()
        touched = np.any([self.before.use.touched[unit] > 0 for unit in USERS], axis=0).astype(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], touched, [0]]))).tolist()
        return tuple((first, end - first) for first, end in zip(edges[::2], edges[1::2], strict=True))

    def _ranges(
        self, graph: Graph, loaded: Sequence[str], fixed: Mapping[str, int], free: tuple[int, int]
    ) -> Iterator[dict[str, tuple[int, int]]]:
        """Words in which the loaded tensors are to lie, and in which those that are made, out of those that are free:
        the banks in halves first, then one of them alone."""
        depth, (first, end) = self.config.act_depth, free
        made = [name for name in graph.tensors if name not in loaded and name not in fixed]
        half = self.config.act_banks // 2 * depth
        for edge, ways in ((half, (0, 1)), (depth, (0,)), (self.config.act_words - depth, (1,))):
            if first < edge < end:
                for way in ways:
                    parts = (first, edge), (edge, end)
                    yield dict.fromkeys(made, parts[1 - way]) | dict.fromkeys(loaded, parts[way])
        yield {}
