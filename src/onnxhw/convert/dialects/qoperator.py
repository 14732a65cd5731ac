"""The QOperator dialect: operators on integers, with scales and zero points as inputs.

Each means ``DequantizeLinear -> operator -> QuantizeLinear``, and is converted as just that, by the handlers of these:
so a model in this form gives the program of its QDQ form.

QLinearX(a, s_a, z_a, ..., s_y, z_y)   Q(X(DQ(a, s_a, z_a), ...), s_y, z_y)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InvalidModelError
from ...onnxmodel.nodes import NONE, Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import Const, GraphInput, HostValue, QuantConst, QuantizedView, Value
from .parameters import Parameters, check_scale, dtype_name, integers
from .qdq import dequantized, quantized

MICROSOFT = "com.microsoft"
LAYERED = 3
"""The least rank of a tensor whose channels have a place of their own."""


class Expansion:
    """The nodes for which one QOperator node stands, converted one after the other under its name.

    A context manager; its inner values are forgotten at its end.
    """

    __slots__ = ("context", "inputs", "label", "made", "node", "output")

    def __init__(self, context: Context, node: Node) -> None:
        self.context, self.node = context, node
        self.label, self.output, self.inputs = node.label, node.output[0], node.input
        self.made: list[str] = []

    def __enter__(self) -> "Expansion":
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.made:
            self.context.values.pop(name, None)

    def name(self, index: int) -> str:
        """The name of an input, "" where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def enter(self, value: Value) -> str:
        """A name for a value inside the expansion."""
        name = f"{self.output}.part{len(self.made)}"
        while name in self.context.values:
            name += "'"
        self.context.values[name] = value
        self.made.append(name)
        return name

    def apply(self, op_type: str, inputs: list[str], given: dict[str, Any] = NONE) -> Value:
        """Convert one node of the default domain, with the attributes `given`."""
        node = Node(op_type, inputs, [f"{self.output}.part{len(self.made)}"], self.label, given)
        result = self.context.handlers["", op_type](self.context, node)
        return result[0] if isinstance(result, tuple) else result

    def moved(self, name: str, last: bool, back: bool = False) -> str:
        """The value with its channels behind the batch; or `back` where they were, if they were `last`."""
        axes = range(len(self.context.values[name].shape or ()))
        if not last or len(axes) < LAYERED:
            return name
        perm = [0, *axes[2:], 1] if back else [0, axes[-1], *axes[1:-1]]
        return self.enter(self.apply("Transpose", [name], {"perm": perm}))

    def real(self, index: int) -> str:
        """Input `index` dequantized by the scale and zero point that follow it."""
        source, output = self.name(index), f"{self.output}.part{len(self.made)}"
        value = self.context.required(self.node, index)
        names = self.name(index + 1), self.name(index + 2)
        parameters = Parameters.named(self.context, "DequantizeLinear", *names, self.label)
        return self.enter(dequantized(self.context, value, parameters, self.label, source, output))

    def matrix(self, index: int, axis: int) -> str:
        """Constant integers `index` dequantized with one scale and zero point, or one of each along `axis`."""
        q, scale, zero_point = (self.context.constant(self.node, index + offset) for offset in range(3))
        where = self.label
        if q is None or scale is None:
            raise BlockedError(f"input {index} is missing")
        check_scale(scale, where)
        zero_point = np.zeros((), np.int64) if zero_point is None else zero_point.astype(np.int64)
        if scale.size == zero_point.size == 1:
            return self.enter(QuantConst(integers(q), scale.reshape(()), zero_point.reshape(()), None))
        count = q.shape[axis]
        if any(values.size not in (1, count) for values in (scale, zero_point)):
            raise InvalidModelError(
                "E3601",
                f"{scale.size} scales and {zero_point.size} zero points do not fit {count} output channels",
                where=where,
            )
        ones = np.ones(count, np.int64)
        per_output = (scale.ravel() * ones.astype(np.float32), zero_point.ravel() * ones)
        return self.enter(QuantConst(integers(q), *per_output, axis % q.ndim))

    def bias(self, index: int, x: int, weights: str) -> list[str]:
        """The int32 bias, if there is one, with scale ``s_x * s_w`` and zero point 0."""
        integers = self.context.constant(self.node, index)
        if integers is None:
            return []
        weight, scale = self.context.values[weights], self.context.constant(self.node, x + 1)
        if not isinstance(weight, QuantConst) or scale is None or scale.size != 1:
            raise BlockedError("its bias has no scale: that of its input is not one number, or its weights have none")
        q = integers.astype(np.int64).reshape(-1) if integers.size == max(integers.shape, default=1) else integers
        scales = np.asarray(np.float32(scale.reshape(())) * weight.scale, np.float32)
        axis = 0 if scales.ndim else None
        return [self.enter(QuantConst(q, scales, np.zeros(scales.shape, np.int64), axis))]

    def integers(self, value: Value, scale: int, like: int = 0) -> Value:
        """The result, quantized by the scale at this index and the zero point after it.

        Without a zero point it is of the type of input `like`: an operand and the result are of one type here.
        """
        names = self.name(scale), self.name(scale + 1)
        parameters = Parameters.named(self.context, "QuantizeLinear", *names, self.label)
        if not parameters.explicit:
            parameters = parameters.typed(_dtype(self.context.required(self.node, like)))
        return quantized(self.context, value, parameters, self.label, self.output)


def conv(context: Context, node: Node) -> Value:
    """QLinearConv, of either domain."""
    given, last = _layout(node)
    with Expansion(context, node) as inner:
        weights = inner.matrix(3, 0)
        x = inner.moved(inner.real(0), last)
        y = inner.integers(inner.apply("Conv", [x, weights, *inner.bias(8, 0, weights)], given), 6)
        return context.values[inner.moved(inner.enter(y), last, back=True)]


def matmul(context: Context, node: Node) -> Value:
    """QLinearMatMul, of a constant matrix or of two activations."""
    constant = isinstance(context.required(node, 3), Const)
    with Expansion(context, node) as inner:
        right = inner.matrix(3, -1) if constant else inner.real(3)
        return inner.integers(inner.apply("MatMul", [inner.real(0), right]), 6)


def gemm(context: Context, node: Node) -> Value:
    """QGemm; without an output scale its result is real."""
    transposed = node.attributes.get("transB", 0)
    with Expansion(context, node) as inner:
        weights = inner.matrix(3, 0 if transposed else 1)
        y = inner.apply("Gemm", [inner.real(0), weights, *inner.bias(6, 0, weights)], node.attributes)
        return inner.integers(y, 7) if inner.name(7) else y


def binary(op_type: str) -> Callable[[Context, Node], Value]:
    """QLinearAdd and QLinearMul."""

    def handler(context: Context, node: Node) -> Value:
        with Expansion(context, node) as inner:
            return inner.integers(inner.apply(op_type, [inner.real(0), inner.real(3)]), 6)

    return handler


def unary(op_type: str) -> Callable[[Context, Node], Value]:
    """Operators of one operand: input, its scale and zero point, then those of the result."""

    def handler(context: Context, node: Node) -> Value:
        given, last = _layout(node)
        with Expansion(context, node) as inner:
            y = inner.integers(inner.apply(op_type, [inner.moved(inner.real(0), last)], given), 3)
            return context.values[inner.moved(inner.enter(y), last, back=True)]

    return handler


def softmax(context: Context, node: Node) -> Value:
    """QLinearSoftmax; its attribute says which opset's Softmax it is."""
    given = {name: value for name, value in node.attributes.items() if name != "opset"}
    older = replace(context, opset=int(node.attributes.get("opset", context.opset)))
    with Expansion(older, node) as inner:
        return inner.integers(inner.apply("Softmax", [inner.real(0)], given), 3)


def concat(context: Context, node: Node) -> Value:
    """QLinearConcat: scale and zero point of the result come first."""
    if (len(node.input) - 2) % 3 or len(node.input) < 5:
        raise InvalidModelError(
            "E3602", f"has {len(node.input)} inputs, not 2 and 3 for each operand", where=node.label
        )
    with Expansion(context, node) as inner:
        parts = [inner.real(index) for index in range(2, len(node.input), 3)]
        return inner.integers(inner.apply("Concat", parts, node.attributes), 0, like=2)


def dynamic(context: Context, node: Node) -> Value:
    """What chooses its scale while it runs."""
    raise BlockedError(
        "its scale depends on the data: the whole tensor must be known before the first integer",
        "quantize statically, with calibration (onnxhw quantize)",
    )


def sums(context: Context, node: Node) -> Value:
    """ConvInteger and MatMulInteger: their 32-bit results are not on any int8 grid."""
    raise BlockedError(
        "its results are 32-bit sums, and only int8 leaves the accelerator",
        "quantize the float model statically, with calibration (onnxhw quantize)",
    )


def _dtype(value: Value) -> str:
    """The type of an operand's integers."""
    if isinstance(value, QuantizedView):
        return "uint8" if value.unsigned else "int8"
    if isinstance(value, Const):
        return dtype_name(value.array.dtype)
    if isinstance(value, (GraphInput, HostValue)):
        return value.dtype
    raise BlockedError("its operand is no quantized integer")


def max_pool(context: Context, node: Node) -> Value:
    """NhwcMaxPool: a MaxPool of integers with their channels last, as onnxruntime's layout optimiser writes it."""
    with Expansion(context, node) as inner:
        x = inner.moved(inner.enter(context.required(node, 0)), True)
        y = inner.apply("MaxPool", [x], node.attributes)
        return context.values[inner.moved(inner.enter(y), True, back=True)]


def _layout(node: Node) -> tuple[dict[str, Any], bool]:
    """The attributes of the operator inside, and whether the channels come last around it."""
    if "channels_last" not in node.attributes:
        return node.attributes, False
    inside = {name: value for name, value in node.attributes.items() if name != "channels_last"}
    return inside, bool(node.attributes["channels_last"])


HANDLERS: Handlers = {
    ("", "QLinearConv"): conv,
    ("", "QLinearMatMul"): matmul,
    ("", "ConvInteger"): sums,
    ("", "MatMulInteger"): sums,
    ("", "DynamicQuantizeLinear"): dynamic,
    (MICROSOFT, "QLinearConv"): conv,
    (MICROSOFT, "NhwcMaxPool"): max_pool,
    (MICROSOFT, "QGemm"): gemm,
    (MICROSOFT, "QLinearAdd"): binary("Add"),
    (MICROSOFT, "QLinearMul"): binary("Mul"),
    (MICROSOFT, "QLinearAveragePool"): unary("AveragePool"),
    (MICROSOFT, "QLinearGlobalAveragePool"): unary("GlobalAveragePool"),
    (MICROSOFT, "QLinearReduceMean"): unary("ReduceMean"),
    (MICROSOFT, "QLinearLeakyRelu"): unary("LeakyRelu"),
    (MICROSOFT, "QLinearSigmoid"): unary("Sigmoid"),
    (MICROSOFT, "QLinearSoftmax"): softmax,
    (MICROSOFT, "QLinearConcat"): concat,
    (MICROSOFT, "DynamicQuantizeMatMul"): dynamic,
    (MICROSOFT, "MatMulIntegerToFloat"): sums,
}
