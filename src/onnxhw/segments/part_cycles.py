"""`PartCycles`: exact cycles of segments' runs, of each kind once; `ScaledCycles`: of smaller ones by their work."""

from ..config import HwConfig
from ..passes.packed_inputs import packed_alike
from .estimate import kind
from .part_schedule import PartSchedules
from .part_work import run_cycles
from .plan import Segment

LEAST = 0.5
"""Share of the work of a segment that was scheduled from which on another's cycles are told by it. What does not grow
with the work, of it some hundred cycles of a run, is then at most doubled."""


class PartCycles:
    """Exact cycles of segments' runs on a configuration, of each kind once: those of its first schedule in an empty
    memory. Programs that are linked with the same `schedules` need not search for them again."""

    def __init__(self, config: HwConfig) -> None:
        self.config, self.schedules = config, PartSchedules(config)
        self.known: dict[tuple[object, ...], int] = {}

    def __call__(self, segment: Segment) -> int:
        """Cycles; `DoesNotFitError` and `UnsupportedError` as of the scheduler."""
        key = _kind(segment)
        if key not in self.known:
            self.known[key] = self.schedules.alone(segment.graph, segment.origins).cycles
        return self.known[key]


class ScaledCycles:
    """Cycles of segments' runs, about: of those that do the same as one that was scheduled, to boxes that are somewhat
    smaller, by what their units have to do. So of a group's stripes one is scheduled."""

    def __init__(self, exact: PartCycles) -> None:
        self.exact = exact
        self._known: dict[tuple[object, ...], int] = {}
        self._scheduled: dict[tuple[object, ...], list[tuple[float, int]]] = {}
        """By what they do: the work and the cycles of those that were scheduled."""

    def __call__(self, segment: Segment) -> int:
        """Cycles; errors as of `PartCycles`."""
        key = _kind(segment)
        if key not in self._known:
            self._known[key] = self._of(segment)
        return self._known[key]

    def _of(self, segment: Segment) -> int:
        work, structure = run_cycles(segment.graph, self.exact.config), _structure(segment)
        for theirs, cycles in self._scheduled.get(structure, ()):
            if LEAST * theirs <= work <= theirs:
                return round(cycles * work / theirs) if theirs else cycles
        cycles = self.exact(segment)
        self._scheduled.setdefault(structure, []).append((work, cycles))
        return cycles


def _kind(segment: Segment) -> tuple[object, ...]:
    """Equal for segments of a kind whose inputs can be packed alike."""
    return kind(segment.graph), packed_alike(segment.graph, segment.origins)


def _structure(segment: Segment) -> tuple[object, ...]:
    """Equal for segments that do the same to boxes of other sizes."""
    graph = segment.graph
    ops = tuple((type(op), op.weight.shape, op.taps, op.inputs, op.output) for op in graph.ops)
    return ops, tuple(port.tensor for port in graph.outputs), packed_alike(graph, segment.origins)
