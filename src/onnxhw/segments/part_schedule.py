"""`PartSchedules`: segments scheduled where others have left room, those of a kind by one search."""

from dataclasses import dataclass, replace

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError
from ..ir.graph import Graph
from ..passes.packed_inputs import packed_inputs
from ..program.layout import Place
from ..program.storage import PackedInput
from ..program.variant import Variant
from ..sched import Occupied, ScheduledCandidate, build, initial_schedule, same_operand
from ..sched.lower import LoweredGraph, lower
from ..sched.search_points import SearchPoint
from .estimate import kind


@dataclass(frozen=True)
class ScheduledPart:
    """A segment's program: `storage` tells how an input lies in memory that is not there as it is."""

    lowered: LoweredGraph
    candidate: ScheduledCandidate
    storage: dict[str, PackedInput]

    @property
    def places(self) -> dict[str, Place]:
        """Where its tensors lie."""
        return self.candidate.places


class PartSchedules:
    """Schedules segments on a configuration; what the search has found for one is taken for all of its kind."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self._known: dict[object, tuple[int, SearchPoint] | DoesNotFitError | UnsupportedError] = {}

    def __call__(self, graph: Graph, occupied: Occupied, packed: frozenset[str]) -> ScheduledPart:
        """The program of a segment's graph; inputs named in `packed` may lie otherwise than as they are.

        `DoesNotFitError` or `UnsupportedError` if there is no room, or an operation cannot be mapped.
        """
        key = kind(graph), tuple(sorted(occupied.fixed.items())), occupied.kept, occupied.reserved, packed
        known = self._known.get(key)
        if isinstance(known, (DoesNotFitError, UnsupportedError)):
            raise known
        ways = self._ways(graph, packed)
        if known is not None:
            number, point = known
            if number < len(ways) and (found := self._rescheduled(ways[number], occupied, point)):
                return found
        best: tuple[int, ScheduledPart] | None = None
        error: DoesNotFitError | UnsupportedError | None = None
        for number, way in enumerate(ways):
            try:
                begun = initial_schedule(way.graph, self.config, occupied=occupied)
            except (DoesNotFitError, UnsupportedError) as refused:
                error = refused
                continue
            if best is None or begun.candidate.cycles < best[1].candidate.cycles:
                best = number, ScheduledPart(begun.lowered, begun.candidate, _formats(way))
        if best is None:
            assert error is not None
            self._known[key] = error
            raise error
        self._known[key] = best[0], best[1].candidate.point
        return best[1]

    def _ways(self, graph: Graph, packed: frozenset[str]) -> list[Variant]:
        """The graph, and the first with packed inputs that can be scheduled, if only those are packed that may be."""
        found = [Variant(graph)]
        found += [each for each in packed_inputs(graph, self.config) if set(each.storage) <= packed]
        return found

    def _rescheduled(self, way: Variant, occupied: Occupied, point: SearchPoint) -> ScheduledPart | None:
        """The program of a search point that was found for another segment of the kind."""
        graph = same_operand(way.graph)
        lowered = lower(graph, self.config, occupied=occupied)
        ops = {op.name: op for op in graph.ops}
        if {op.name for op in point.graph.ops} != set(ops):
            return None
        ordered = replace(graph, ops=[ops[op.name] for op in point.graph.ops])
        found = build(lowered, replace(point, graph=ordered))
        return None if found is None else ScheduledPart(lowered, found, _formats(way))


def _formats(way: Variant) -> dict[str, PackedInput]:
    found: dict[str, PackedInput] = {}
    for name, (storage, _) in way.storage.items():
        assert isinstance(storage, PackedInput)  # no other variants are made of segments
        found[name] = storage
    return found

