"""`partition`: the parts of a conversion, from stages.

There are three kinds of stages in turn: 0, 3, ... hold nodes of the host, 1, 4, ... operations of the hardware, and
2, 5, ... operations that the host computes like the golden model. An operation or node has the smallest stage of its
kind that is not below the stages of what it reads:

    stage(u) = min { s : s mod 3 = kind(u), s >= stage(v) for every v that u reads }

Along every edge the stage stays or grows, so a path that leaves a stage never returns: parts are convex and have no
cycles, whatever the graph. `Constraints` say which operations are the host's, and which of the hardware must not share
a stage; they never change what the model computes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..convert.conversion import Conversion
from ..convert.values import HostValue, QuantizedView
from ..ir.graph import Graph, Op, Port
from ..ir.verify import verify
from ..passes.dead_node_elimination import eliminate_dead_nodes
from ..passes.merge_copies import merge_copies

HOST, HARDWARE, GOLDEN = range(3)
"""The kinds of stages: the stage modulo `KINDS`."""
KINDS = 3
"""How many there are."""

OrderedGroups = Sequence[Sequence[str]]
"""Operations of the hardware, by result, in groups and in the conversion's order: each group's stages are above those
of the groups before it."""


@dataclass
class Constraints:
    """What a configuration asks for beyond what the model does; operations are named by their results.

    to_host : operations that the host computes as the golden model does: why, and what to do ("" if nothing).
    ordered_groups : operations that must not share a stage.
    """

    to_host: dict[str, tuple[str, str]] = field(default_factory=dict)
    ordered_groups: list[OrderedGroups] = field(default_factory=list)


@dataclass
class Stages:
    """Stage of every live operation (by result) and host node (by index), in the order of the conversion."""

    operations: dict[str, int] = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    order: list[Op | int] = field(default_factory=list)
    exports: set[str] = field(default_factory=set)
    """Values of the hardware that the host or the caller reads."""
    fed: dict[str, str] = field(default_factory=dict)
    """Input tensor of the hardware -> the value that it is made from."""

    @property
    def last(self) -> int:
        """The highest stage."""
        return max([*self.operations.values(), *self.nodes.values()], default=0)


@dataclass
class _Floor:
    """The lowest stage of the next operation of `OrderedGroups`, which is in group `number`."""

    number: int = 0
    stage: int = 0
    highest: int = 0

    def of(self, number: int) -> int:
        if number > self.number:
            self.number, self.stage = number, self.highest + 1
        return self.stage


def stages(made: Conversion, constraints: Constraints | None = None) -> Stages:
    """The stages of all that the model's outputs need.

    What only moves values for operations that are `to_host` goes with them.
    """
    found, constraints = Stages(), constraints or Constraints()
    floors = [_Floor() for _ in constraints.ordered_groups]
    groups: dict[str, list[tuple[int, int]]] = {}
    for index, turn in enumerate(constraints.ordered_groups):
        for number, group in enumerate(turn):
            for name in group:
                groups.setdefault(name, []).append((index, number))
    graph, host = made.context.graph, made.host
    found.fed = {port.tensor: port.name for port in graph.inputs}
    _live(made, found)
    of_node = {name: index for index in host.hosted for name in host.nodes[index].output}

    def of_value(name: str) -> int:
        if name in host.exports:
            return found.operations[host.exports[name].tensor.name]
        index = of_node.get(name)
        return found.nodes[index] if index is not None else 0

    to_host = _to_host(made, found, constraints)
    for item in found.order:
        if isinstance(item, int):
            found.nodes[item] = _at_least([of_value(name) for name in host.operands[item]], HOST)
            continue
        levels = [of_value(found.fed[name]) if name in found.fed else found.operations[name] for name in item.inputs]
        if item.output in to_host:
            found.operations[item.output] = _at_least(levels, GOLDEN)
            continue
        turns = groups.get(item.output, ())
        stage = _at_least([*levels, *(floors[index].of(number) for index, number in turns)], HARDWARE)
        found.operations[item.output] = stage
        for index, _ in turns:
            floors[index].highest = max(floors[index].highest, stage)
    return found


def _at_least(levels: Iterable[int], kind: int) -> int:
    level = max(levels, default=0)
    return level + (kind - level) % KINDS


def _to_host(made: Conversion, found: Stages, constraints: Constraints) -> set[str]:
    """The operations of the golden parts, by result."""
    to_host = set(constraints.to_host)
    if not to_host:
        return to_host
    kept = {made.host.exports[name].tensor.name for name in found.exports}  # somebody else reads them
    read: set[str] = set()
    for item in reversed(found.order):
        if isinstance(item, int):
            continue
        if item.moves and item.output in read and item.output not in kept:
            to_host.add(item.output)
        (read if item.output in to_host else kept).update(item.inputs)
    return to_host


def _live(made: Conversion, found: Stages) -> None:
    """What the outputs need, in the conversion's order."""
    host = made.host
    values = {value.name for value in made.static.model.graph.output}
    tensors: set[str] = set()

    def need(name: str) -> None:
        export = host.exports.get(name)
        if export is None:
            values.add(name)
        else:
            found.exports.add(name)
            tensors.add(export.tensor.name)

    for name in list(values):
        need(name)
    for item in reversed(host.order):
        if isinstance(item, int):
            if not values.isdisjoint(host.nodes[item].results):
                found.order.append(item)
                for name in host.operands[item]:
                    need(name)
        elif item.output in tensors:
            found.order.append(item)
            for name in item.inputs:
                tensors.add(name)
                if name in found.fed:
                    need(found.fed[name])
    found.order.reverse()


def integer_parts(made: Conversion, found: Stages) -> dict[int, Graph]:
    """The integer graph of each stage of operations.

    A tensor that a later stage reads as well leaves as int8 and comes in again, under a name of its own.
    """
    context, outputs = made.context, [value.name for value in made.static.model.graph.output]
    whole = context.graph
    if not found.nodes and set(found.operations.values()) <= {HARDWARE} and found.exports >= set(outputs):
        inputs = [port for port in whole.inputs if port.name in made.host.inputs]  # used or not
        exports = [_export(made, name) for name in dict.fromkeys(outputs)]
        graph = eliminate_dead_nodes(Graph(whole.name, whole.tensors, whole.ops, inputs, exports))
        verify(graph)
        return {HARDWARE: eliminate_dead_nodes(merge_copies(graph))} if found.operations else {}
    graphs: dict[int, Graph] = {}
    passed: dict[str, Port] = {}
    transfers: dict[int, list[Port]] = {}
    feeds = {port.tensor: port for port in whole.inputs}
    taken = set(context.values) | set(whole.tensors)
    for item in found.order:
        if isinstance(item, int):
            continue
        stage = found.operations[item.output]
        graph = graphs.setdefault(stage, Graph(f"{whole.name}.{stage // KINDS}", {}, [], [], []))
        for name in item.inputs:
            if name in graph.tensors:
                continue
            graph.tensors[name] = whole.tensors[name]
            if name in feeds:
                graph.inputs.append(feeds[name])
                continue
            if name not in passed:
                passed[name] = Port(_fresh(f"{name}:int8", taken), whole.tensors[name].shape, "int8", name)
                transfers.setdefault(found.operations[name], []).append(passed[name])
            graph.inputs.append(passed[name])
        graph.tensors[item.output] = whole.tensors[item.output]
        graph.ops.append(item)
    first = [name for name in dict.fromkeys(outputs) if name in found.exports]
    for name in [*first, *sorted(found.exports - set(outputs))]:
        graphs[found.operations[made.host.exports[name].tensor.name]].outputs.append(_export(made, name))
    for stage, ports in transfers.items():
        graphs[stage].outputs += ports
    if len(graphs) == 1:
        next(iter(graphs.values())).name = whole.name
    for stage, graph in graphs.items():
        graphs[stage] = eliminate_dead_nodes(merge_copies(graph))
        verify(graphs[stage])
    return graphs


def _export(made: Conversion, name: str) -> Port:
    value = made.host.exports[name]
    steps = value.steps() if isinstance(value, QuantizedView) else value.steps
    dtype = made.context.dtypes.get(name) or _dtype(value)
    return Port(name, value.shape, dtype, value.tensor.name, steps)


def _dtype(value: QuantizedView | HostValue) -> str:
    if isinstance(value, HostValue) or not value.integer:
        return "float32"
    return "uint8" if value.unsigned else "int8"


def _fresh(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted
