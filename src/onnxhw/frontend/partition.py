"""`partition`: the parts of a conversion, from stages.

Stage 0 and every even one run on the host, odd ones on the hardware. An operation or host node has the smallest
stage of its kind that is not below the stages of what it reads:

    stage(u) = min { s : s has u's parity, s >= stage(v) for every v that u reads }

Along every edge the stage stays or grows, so a path that leaves a stage never returns: parts are convex and have no
cycles, whatever the graph. A cut closes the stage of an operation: it and the operations behind it in the conversion's
order that would be in this stage are in the next one of the hardware.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ..ir.graph import Graph, Op, Port
from ..ir.verify import verify
from .convert import Conversion
from .dead import remove_dead
from .values import Held, Hosted
from .windows import merge_copies


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


def stages(made: Conversion, cuts: Collection[str] = ()) -> Stages:
    """The stages of all that the model's outputs need; `cuts` are operations by result."""
    found = Stages()
    closed: set[int] = set()
    graph, host = made.context.graph, made.host
    found.fed = {port.tensor: port.name for port in graph.inputs}
    _live(made, found)
    of_node = {name: index for index in host.hosted for name in host.nodes[index].output}

    def of_value(name: str) -> int:
        if name in host.exports:
            return found.operations[host.exports[name].tensor.name]
        index = of_node.get(name)
        return found.nodes[index] if index is not None else 0

    for item in found.order:
        if isinstance(item, int):
            found.nodes[item] = _at_least([of_value(name) for name in host.operands[item]], 0)
        else:
            levels = [
                of_value(found.fed[name]) if name in found.fed else found.operations[name] for name in item.inputs
            ]
            stage = _open(_at_least(levels, 1), closed)
            if item.output in cuts:
                closed.add(stage)
            found.operations[item.output] = _open(stage, closed)
    return found


def _open(stage: int, closed: set[int]) -> int:
    while stage in closed:
        stage += 2
    return stage


def _at_least(levels: Iterable[int], parity: int) -> int:
    level = max(levels, default=0)
    return level if level % 2 == parity else level + 1


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


def hardware_parts(made: Conversion, found: Stages) -> dict[int, Graph]:
    """The integer graph of each odd stage.

    A tensor that a later stage reads as well leaves as int8 and comes in again, under a name of its own.
    """
    context, outputs = made.context, [value.name for value in made.static.model.graph.output]
    whole = context.graph
    if not found.nodes and set(found.operations.values()) <= {1} and found.exports >= set(outputs):
        inputs = [port for port in whole.inputs if port.name in made.host.inputs]  # used or not
        exports = [_export(made, name) for name in dict.fromkeys(outputs)]
        graph = remove_dead(Graph(whole.name, whole.tensors, whole.ops, inputs, exports))
        verify(graph)
        return {1: remove_dead(merge_copies(graph))} if found.operations else {}
    graphs: dict[int, Graph] = {}
    passed: dict[str, Port] = {}
    transfers: dict[int, list[Port]] = {}
    feeds = {port.tensor: port for port in whole.inputs}
    taken = set(context.values) | set(whole.tensors)
    for item in found.order:
        if isinstance(item, int):
            continue
        stage = found.operations[item.output]
        graph = graphs.setdefault(stage, Graph(f"{whole.name}.{stage // 2}", {}, [], [], []))
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
        graphs[stage] = remove_dead(merge_copies(graph))
        verify(graphs[stage])
    return graphs


def _export(made: Conversion, name: str) -> Port:
    value = made.host.exports[name]
    steps = value.steps() if isinstance(value, Held) else value.steps
    dtype = made.context.dtypes.get(name) or _dtype(value)
    return Port(name, value.shape, dtype, value.tensor.name, steps)


def _dtype(value: Held | Hosted) -> str:
    if isinstance(value, Hosted) or not value.integer:
        return "float32"
    return "uint8" if value.unsigned else "int8"


def _fresh(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted
