"""`survey`: every graph, tensor and name of a model, visited once, counted before it is looked into.

Visited are the main graph, the graphs in attributes and the functions; not the training information, which inference
never reads.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import onnx

from ..errors import InvalidModelError
from .limits import Limits

CONTROL = re.compile("[\x01-\x1f\x7f-\x9f]")
SINGLE = DENSE, SPARSE, GRAPH, TYPE = "t", "sparse_tensor", "g", "tp"
"""Fields of an attribute that hold one tensor, graph or type; the lists in the same order:"""
SMALL = 64
"""Bytes of a small attribute."""
_lists = attrgetter("tensors", "sparse_tensors", "graphs", "type_protos")


@dataclass
class Survey:
    """Tensors with what a message calls them, graphs with sparse initializers, and counts."""

    tensors: list[tuple[onnx.TensorProto, str]] = field(default_factory=list)
    sparse: list[tuple[onnx.SparseTensorProto, str]] = field(default_factory=list)
    with_sparse: list[onnx.GraphProto] = field(default_factory=list)
    main: range = range(0)
    """Which of `tensors` are initializers of the main graph."""
    nodes: int = 0
    values: int = 0

    def stored(self) -> Iterator[tuple[onnx.TensorProto, str]]:
        """All tensors with a payload of their own, those inside sparse tensors included."""
        yield from self.tensors
        for tensor, title in self.sparse:
            yield tensor.values, f"values of {title}"
            yield tensor.indices, f"indices of {title}"


@dataclass
class _Walker:
    limits: Limits
    where: str
    found: Survey = field(default_factory=Survey)
    names: list[str] = field(default_factory=list)
    graphs: list[tuple[onnx.GraphProto, int]] = field(default_factory=list)
    plain: set[bytes] = field(default_factory=set)
    """Small attributes that were seen, of numbers and texts alone."""

    def graph(self, graph: onnx.GraphProto, depth: int) -> None:
        """Tensors and names of a graph; its subgraphs are put off."""
        self.limits.check("E3107", "subgraph_depth", depth, "graphs nested to depth", self.where)
        self.count(len(graph.initializer) + len(graph.input) + len(graph.output) + len(graph.value_info))
        names = self.names
        names.append(graph.name)
        if not depth:
            self.found.main = range(len(self.found.tensors), len(self.found.tensors) + len(graph.initializer))
        for tensor in graph.initializer:
            names.append(tensor.name)
            self.found.tensors.append((tensor, ""))
        if graph.sparse_initializer:
            self.found.with_sparse.append(graph)
        for sparse in graph.sparse_initializer:
            names.append(sparse.values.name)
            self.found.sparse.append((sparse, ""))
        for values in (graph.input, graph.output, graph.value_info):
            self.infos(values)
        names += [entry.key for entry in graph.metadata_props]
        self.nodes(graph.node, depth)

    def nodes(self, nodes: Collection[onnx.NodeProto], depth: int) -> None:
        """Names of nodes, and what their attributes hold."""
        total = self.found.nodes + len(nodes)
        self.limits.check("E3106", "nodes", total, "nodes:", self.where)
        self.found.nodes = total
        names = self.names
        for node in nodes:
            before = len(names)
            names += (node.name, node.op_type, node.domain, node.overload)
            names.extend(node.input)
            names.extend(node.output)
            again = self.attributes(node.attribute, depth, node) if node.attribute else 0
            self.count(len(names) - before + again)

    def attributes(self, attributes: Iterable[onnx.AttributeProto], depth: int, node: onnx.NodeProto | None) -> int:
        """Names of attributes; their tensors and graphs, whatever their type says. How many names are there already,
        of attributes that are the same as others."""
        names, again = self.names, 0
        for attribute in attributes:
            text = attribute.SerializeToString() if attribute.ByteSize() <= SMALL else b""
            if text in self.plain:
                again += 2
                continue
            name = attribute.name
            names += (name, attribute.ref_attr_name)
            found = [(kind, getattr(attribute, kind)) for kind in SINGLE if attribute.HasField(kind)]
            for kind, items in zip(SINGLE, _lists(attribute), strict=True):
                found += [(kind, item) for item in items]
            for kind, item in found:
                self.held(kind, item, name, depth, node)
            if text and not found:
                self.plain.add(text)
        return again

    def held(
        self,
        kind: str,
        item: Any,
        name: str,
        depth: int,
        node: onnx.NodeProto | None,
    ) -> None:
        """One tensor, graph or type in an attribute."""
        owner = f"node {node.name or node.op_type!r}" if node is not None else "function"
        title = f"attribute {name!r} of {owner}"
        if kind == GRAPH:
            self.graphs.append((item, depth + 1))
        elif kind == TYPE:
            self.type(item)
        elif kind == SPARSE:
            self.names.append(item.values.name)
            self.found.sparse.append((item, title))
        else:
            self.names.append(item.name)
            self.found.tensors.append((item, title))

    def infos(self, values: Iterable[onnx.ValueInfoProto]) -> None:
        """Names in declarations of values."""
        for value in values:
            self.names.append(value.name)
            self.type(value.type)

    def type(self, kind: onnx.TypeProto) -> None:
        """Names of dimensions, however deep in sequences, maps and optionals."""
        while True:
            form = kind.WhichOneof("value")
            if form in ("sequence_type", "optional_type"):
                kind = getattr(kind, form).elem_type
            elif form == "map_type":
                kind = kind.map_type.value_type
            else:
                break
        if form in ("tensor_type", "sparse_tensor_type"):
            dims = getattr(kind, form).shape.dim
            if dims:
                self.names += [dim.dim_param for dim in dims]

    def function(self, function: onnx.FunctionProto) -> None:
        """Tensors and names of a model-local function."""
        self.names += (function.name, function.domain, function.overload)
        for listed in (function.input, function.output, function.attribute):
            self.names.extend(listed)
        self.infos(function.value_info)
        self.names += [entry.domain for entry in function.opset_import]
        self.attributes(function.attribute_proto, 0, None)
        self.names += [entry.key for entry in function.metadata_props]
        self.nodes(function.node, 0)

    def count(self, more: int) -> None:
        """Count values: E3111 beyond the limit."""
        self.found.values += more
        if self.found.values > self.limits.values:
            self.limits.check("E3111", "values", self.found.values, "values:", self.where)


def survey(model: onnx.ModelProto, limits: Limits, where: str) -> Survey:
    """The survey of a model.

    E3103 a name that is not UTF-8, E3104 a control character in one, E3105 one beyond the limit name_length, E3106 too
    many nodes, E3107 subgraphs too deep, E3111 too many values, E3114 too
    many functions.
    """
    limits.check("E3114", "functions", len(model.functions), "functions:", where)
    walker = _Walker(limits, where)
    walker.names += (model.producer_name, model.producer_version, model.domain)
    walker.names += [entry.domain for entry in model.opset_import]
    walker.names += [entry.key for entry in model.metadata_props]
    walker.graphs.append((model.graph, 0))
    for function in model.functions:
        walker.function(function)
    while walker.graphs:
        walker.graph(*walker.graphs.pop())
    _names(walker.names, limits, where)
    return walker.found


def _names(names: list[str], limits: Limits, where: str) -> None:
    try:
        text = "\0".join(names)
    except TypeError:  # the protobuf library gives bytes for a string that is not UTF-8
        broken = next(name for name in names if not isinstance(name, str))
        raise InvalidModelError("E3103", f"a name is not UTF-8: {broken[:60]!r}", where=where) from None
    if text.count("\0") >= max(len(names), 1) or CONTROL.search(text):
        name = next(name for name in names if "\0" in name or CONTROL.search(name))
        raise InvalidModelError("E3104", f"a name has control characters: {name[:60]!r}", where=where)
    if max(map(len, names)) * 4 > limits.name_length:  # a character is at most 4 bytes
        for name in names:
            limits.check("E3105", "name_length", len(name.encode()), f"bytes of the name {name[:40]!r}:", where)
