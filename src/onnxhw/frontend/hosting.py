"""`Hosting`: which nodes run on the host, in which order with the hardware's operations, and what crosses over.

    need("y")   the host needs the ONNX value y. It has it already, or it is exported from the hardware
                (a tensor that an operation makes), or its producer goes to the host as well: a value that still
                waits for its QuantizeLinear has no form in the hardware.

`order` lists operations and host nodes so that everything comes after what it reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from ..ir.graph import Op
from .context import Context
from .values import Const, Fed, Held, Hosted, QuantConst, Unknown, Value


def reads(node: onnx.NodeProto) -> tuple[str, ...]:
    """The values that a node reads, once each; with those that its subgraphs take from the outer scope."""
    names = dict.fromkeys([name for name in node.input if name])
    if not node.attribute:
        return tuple(names)
    for graph in subgraphs(node):
        names |= dict.fromkeys(_outer(graph))
    return tuple(names)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _outer(graph: onnx.GraphProto) -> list[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    found: list[str] = []
    for node in graph.node:
        found += [name for name in reads(node) if name not in own]
        own.update(node.output)
    found += [value.name for value in graph.output if value.name and value.name not in own]
    return found


@dataclass
class Hosting:
    """The host's side of a conversion.

    `hosted`: index of every host node; `exports`: values that leave the hardware.
    """

    context: Context
    nodes: list[onnx.NodeProto]
    inputs: frozenset[str]
    """The model's inputs."""
    hosted: set[int] = field(default_factory=set)
    exports: dict[str, Held | Hosted] = field(default_factory=dict)
    order: list[Op | int] = field(default_factory=list)
    producer: dict[str, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """IR tensors that an operation makes; the others are inputs of the hardware."""
    results: list[list[str]] = field(default_factory=list)
    """By node: the values that it makes."""
    operands: list[tuple[str, ...]] = field(default_factory=list)
    """By node: what it `reads`."""
    _seen: int = 0

    def __post_init__(self) -> None:
        self.results = [[name for name in node.output if name] for node in self.nodes]
        self.operands = [reads(node) for node in self.nodes]
        self.producer = {name: index for index, names in enumerate(self.results) for name in names}

    def note_operations(self) -> None:
        """Take the operations that were added to the graph since into the order."""
        if self._seen == len(self.context.graph.ops):
            return
        new = self.context.graph.ops[self._seen :]
        self._seen += len(new)
        self.order += new
        self.made.update(op.output for op in new)

    def put(self, index: int) -> list[int]:
        """Run node `index` on the host; all nodes that go there for it."""
        self.note_operations()
        new = [other for name in self.operands[index] for other in self.need(name)]
        self._place(index)
        return [*new, index]

    def need(self, name: str) -> list[int]:
        """Make a value available to the host; the nodes that go there for it."""
        stack, new = [name], []
        while stack:
            wanted = stack[-1]
            if self._available(wanted):
                stack.pop()
                continue
            index = self.producer[wanted]
            missing = [read for read in self.operands[index] if not self._available(read)]
            if missing:
                stack += missing
            else:
                self._place(index)
                new.append(index)
                stack.pop()
        return new

    def _available(self, name: str) -> bool:
        if name in self.inputs or name in self.exports or self.producer.get(name) in self.hosted:
            return True
        value = self.context.values[name]
        if isinstance(value, (Held, Hosted)) and value.tensor.name in self.made:
            self.exports[name] = value
            return True
        return isinstance(value, (Const, QuantConst))

    def _place(self, index: int) -> None:
        self.hosted.add(index)
        self.order.append(index)
        for name in self.results[index]:
            self.context.hosted.add(name)
            if isinstance(self.context.values.get(name), (Fed, Unknown, type(None))):
                self.context.values[name] = self.result(name)

    def result(self, name: str) -> Value:
        """A value that the host gives to the hardware; `Unknown` unless it is a tensor of static shape."""
        shape, dtype = self.context.shapes.get(name), self.context.dtypes.get(name)
        if shape is None or dtype is None:
            return Unknown(shape)
        return Fed(name, shape, dtype, shape)
