"""`Context`: the graph under construction and what is known about each ONNX value."""

from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ir.graph import Graph, Op, Port, Tensor
from ..onnxfile.limits import DEFAULT, Limits
from ..onnxmodel.nodes import Node
from ..onnxmodel.shapes import Shape
from .blockers import BlockedError
from .values import Const, GraphInput, HostValue, QuantConst, QuantizedView, Step, Unquantized, Value, form


@dataclass(frozen=True)
class Reduced:
    """A ReduceSum or ReduceMean: of which value, over which of its axes, which of them the result has; `nodes`: the
    labels of what it stands for."""

    op_type: str
    source: str
    axes: tuple[int, ...]
    kept: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass
class Context:
    """State of one conversion. Handlers read operands through it and add tensors and operations."""

    graph: Graph
    opset: int
    shapes: dict[str, Shape]
    dtypes: Mapping[str, str]
    """numpy's element type of each value that has one."""
    handlers: "Handlers"
    """Those of all operators, for what is converted as several nodes."""
    values: dict[str, Value] = field(default_factory=dict)
    hosted: set[str] = field(default_factory=set)
    """Values that host nodes compute."""
    channels_last: frozenset[str] = frozenset()
    """Quantized inputs that the hardware gets with their last axis behind the batch."""
    limits: Limits = DEFAULT
    integer_softmax: frozenset[str] = frozenset()
    """Labels of the Softmaxes that the hardware computes."""
    parts: dict[str, int] = field(default_factory=dict)
    """Labels of nodes whose weights, less their zero points, leave int8, and how many int8 their sums take."""
    rounded: dict[str, float] = field(default_factory=dict)
    """Labels of nodes whose bias is rounded to an integer, and by how many steps of their results at most."""
    means: set[str] = field(default_factory=set)
    """Labels of means of functions, whose values are rounded to integers of 15 bits at most."""
    reduced: "dict[str, Reduced]" = field(default_factory=dict)
    """Sums and means that wait for their quantizers, by name."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Which values the tensors of inputs can hold, where that is less than int8."""
    parameters: dict[tuple[Hashable, ...], Any] = field(default_factory=dict)
    """What nodes share: scales and zero points, by operator and names."""
    tables: dict[tuple[Hashable, ...], Any] = field(default_factory=dict)
    """And what conversions share: see `StaticModel`."""
    makers: dict[str, Op] = field(default_factory=dict)
    """The operation that makes each tensor but the inputs."""
    folded: int = 0
    """Bytes of the constants that were computed."""
    arranged: dict[tuple[str, Shape, bytes], Tensor] = field(default_factory=dict)
    """Tensors whose elements were moved, by name, shape and order."""
    _names: set[str] = field(default_factory=set)
    _op_counts: dict[str, int] = field(default_factory=dict)
    _tensor_counts: dict[str, int] = field(default_factory=dict)
    _ports: dict[tuple[str, str, float, int], Tensor] = field(default_factory=dict)

    # -- operands ----------------------------------------------------------------------------------
    def operand(self, node: Node, index: int) -> Value | None:
        """The value of an input, or None where it is omitted."""
        inputs = node.input
        name = inputs[index] if index < len(inputs) else ""
        return self.values[name] if name else None

    def required(self, node: Node, index: int) -> Value:
        """The value of an input that must be there."""
        value = self.operand(node, index)
        if value is None:
            raise BlockedError(f"input {index} is missing")
        return value

    def quantized(self, node: Node, index: int) -> QuantizedView:
        """An operand that is exactly a dequantized IR tensor."""
        value, name = self.required(node, index), node.input[index]
        if isinstance(value, QuantizedView) and value.plain:
            return value
        raise BlockedError(
            f"input {name!r} is not quantized: {self._describe(value)}",
            "put QuantizeLinear and DequantizeLinear on every activation (onnxruntime.quantization, QDQ format)",
        )

    def constant(self, node: Node, index: int) -> np.ndarray[Any, Any] | None:
        """The array of a constant input, or None where it is omitted; of a quantized number the float32."""
        value = self.operand(node, index)
        if value is None:
            return None
        if isinstance(value, QuantConst) and value.q.size == 1:
            return value.real()
        if not isinstance(value, Const):
            raise BlockedError(f"input {node.input[index]!r} must be a constant")
        return value.array

    def known(self, node: Node, index: int) -> np.ndarray[Any, Any]:
        """The array of a constant input that must be there."""
        array = self.constant(node, index)
        if array is None:
            raise BlockedError(f"input {index} is missing")
        return array

    def fed(self, tensor: Tensor, shape: Shape, *more: Step) -> GraphInput | None:
        """The input that `tensor` is, as a value of this shape after `more` steps; None if it is no input."""
        port = next((port for port in self.graph.inputs if port.tensor == tensor.name), None)
        return None if port is None else GraphInput(port.name, port.shape, port.dtype, shape, (*port.steps, *more))

    # -- construction --------------------------------------------------------------------------------
    def name(self, wanted: str) -> str:
        """A tensor name that is not taken."""
        return _free(wanted, self.graph.tensors, self._tensor_counts)

    def tensor(self, name: str, shape: tuple[int, int, int, int], scale: float, zero_point: int) -> Tensor:
        """Add a tensor."""
        tensor = Tensor(self.name(name), shape, float(scale), int(zero_point))
        self.graph.tensors[tensor.name] = tensor
        return tensor

    def put(self, op: Op, shape: tuple[int, int, int, int], scale: float | np.float32, zero_point: int) -> Tensor:
        """Add an operation and the tensor that it makes, of the name that `op.output` asks for if that is not taken."""
        tensor = self.tensor(op.output, shape, float(scale), zero_point)
        self.add(replace(op, output=tensor.name))
        return tensor

    def add(self, op: Op) -> None:
        """Add an operation under a name that is not taken."""
        name = _free(op.name, self._names, self._op_counts)
        self._names.add(name)
        self.graph.ops.append(op if op.name == name else replace(op, name=name))
        self.makers[op.output] = self.graph.ops[-1]

    def note_rounded(self, label: str, steps: float) -> None:
        """A node's bias was rounded, by so many steps of its result at most."""
        self.rounded[label] = max(steps, self.rounded.get(label, 0.0))

    def feed(self, fed: GraphInput, name: str, last: tuple[Step, ...], scale: float, zero_point: int) -> Tensor:
        """The input tensor that a model input becomes after `last`, the steps that make it int8.

        The same integers on two grids are two tensors, for operations take a tensor's numbers from its grid.
        """
        steps = (*fed.steps, *last)
        key = (fed.port, repr([{**step, "name": ""} for step in steps]), float(scale), int(zero_point))
        if key not in self._ports:
            # Rows of a matrix: seen so they are no batch, and what reads them turns them as it needs.
            shape = (1, *fed.shape) if len(fed.shape) == 2 and fed.shape[0] != 1 else fed.shape
            tensor = self.tensor(name, form(shape), scale, zero_point)
            self._ports[key] = tensor
            self.graph.inputs.append(Port(fed.port, fed.port_shape, fed.dtype, tensor.name, steps))
        return self._ports[key]

    def _describe(self, value: Value) -> str:
        if isinstance(value, QuantizedView) and value.integer:
            return "it is an integer"
        if isinstance(value, QuantizedView):
            return f"it passes {value.functions[-1]['op']} after DequantizeLinear"
        if isinstance(value, Unquantized):
            return f"it comes from {value.nodes[-1]!r} without QuantizeLinear"
        if isinstance(value, GraphInput):
            origin = "result of a host node" if value.port in self.hosted else "model input"
            return f"it is the float {origin} {value.port!r}"
        if isinstance(value, HostValue):
            return f"it comes from a host operation ({value.steps[-1]['op']})"
        if isinstance(value, (Const, QuantConst)):
            return "it is a constant"
        return "it is not known"


Handler = Callable[[Context, Node], Value | tuple[Value, ...]]
"""Converts one node: the value of its only output, or a tuple with one value per output."""
Handlers = dict[tuple[str, str], Handler]
"""Handlers by domain ("" is the default one) and operator; each module of handlers exports its own as `HANDLERS`."""


def _free(wanted: str, taken: Container[str], counts: dict[str, int]) -> str:
    """`wanted`, or the first ``wanted.N`` that is not taken; `counts` remembers where to look."""
    name, count = wanted, counts.get(wanted, 0)
    while name in taken:
        count += 1
        name = f"{wanted}.{count}"
    counts[wanted] = count
    return name
