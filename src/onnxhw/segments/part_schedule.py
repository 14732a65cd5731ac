"""`PartSchedules`: segments scheduled where others have left room, those of a kind by one search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b

import numpy as np

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..isa.instructions import Code, Load, Ordered
from ..isa.microcode import length
from ..isa.timeline import Timeline, timeline
from ..isa.units import Unit
from ..passes.packed_inputs import Origin, packed_alike, packed_inputs
from ..program.layout import Place
from ..program.storage import PackedInput
from ..program.variant import Variant
from ..sched import InitialSchedule, Occupied, ScheduledCandidate, build, initial_schedule, same_operand
from ..sched.alloc import ORDERS
from ..sched.lower import LoweredGraph, lower
from ..sched.search_points import SearchPoint
from .estimate import kind
from .weight_stream import may_stream, weight_pieces

LIKE = 1.015
"""Beside other words a search point of a segment's kind is taken without another search, if it takes at most so many
times the cycles that it takes in an empty memory. Operands of an Add that cannot lie as they would there cost 1 %."""
SEARCHES = 16
"""Searches of tensors' places in a part of the memory at most, a third of a second each: five seconds of a program's
linking. ResNet-8 made 13 and took 380,796 cycles on `ulx3s-85f+sdram`, as with 8; without any 392,282."""

def content(graph: Graph) -> object:
    """Equal for graphs that are equal, with equal constants."""
    numbers = tuple((x.scale, x.zero_point) for x in graph.tensors.values())
    ops = tuple(tuple(_value(getattr(op, each.name)) for each in fields(op)) for op in graph.ops)
    return kind(graph), numbers, ops


def _value(value: object) -> object:
    return (str(value.dtype), blake2b(value.tobytes()).digest()) if isinstance(value, np.ndarray) else value


CodeKey = tuple[tuple[Ordered, ...], ...]


def code_key(code: Code) -> CodeKey:
    """Equal for equal code."""
    return tuple(tuple(code.get(unit, ())) for unit in Unit)


@dataclass(frozen=True)
class ScheduledPart:
    """A segment's program: `storage` tells how an input lies in memory that is not there as it is."""

    lowered: LoweredGraph
    candidate: ScheduledCandidate
    storage: dict[str, PackedInput]

    @property
    def streams(self) -> bool:
        """Whether its weights are more than their memory holds, and come in pieces."""
        return self.lowered.images.weight_words > self.lowered.config.weight_depth

    @property
    def places(self) -> dict[str, Place]:
        """Where its tensors lie."""
        return self.candidate.places


@dataclass(frozen=True)
class PointAlone:
    """Of a segment's kind in an empty memory the number of the way, and the search point and cycles of its program."""

    way: int
    point: SearchPoint
    cycles: int


@dataclass(frozen=True)
class Ways:
    """The ways to schedule a graph of this `content`, as it is last, and by number those of them that were lowered."""

    content: object
    variants: list[Variant]
    lowered: dict[int, LoweredGraph]

    def like(self, number: int) -> list[Variant]:
        """Those with packed inputs if the one of that number has some, for an input that is sent in two forms is sent
        twice; otherwise all."""
        return [each for each in self.variants if each.storage] if self.variants[number].storage else self.variants


class PartSchedules:
    """Schedules segments on a configuration; what the search has found for one is taken for all of its kind."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self._known: dict[object, tuple[int, SearchPoint] | DoesNotFitError | UnsupportedError] = {}
        self._alike: dict[object, tuple[int, SearchPoint]] = {}
        """Of a kind beside the same, whichever part of a larger tensor a segment makes."""
        self._points: dict[object, PointAlone] = {}
        self._searches = 0
        self._times: dict[CodeKey, Timeline] = {}
        self._lowered: dict[object, Ways] = {}
        self._parts: dict[object, ScheduledPart] = {}
        """Of equal segments, as stripes with the same weights are, what was scheduled again in the same way."""

    def __call__(self, graph: Graph, occupied: Occupied, packed: Mapping[str, Origin]) -> ScheduledPart:
        """The program of a segment's graph; inputs named in `packed` lie packed if that can be in an empty memory, and
        lie so in the model's tensors.

        `DoesNotFitError` or `UnsupportedError` if there is no room, or an operation cannot be mapped.
        """
        fixed = {name: base for name, base in occupied.fixed.items() if name not in occupied.planes}
        where = *(tuple(sorted(each.items())) for each in (fixed, occupied.ranges, occupied.planes)), occupied.kept
        alike = kind(graph), where, occupied.reserved, occupied.busy, occupied.from_end, packed_alike(graph, packed)
        key = alike, tuple(sorted(occupied.fixed.items())), tuple(sorted(packed.items()))
        known = self._known.get(key) or self._alike.get(alike)
        if isinstance(known, (DoesNotFitError, UnsupportedError)):
            raise known
        ways = self._ways(graph, packed)
        if known is not None:
            number, point = known
            equal = ways.content, key
            if equal in self._parts:
                return self._parts[equal]
            if number < len(ways.variants) and (found := self._rescheduled(ways, number, occupied, [point], 0)):
                self._parts[equal] = found
                return found
        found_alone = self.alone(graph, packed)
        number, most = found_alone.way, LIKE * found_alone.cycles
        part = self._rescheduled(ways, number, occupied, _placements(found_alone.point), round(most))
        try:
            if part is None or part.candidate.cycles > most:
                number, part = self._elsewhere(ways.like(found_alone.way), occupied, number, part)
        except (DoesNotFitError, UnsupportedError) as error:
            self._known[key] = error
            raise
        self._known[key] = self._alike[alike] = number, part.candidate.point
        return part

    def _elsewhere(
        self, ways: Sequence[Variant], occupied: Occupied, number: int, part: ScheduledPart | None
    ) -> tuple[int, ScheduledPart]:
        """What to take if the search point of the segment's kind is slower beside other words, or has no room: another
        search. Where tensors are to lie in a part of the memory, which is one way of several, it is for the first ones
        only."""
        if not occupied.ranges and not occupied.busy:
            return self._searched(ways, occupied)
        if part is None and self._searches < SEARCHES:
            self._searches += 1
            return self._searched(ways, occupied)
        if part is None:
            raise DoesNotFitError("E5101", "no room in this part of the memory")
        return number, part

    def alone(self, graph: Graph, packed: Mapping[str, Origin]) -> PointAlone:
        """What the search finds for a segment's kind in an empty memory; errors as of the scheduler."""
        ways = self._ways(graph, packed).variants
        key = kind(graph), packed_alike(graph, packed)
        if key not in self._points:
            number, part = self._searched(ways, Occupied())
            self._points[key] = PointAlone(number, part.candidate.point, part.candidate.cycles)
        return self._points[key]

    def _searched(self, ways: Sequence[Variant], occupied: Occupied) -> tuple[int, ScheduledPart]:
        """The fastest of some ways, and which it is; as it is only if nothing else can be."""
        best: tuple[int, ScheduledPart] | None = None
        error: DoesNotFitError | UnsupportedError | None = None
        for number, way in enumerate(ways):
            if best is not None and not way.storage:
                break
            try:
                streams = may_stream(way.graph, self.config)
                begun = initial_schedule(way.graph, self.config, occupied=occupied, streams=streams, moved=True)
            except (DoesNotFitError, UnsupportedError) as refused:
                error = refused
                continue
            if unit := _too_long(begun, self.config):
                error = DoesNotFitError("E5104", f"{unit} microcode is too long for its ring beside another segment's")
                continue
            if best is None or begun.candidate.cycles < best[1].candidate.cycles:
                best = number, ScheduledPart(begun.lowered, begun.candidate, _formats(way))
        if best is None:
            assert error is not None
            raise error
        return best

    def _ways(self, graph: Graph, packed: Mapping[str, Origin]) -> "Ways":
        """The graph with packed inputs, if only those are packed that may be, and as it is."""
        key = content(graph), tuple(sorted(packed.items()))
        if key not in self._lowered:
            inputs = packed_inputs(graph, self.config, packed) if packed else []
            variants = [*(each for each in inputs if set(each.storage) <= set(packed)), Variant(graph)]
            self._lowered[key] = Ways(key, variants, {})
        return self._lowered[key]

    def _rescheduled(
        self, ways: "Ways", number: int, occupied: Occupied, points: Sequence[SearchPoint], enough: int
    ) -> ScheduledPart | None:
        """The fastest program of search points that were found for another segment of the kind, or the first that takes
        so few cycles; of the way `number`."""
        way, lowerings = ways.variants[number], ways.lowered
        graph = lowerings[number].graph if number in lowerings else same_operand(way.graph)
        ops, theirs = {op.output: op for op in graph.ops}, {op.name: op.output for op in points[0].graph.ops}
        if set(theirs.values()) != set(ops):
            return None
        if number not in lowerings:
            lowerings[number] = lower(graph, self.config)
        lowered = lowerings[number].beside(occupied)
        ordered = replace(graph, ops=[ops[output] for output in theirs.values()])
        best: ScheduledCandidate | None = None
        for point in points:
            tilings = {ops[theirs[name]].name: tiling for name, tiling in point.tilings.items()}
            found = build(lowered, replace(point, graph=ordered, tilings=tilings), times=self._known_times)
            if found and (best is None or found.cycles < best.cycles):
                best = found
                if best.cycles <= enough:
                    break
        return None if best is None else ScheduledPart(lowered, best, _formats(way))

    def _known_times(self, config: HwConfig, code: Code, below: int | None) -> Timeline:
        """The exact times of a segment's code; segments of a kind have equal code in the same places."""
        key = code_key(code)
        if key not in self._times:
            self._times[key] = timeline(config, code)
        return self._times[key]


def _too_long(begun: InitialSchedule, config: HwConfig) -> Unit | None:
    """A unit whose instructions, with what they wait for in a linked program, may not have room in its ring of
    microcode while the last one before them is there."""
    code = begun.candidate.code
    loads = [each for each in code[Unit.LOAD] if isinstance(each, Load)]
    if begun.lowered.images.weight_words > config.weight_depth and weight_pieces(loads, config) is None:
        return Unit.LOAD
    for unit in Unit:
        mine = code.get(unit, ())
        # The ordering fields lie in two words at most.
        if mine and length(mine) + 2 * len(mine) + mine[0].words() > unit.ucode(config):
            return unit
    return None


def _placements(point: SearchPoint) -> list[SearchPoint]:
    """The point, and those that differ in placement alone."""
    found = [replace(point, order=order, preferences=preferences)
             for preferences in (True, False) for order in ORDERS]  # fmt: skip
    return [point, *(each for each in found if each != point)]


def _formats(way: Variant) -> dict[str, PackedInput]:
    found: dict[str, PackedInput] = {}
    for name, (storage, _) in way.storage.items():
        assert isinstance(storage, PackedInput)  # no other variants are made of segments
        found[name] = storage
    return found
