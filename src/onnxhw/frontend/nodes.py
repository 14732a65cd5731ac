"""`Node`: a node of the graph in plain Python. Protobuf makes new objects at every look at a field."""

from typing import Any

import onnx

from .bodies import nested

DEFAULT = ("", "ai.onnx")
"""Names of the default domain."""
NONE: dict[str, Any] = {}
"""The attributes of a node without any."""


class Node:
    """A node, not to be changed.

    op_type, domain, input, output : its fields.
    key : domain, "" for all names of the default one, and operator.
    label : its name, or one made of its operator and first output.
    results : the values that it makes.
    """

    __slots__ = ("_attributes", "_proto", "domain", "input", "key", "label", "op_type", "output", "results")

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
        self._attributes, self._proto = attributes, proto

    @classmethod
    def of(cls, proto: onnx.NodeProto) -> "Node":
        """The node that `proto` describes."""
        op_type, outputs = proto.op_type, [*proto.output]
        label = proto.name or f"{op_type}({', '.join(outputs[:1])})"
        attributes = None if proto.attribute else NONE
        return cls(op_type, [*proto.input], outputs, label, attributes, proto.domain, proto)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name; strings decoded."""
        if self._attributes is None:
            self._attributes = {}
            for attribute in self.proto.attribute:
                value = onnx.helper.get_attribute_value(attribute)
                text = value.decode(errors="replace") if isinstance(value, bytes) else value
                self._attributes[attribute.name] = text
        return self._attributes

    @property
    def proto(self) -> onnx.NodeProto:
        """The node in the model; those that handlers make for each other are in none."""
        assert self._proto is not None
        return self._proto

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that it reads, once each; with those that its subgraphs take from the outer scope."""
        if self._attributes is NONE and "" not in self.input:
            return tuple(dict.fromkeys(self.input))
        return reads(self.proto)


def reads(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that a node reads, once each; with those that its subgraphs take from the outer scope."""
    names = dict.fromkeys([name for name in node.input if name])
    for graph in nested(node):
        names |= dict.fromkeys(_outer(graph))
    return tuple(names)


def _outer(graph: onnx.GraphProto) -> list[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    found: list[str] = []
    for node in graph.node:
        found += [name for name in reads(node) if name not in own]
        own.update(node.output)
    found += [value.name for value in graph.output if value.name and value.name not in own]
    return found
