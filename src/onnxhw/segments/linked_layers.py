"""`LinkedLayers`: the operations of a network in segments as layers, each with its instructions in all segments."""

from collections.abc import Collection, Mapping, Sequence

from ..ir.graph import Graph, Op
from ..isa.units import Unit
from ..program.model import Layer, runs_of
from ..sched import ScheduledCandidate, executed
from ..sched.lower import LoweredGraph


class LinkedLayers:
    """Layers under construction, in the order of the graph's operations. Moves belong to none: what they bring is for a
    segment as a whole."""

    def __init__(self, graph: Graph) -> None:
        self._layers = {op.name: Layer(op.name, type(op).__name__, 0, {}, graph.macs_of(op)) for op in graph.ops}
        self._indices: dict[str, dict[Unit, list[int]]] = {name: {} for name in self._layers}

    def add(
        self, lowered: LoweredGraph, candidate: ScheduledCandidate, names: Collection[str], cuts: Sequence[int],
        before: Mapping[Unit, int],
    ) -> None:  # fmt: skip
        """A segment with parts of the operations `names`, in front of which each unit has so many instructions; `cuts`:
        of each of its loads the number of the schedule's that it is a part of."""
        owner = owners(candidate.point.graph.ops, names)
        for unit, mine in candidate.owners.items():
            for index, name in enumerate([mine[number] for number in cuts] if unit is Unit.LOAD else mine):
                self._indices[owner[name]].setdefault(unit, []).append(before[unit] + index)
        for op in lowered.graph.ops:
            self._layers[owner[op.name]].macs += executed(lowered, op)

    def layers(self) -> list[Layer]:
        """All layers, complete."""
        for name, layer in self._layers.items():
            layer.instructions = {unit: runs_of(found) for unit, found in self._indices[name].items()}
        return list(self._layers.values())


def owners(ops: Sequence[Op], names: Collection[str]) -> dict[str, str]:
    """The layer of each operation of a segment, in order: itself, or if it is none of the network's own, that of the
    operation which reads what it makes."""
    found: dict[str, str] = {}
    reader: dict[str, str] = {}
    for op in reversed(ops):
        found[op.name] = op.name if op.name in names else reader[op.output]
        reader |= dict.fromkeys(op.inputs, found[op.name])
    return found
