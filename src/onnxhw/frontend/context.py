"""`Context`: the graph under construction and what is known about each ONNX value."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from ..ir.graph import Graph, Op, Port, Reshape, Tensor
from .blockers import BlockedError
from .shapes import Shape
from .values import Const, Fed, Held, Hosted, Pending, QuantConst, Step, Value, form


@dataclass
class Context:
    """State of one conversion. Handlers read operands through it and add tensors and operations."""

    graph: Graph
    opset: int
    shapes: dict[str, Shape]
    values: dict[str, Value] = field(default_factory=dict)
    op_types: dict[str, str] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _ports: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    _reshaped: dict[tuple[str, Shape], Tensor] = field(default_factory=dict)

    # -- operands ----------------------------------------------------------------------------------
    def operand(self, node: onnx.NodeProto, index: int) -> Value | None:
        """The value of an input, or None where it is omitted."""
        if index >= len(node.input) or not node.input[index]:
            return None
        return self.values[node.input[index]]

    def required(self, node: onnx.NodeProto, index: int) -> Value:
        """The value of an input that must be there."""
        value = self.operand(node, index)
        if value is None:
            raise BlockedError(f"input {index} is missing")
        return value

    def quantized(self, node: onnx.NodeProto, index: int) -> Held:
        """An operand that is exactly a dequantized IR tensor."""
        value, name = self.required(node, index), node.input[index]
        if isinstance(value, Held) and value.plain:
            return value
        raise BlockedError(
            f"input {name!r} is not quantized: {_describe(value)}",
            "put QuantizeLinear and DequantizeLinear on every activation (onnxruntime.quantization, QDQ format)",
        )

    def constant(self, node: onnx.NodeProto, index: int) -> np.ndarray[Any, Any] | None:
        """The array of a constant input, or None where it is omitted."""
        value = self.operand(node, index)
        if value is None:
            return None
        if not isinstance(value, Const):
            raise BlockedError(f"input {node.input[index]!r} must be a constant")
        return value.array

    # -- construction --------------------------------------------------------------------------------
    def name(self, wanted: str) -> str:
        """A tensor name that is not taken."""
        name, count = wanted, 1
        while name in self.graph.tensors:
            name, count = f"{wanted}.{count}", count + 1
        return name

    def tensor(self, name: str, shape: tuple[int, int, int, int], scale: float, zero_point: int) -> Tensor:
        """Add a tensor."""
        tensor = Tensor(self.name(name), shape, float(scale), int(zero_point))
        self.graph.tensors[tensor.name] = tensor
        return tensor

    def add(self, op: Op) -> None:
        """Add an operation under a name that is not taken."""
        name, count = op.name, 1
        while name in self._names:
            name, count = f"{op.name}.{count}", count + 1
        self._names.add(name)
        self.graph.ops.append(replace(op, name=name))

    def feed(self, fed: Fed, name: str, last: tuple[Step, ...], scale: float, zero_point: int) -> Tensor:
        """The input tensor that a model input becomes after `last`, the steps that make it int8."""
        steps = (*fed.steps, *last)
        key = (fed.port, repr([{**step, "name": ""} for step in steps]))
        if key not in self._ports:
            tensor = self.tensor(name, form(fed.shape), scale, zero_point)
            self._ports[key] = tensor
            self.graph.inputs.append(Port(fed.port, fed.port_shape, fed.dtype, tensor.name, steps))
        return self._ports[key]

    def materialise(self, value: Held) -> Tensor:
        """The value's own IR tensor, in the IR form of its ONNX shape; adds a Reshape where one is needed."""
        shape = form(value.shape)
        if value.moves.index is not None:
            raise BlockedError(
                "its input is a Transpose that moves data",
                "remove the Transpose, or keep it at the model's inputs and outputs",
            )
        if shape == value.tensor.shape:
            return value.tensor
        key = (value.tensor.name, shape)
        if key not in self._reshaped:
            old = value.tensor
            new = self.tensor(f"{old.name}.reshape", shape, old.scale, old.zero_point)
            self.add(Reshape(new.name, (old.name,), new.name))
            self._reshaped[key] = new
        return self._reshaped[key]


def _describe(value: Value) -> str:
    if isinstance(value, Held):
        return "it is an integer" if value.integer else f"it passes {value.functions[-1]['op']} after DequantizeLinear"
    if isinstance(value, Pending):
        return f"it comes from {value.nodes[-1]!r} without QuantizeLinear"
    if isinstance(value, Fed):
        return f"it is the float model input {value.port!r}"
    if isinstance(value, Hosted):
        return f"it comes from a host operation ({value.steps[-1]['op']})"
    if isinstance(value, (Const, QuantConst)):
        return "it is a constant"
    return "it is not known"


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """The node's attributes by name; strings decoded."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def label(node: onnx.NodeProto) -> str:
    """The node's name, or one made of its operator and first output."""
    return node.name or f"{node.op_type}({', '.join(node.output[:1])})"
