"""`HostNodes`: which nodes run on the host, in which order with the hardware's operations, and what crosses over.

    need("y")   the host needs the ONNX value y. It has it already, or it is exported from the hardware
                (a tensor that an operation makes), or its producer goes to the host as well: a value that still
                waits for its QuantizeLinear has no form in the hardware.

`order` lists operations and host nodes so that everything comes after what it reads.
"""

from dataclasses import dataclass, field

from ..ir.graph import Op
from ..onnxmodel.nodes import Node
from .blockers import BlockedError
from .context import Context
from .values import Const, GraphInput, HostValue, QuantConst, QuantizedView, Unknown, Unquantized, Value


@dataclass
class HostNodes:
    """The host's side of a conversion.

    `hosted`: index of every host node; `exports`: values that leave the hardware.
    """

    context: Context
    nodes: list[Node]
    inputs: frozenset[str]
    """The model's inputs."""
    hosted: set[int] = field(default_factory=set)
    exports: dict[str, QuantizedView | HostValue] = field(default_factory=dict)
    order: list[Op | int] = field(default_factory=list)
    producer: dict[str, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """IR tensors that an operation makes; the others are inputs of the hardware."""
    operands: list[tuple[str, ...]] = field(default_factory=list)
    """By node: what it `reads`."""
    _seen: int = 0

    def __post_init__(self) -> None:
        self.operands = [node.reads for node in self.nodes]
        self.producer = {name: index for index, node in enumerate(self.nodes) for name in node.results}

    def note_operations(self) -> None:
        """Take the operations that were added to the graph since into the order."""
        if self._seen == len(self.context.graph.ops):
            return
        new = self.context.graph.ops[self._seen :]
        self._seen += len(new)
        self.order += new
        for op in new:
            self.made.add(op.output)

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
        if isinstance(value, (QuantizedView, HostValue)) and value.tensor.name in self.made:
            self.exports[name] = value
            return True
        if isinstance(value, Unquantized) and value.chain is not None and self._leaves(name, value):
            return True
        return isinstance(value, (Const, QuantConst))

    def _leaves(self, name: str, value: Unquantized) -> bool:
        """Can the real value of sums leave the hardware as integers? If so it does."""
        assert value.chain is not None
        try:
            made = value.chain.real(name, value)
        except BlockedError:
            return False
        self.note_operations()
        self.exports[name] = made
        return True

    def _place(self, index: int) -> None:
        self.hosted.add(index)
        self.order.append(index)
        for name in self.nodes[index].results:
            self.context.hosted.add(name)
            if isinstance(self.context.values.get(name), (GraphInput, Unknown, type(None))):
                self.context.values[name] = self.result(name)

    def result(self, name: str) -> Value:
        """A value that the host gives to the hardware; `Unknown` unless it is a tensor of static shape."""
        shape, dtype = self.context.shapes.get(name), self.context.dtypes.get(name)
        if shape is None or dtype is None:
            return Unknown(shape)
        return GraphInput(name, shape, dtype, shape)
