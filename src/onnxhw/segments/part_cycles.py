"""`PartCycles`: exact cycles of segments' runs, of each kind once."""

from ..config import HwConfig
from ..ir.graph import Graph
from .estimate import kind
from .part_schedule import PartSchedules


class PartCycles:
    """Exact cycles of segments' runs on a configuration, of each kind once: those of its first schedule in an empty
    memory. Programs that are linked with the same `schedules` need not search for them again."""

    def __init__(self, config: HwConfig) -> None:
        self.config, self.schedules = config, PartSchedules(config)
        self.known: dict[tuple[object, ...], int] = {}

    def __call__(self, graph: Graph) -> int:
        """Cycles; `DoesNotFitError` and `UnsupportedError` as of the scheduler."""
        key = kind(graph)
        if key not in self.known:
            self.known[key] = self.schedules.alone(graph, frozenset(port.tensor for port in graph.inputs)).cycles
        return self.known[key]
