"""Copying nodes and graphs from one scope into another under fresh names, for inlining and unrolling."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import onnx

GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


@dataclass
class FreshNames:
    """Names that no value or node of the model has; `call` numbers one copy of a body."""

    taken: set[str]
    calls: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    """By name that was wanted, the last number given to it: a search from 1 takes quadratic time."""

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> "FreshNames":
        """All names of a graph and the graphs in it are taken."""
        taken: set[str] = set()
        for one in every_graph(graph):
            taken |= own_names(one)
            for node in one.node:
                taken.update((node.name, *node.input, *node.output))
        return cls(taken)

    def call(self, name: str) -> str:
        """A prefix for the next copy of a body."""
        self.calls += 1
        return f"{name}.{self.calls}"

    def name(self, prefix: str, name: str) -> str:
        """A free name that shows where it comes from."""
        wanted = f"{prefix}/{name}"
        found, count = wanted, self.asked.get(wanted, 0)
        while found in self.taken:
            count += 1
            found = f"{wanted}.{count}"
        self.asked[wanted] = count
        self.taken.add(found)
        return found


@dataclass
class BodyNames:
    """How the names of one body are called where it is copied to.

    fresh : where new names come from; None: names that a body defines stay as they are.
    prefix : begins the new names.
    mapping : new name by old.
    outer : the scope around; names that none of them maps stay as they are.
    """

    fresh: FreshNames | None = None
    prefix: str = ""
    mapping: dict[str, str] = field(default_factory=dict)
    outer: "BodyNames | None" = None

    def use(self, name: str) -> str:
        """The new name of a value."""
        if name in self.mapping:
            return self.mapping[name]
        return self.outer.use(name) if self.outer is not None else name

    def define(self, name: str) -> str:
        """The new name of a value that the body defines."""
        if not name:
            return ""
        if name not in self.mapping:
            self.mapping[name] = self.fresh.name(self.prefix, name) if self.fresh else name
        return self.mapping[name]

    def inside(self) -> "BodyNames":
        """The scope of a graph nested in the body."""
        return BodyNames(self.fresh, self.prefix, {}, self)


def nested(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    found: list[onnx.GraphProto] = []
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            found.append(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            found.extend(attribute.graphs)
    return found


def every_graph(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those in it."""
    left = [graph]
    while left:
        one = left.pop()
        yield one
        left.extend(inner for node in one.node for inner in nested(node))


def own_names(graph: onnx.GraphProto) -> set[str]:
    """The names of a graph's inputs and initializers."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    return {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer} | set(sparse)


Attributes = Callable[[onnx.AttributeProto, BodyNames], "onnx.AttributeProto | None"]
"""How an attribute is copied; None leaves it out."""
Nodes = Callable[[Iterable[onnx.NodeProto], BodyNames], "list[onnx.NodeProto]"]
"""How the nodes of a nested graph are copied."""


def copy_node(node: onnx.NodeProto, scope: BodyNames, attribute: Attributes) -> onnx.NodeProto:
    """The node under the scope's names."""
    made = onnx.NodeProto()
    for entry, value in node.ListFields():
        if entry.name in ("op_type", "domain", "overload", "doc_string") and isinstance(value, str):
            setattr(made, entry.name, value)  # protobuf gives bytes for what is not UTF-8: at most a doc_string is that
    made.metadata_props.extend(node.metadata_props)
    if scope.fresh:
        made.name = scope.fresh.name(scope.prefix, node.name or node.op_type)
    elif node.HasField("name"):
        made.name = node.name
    made.input.extend(scope.use(name) for name in node.input)
    for one in node.attribute:
        copied = attribute(one, scope)
        if copied is not None:
            made.attribute.append(copied)
    made.output.extend(scope.define(name) for name in node.output)
    return made


def copy_attribute(attribute: onnx.AttributeProto, scope: BodyNames, nodes: Nodes) -> onnx.AttributeProto:
    """The attribute; graphs in it under the scope's names."""
    made = onnx.AttributeProto()
    if attribute.type not in GRAPHS:
        made.CopyFrom(attribute)
        return made
    made.name, made.type = attribute.name, attribute.type
    if attribute.type == onnx.AttributeProto.GRAPH:
        made.g.CopyFrom(copy_graph(attribute.g, scope, nodes))
    made.graphs.extend(copy_graph(graph, scope, nodes) for graph in attribute.graphs)
    return made


def copy_graph(graph: onnx.GraphProto, around: BodyNames, nodes: Nodes) -> onnx.GraphProto:
    """A nested graph under the names of the scope around it; its own names are fresh wherever the scope's are."""
    scope = around.inside()
    made = onnx.GraphProto(name=graph.name)
    if graph.HasField("doc_string") and isinstance(graph.doc_string, str):
        made.doc_string = graph.doc_string
    made.metadata_props.extend(graph.metadata_props)
    for source, target in ((graph.input, made.input), (graph.initializer, made.initializer)):
        for value in source:
            target.add().CopyFrom(value)
            target[-1].name = scope.define(value.name)
    for sparse in graph.sparse_initializer:
        made.sparse_initializer.add().CopyFrom(sparse)
        made.sparse_initializer[-1].values.name = scope.define(sparse.values.name)
    made.node.extend(nodes(graph.node, scope))
    for value in graph.output:
        made.output.add().CopyFrom(value)
        made.output[-1].name = scope.use(value.name)
    for value in graph.value_info:
        if value.name in scope.mapping:
            made.value_info.add().CopyFrom(value)
            made.value_info[-1].name = scope.mapping[value.name]
    return made
