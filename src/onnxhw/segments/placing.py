"""`place_segments`: every segment's schedule beside what its neighbours leave in activation memory, so that moves can
go on while segments run.

A load waits until nobody touches its words and the vector unit writes into none of its banks; a store keeps others from
reading its banks. So of several ways to place a segment's tensors that one is taken which holds up least: inputs in one
half of the banks and everything else in the other, either way round; in one bank and in the others; anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..ir.states import State, interface
from ..program.layout import Place
from ..sched import Occupied, check_reaching_definitions
from .estimate import kind
from .hazards import USERS, SegmentUse
from .part_entries import part_entries, witnesses
from .part_schedule import PartSchedules, ScheduledPart, code_key
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
    """A way to place a segment: beside what, inputs that are on chip, and tensors that may lie packed."""

    occupied: Occupied
    fixed: Mapping[Region, Place]
    packed: frozenset[str]

    @property
    def key(self) -> object:
        """Equal for equal ways of segments of a kind."""
        one = self.occupied
        ranges = tuple(sorted(one.ranges.items()))
        return tuple(sorted(one.fixed.items())), one.kept, one.reserved, one.busy, ranges, one.from_end


def place_segments(
    graph: Graph, plan: Plan, config: HwConfig, schedules: PartSchedules | None = None, states: Sequence[State] = ()
) -> list[PlacedSegment]:
    """All segments in order; `schedules`: with what is known of their kinds. `states` do not lie packed: their words
    are written as they are made.

    `DoesNotFitError` and `UnsupportedError` as of the scheduler, for a segment alone.
    """
    placing = _Placing(graph, plan, config, schedules or PartSchedules(config), states)
    return [placing.placed(n) for n in range(len(plan.segments))]


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
        key = mine, self.state, tuple((way.key, way.packed) for way in ways), stores, self._ahead(n)
        known = self.chosen.get(key)
        way, found = self._best(n, ways if known is None else [ways[known]])
        self.chosen[key] = ways.index(way)
        places, written = found.part.places, found.use.written > 0
        self.state = mine, tuple(sorted((name, place.base) for name, place in places.items()))
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
            if cost <= (1 + ENOUGH) * part.candidate.cycles:
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
            read = (mine for each in later for mine in each.inputs if mine.tensor == region.tensor)
            if region.tensor in self.outputs or any(mine.box.meets(region.box) for mine in read):
                found.append(region)
        return tuple(found)

    def _numbers_stored(self, n: int, way: Way) -> tuple[int, ...]:
        """Which results of the segment before are stored."""
        results = list(self.before.results) if self.before else []
        return tuple(results.index(region) for region in self._stored(n, way.fixed))

    def _ahead(self, n: int) -> int:
        """Words that the segment behind `n` loads, about, if `n` leaves all its tensors there."""
        if n + 1 == len(self.plan.segments):
            return 0
        segment, after = self.plan.segments[n : n + 2]
        there = {*segment.inputs, *segment.outputs}
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
        segment = self.plan.segments[n]
        ports = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        after = self.plan.segments[n + 1].inputs if n + 1 < len(self.plan.segments) else ()
        packed = frozenset(name for region, name in ports.items() if region.tensor in self.inputs)
        there = {region: self.chip[region] for region in ports if region in self.chip}
        kept = frozenset(name for region, name in ports.items() if region in after and name not in packed)
        results = self.before.results if self.before else {}
        reserved = tuple((place.base, place.blocks(self.config.word) * place.plane)
                         for region, place in results.items() if region not in ports)  # fmt: skip
        fixed = {ports[region]: place.base for region, place in there.items()}
        loaded = [name for region, name in ports.items() if region not in there]
        busy = self._busy() if loaded else ()
        # At either end in turn: so no gap that is too small for the next ones is left between them.
        from_end = frozenset(loaded) if n % 2 else frozenset[str]()
        for mine in (busy, ()) if busy else ((),):
            for ranges in self._ranges(segment.graph, loaded, fixed):
                yield Way(Occupied(fixed, kept, reserved, mine, ranges, from_end), there, packed)
        yield Way(Occupied(fixed, kept), there, packed)
        yield Way(Occupied(fixed), there, packed)
        if fixed:
            yield Way(Occupied(), {}, packed)

    def _busy(self) -> tuple[tuple[int, int], ...]:
        """First words and numbers of words that the segment before touches."""
        if self.before is None:
            return ()
        touched = np.any([self.before.use.touched[unit] > 0 for unit in USERS], axis=0).astype(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], touched, [0]]))).tolist()
        return tuple((first, end - first) for first, end in zip(edges[::2], edges[1::2], strict=True))

    def _ranges(
        self, graph: Graph, loaded: Sequence[str], fixed: Mapping[str, int]
    ) -> Iterator[dict[str, tuple[int, int]]]:
        """Words in which the loaded tensors are to lie, and in which those that are made."""
        depth, end = self.config.act_depth, self.config.act_words
        made = [name for name in graph.tensors if name not in loaded and name not in fixed]
        half = self.config.act_banks // 2 * depth
        low, high = (0, half), (half, end)
        alone = ((0, depth), (depth, end)), ((end - depth, end), (0, end - depth))
        for ours, others in ((low, high), (high, low), *alone):
            yield dict.fromkeys(made, others) | dict.fromkeys(loaded, ours)
        yield {}
