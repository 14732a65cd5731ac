"""`Node`: a node of the graph in plain Python. Protobuf makes new objects at every look at a field."""

from typing import Any

import onnx

from .subgraph_copy import nested, own_names

DEFAULT = ("", "ai.onnx")
"""Names of the default domain."""
NONE: dict[str, Any] = {}
"""The attributes of a node without any."""
SMALL = 512
"""Bytes of a node up to which its attributes are looked for among those of others."""
Attributes = dict[tuple[bytes, ...], dict[str, Any] | None]
"""Decoded attributes by what they are serialized; None for those with graphs."""


class Node:
    """A node, not to be changed.

    op_type, domain, input, output : its fields.
    key : domain, "" for all names of the default one, and operator.
    label : its name, or one made of its operator and first output.
    results : the values that it makes.
    """

    __slots__ = ("_attributes", "_plain", "_proto", "domain", "input", "key", "label", "op_type", "output", "results")

    def __init__(
        self,
        op_type: str,
        inputs: list[str],
        outputs: list[str],
        label: str,
        attributes: dict[str, Any] | None = NONE,
        domain: str = "",
        proto: onnx.NodeProto | None = None,
    ) -> None:
        self.op_type, self.domain, self.input, self.output, self.label = op_type, domain, inputs, outputs, label
        self.key = ("" if domain in DEFAULT else domain), op_type
        self.results = outputs if "" not in outputs else [name for name in outputs if name]
        self._attributes, self._proto, self._plain = attributes, proto, attributes is not None

    @classmethod
    def of(cls, proto: onnx.NodeProto, known: Attributes | None = None) -> "Node":
        """The node that `proto` describes; `known`: what nodes with the same attributes share."""
        op_type, outputs = proto.op_type, [*proto.output]
        label = proto.name or f"{op_type}({', '.join(outputs[:1])})"
        attributes: dict[str, Any] | None = NONE
        if proto.attribute:
            attributes = None
            if known is not None and proto.ByteSize() <= SMALL:
                texts = tuple([attribute.SerializeToString() for attribute in proto.attribute])
                if texts not in known:
                    known[texts] = None if nested(proto) else decoded(proto)
                attributes = known[texts]
        return cls(op_type, [*proto.input], outputs, label, attributes, proto.domain, proto)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name; strings decoded."""
        if self._attributes is None:
            self._attributes = decoded(self.proto)
        return self._attributes

    @property
    def proto(self) -> onnx.NodeProto:
        """The node in the model; those that handlers make for each other are in none."""
        assert self._proto is not None
        return self._proto

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that it reads, once each; with those that its subgraphs take from the outer scope."""
        if self._proto is None or self._plain:
            return tuple(dict.fromkeys([name for name in self.input if name]))
        return reads(self._proto)


def decoded(proto: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node by name; strings decoded."""
    found = {}
    for attribute in proto.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def reads(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that a node reads, once each; with those that its subgraphs take from the outer scope."""
    names = dict.fromkeys([name for name in node.input if name])
    for graph in nested(node):
        names |= dict.fromkeys(_outer(graph))
    return tuple(names)


def needed(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph that an output needs, in order; the others need not run."""
    found, names = [], {value.name for value in graph.output}
    for node in reversed(graph.node):
        if not names.isdisjoint(node.output):
            names.update(reads(node))
            found.append(node)
    return found[::-1]


def _outer(graph: onnx.GraphProto) -> list[str]:
    own = own_names(graph)
    found: list[str] = []
    for node in graph.node:
        found += [name for name in reads(node) if name not in own]
        own.update(node.output)
    found += [value.name for value in graph.output if value.name and value.name not in own]
    return found
