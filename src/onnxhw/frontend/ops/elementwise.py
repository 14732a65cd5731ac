"""Add, Mul and their kin, Relu, Clip and other functions of one element."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ... import fixed
from ...ir.graph import Add, Mul, Tensor
from ..blockers import BlockedError
from ..context import Context, attributes, label
from ..quant.qdq import SMALLEST_NORMAL
from ..values import Const, Fed, Held, Hosted, Moves, Pending, QuantConst, Result, Step, Value
from .affine import FLAT, Affine, weights


def function(context: Context, value: Value, step: Step, clamp: bool = False) -> Value:
    """`value` followed by an elementwise step, wherever it is computed."""
    if isinstance(value, (Fed, Hosted)):
        if isinstance(value, Fed) and value.dtype != "float32":
            raise BlockedError(f"its input is {value.dtype}, not float32")
        return replace(value, steps=(*value.steps, step))
    if isinstance(value, Held):
        if value.integer:
            raise BlockedError(
                "its input is an integer tensor", f"put {step['op']} between DequantizeLinear and QuantizeLinear"
            )
        return value.then(step)
    if isinstance(value, Pending) and clamp:
        return replace(value, clamps=(*value.clamps, step), nodes=(*value.nodes, step["name"]), with_bias=None)
    if isinstance(value, Pending):
        raise BlockedError(
            f"its input comes from {value.nodes[-1]!r} without QuantizeLinear",
            "put QuantizeLinear and DequantizeLinear before it",
        )
    raise BlockedError(
        "its input is a constant", "fold constants first (onnxsim, or onnxruntime's offline optimisation)"
    )


def unary(context: Context, node: onnx.NodeProto) -> Value:
    """Relu, Sigmoid, Tanh, LeakyRelu."""
    step: Step = {"op": node.op_type, "name": label(node)}
    if node.op_type == "LeakyRelu":
        step["alpha"] = float(np.float32(attributes(node).get("alpha", 0.01)))
    return function(context, context.required(node, 0), step, clamp=node.op_type == "Relu")


def clip(context: Context, node: onnx.NodeProto) -> Value:
    """Clip; its bounds are attributes before opset 11 and constant inputs since."""
    found = attributes(node)
    bounds: dict[str, Any] = {}
    for index, name in ((1, "min"), (2, "max")):
        array = context.constant(node, index)
        bound = found.get(name) if array is None else float(array.reshape(()))
        if bound is not None and np.isnan(bound):
            raise BlockedError(f"{name} is NaN")
        bounds[name] = bound if bound is None or np.isfinite(bound) else float(np.clip(bound, -3e38, 3e38))
    return function(context, context.required(node, 0), {"op": "Clip", "name": label(node), **bounds}, clamp=True)


def arithmetic(context: Context, node: onnx.NodeProto) -> Value:
    """Add, Sub, Mul, Div of two values or of a value and a constant."""
    a, b = context.required(node, 0), context.required(node, 1)
    constants = [isinstance(value, (Const, QuantConst)) for value in (a, b)]
    if any(constants):
        constant, other = (a, b) if constants[0] else (b, a)
        assert isinstance(constant, (Const, QuantConst))
        return _with_constant(context, node, other, constant, swapped=constants[0])
    if node.op_type not in ("Add", "Mul"):
        raise BlockedError(f"{node.op_type} of two activations", "use Add or Mul")
    x, y = context.quantized(node, 0), context.quantized(node, 1)
    if x.tensor.shape == y.tensor.shape and x.moves.same(y.moves):
        left, right, moves = x.tensor, y.tensor, x.moves
    else:
        left, right = context.materialise(x), context.materialise(y)
        moves = _broadcast(node, x, y, left, right)
    made = Binary(context, node.op_type, label(node), left, right)
    return Pending(made.finish, moves, (made.name,))


def _broadcast(node: onnx.NodeProto, x: Held, y: Held, left: Tensor, right: Tensor) -> Moves:
    if len(x.shape) == len(y.shape):
        if x.shape == y.shape:
            return Moves.of(left.shape, x.shape)
        for whole, part in ((left, right), (right, left)):
            if node.op_type == "Mul" and part.shape == (1, whole.channels, 1, 1):
                return Moves.of(whole.shape, x.shape if whole is left else y.shape)
    hint = (
        "Mul broadcasts an operand of one pixel; other shapes must be equal"
        if node.op_type == "Mul"
        else "expand the smaller operand"
    )
    raise BlockedError(f"operands of shapes {list(x.shape)} and {list(y.shape)} do not match", hint)


@dataclass(frozen=True)
class Binary:
    """An Add or Mul that waits for its result's scale."""

    context: Context
    op_type: str
    name: str
    left: Tensor
    right: Tensor

    def finish(self, result: Result) -> Tensor:
        """Add the IR operation."""
        sa, sb = np.float32(self.left.scale), np.float32(self.right.scale)
        shape = self.left.shape if np.prod(self.left.shape) >= np.prod(self.right.shape) else self.right.shape
        names = (self.left.name, self.right.name)
        ratios = (
            [sa / result.scale, sb / result.scale] if self.op_type == "Add" else [np.float32(sa * sb) / result.scale]
        )
        if not all(np.isfinite(ratio) and ratio >= SMALLEST_NORMAL for ratio in ratios):
            raise BlockedError("the ratio of input and output scales leaves float32's range", "check the scales")
        out = self.context.tensor(result.name, shape, float(result.scale), result.zero_point)
        if self.op_type == "Add":
            self.context.add(
                Add(self.name, names, out.name, result.nodes, float(ratios[0]), float(ratios[1]), result.lo, result.hi)
            )
        else:
            self.context.add(Mul(self.name, names, out.name, result.nodes, float(ratios[0]), result.lo, result.hi))
        return out


def _with_constant(
    context: Context, node: onnx.NodeProto, other: Value, constant: Const | QuantConst, swapped: bool
) -> Value:
    """A scalar is a function, a bias joins its Gemm, a quantized factor per channel is a depthwise convolution."""
    if isinstance(other, (Const, QuantConst)):
        raise BlockedError(
            "both operands are constants", "fold constants first (onnxsim, or onnxruntime's offline optimisation)"
        )
    if isinstance(other, Pending) and node.op_type == "Add" and other.with_bias is not None:
        bias = _bias_per_channel(constant, other)
        return replace(other, finish=other.with_bias(bias), with_bias=None, nodes=(*other.nodes, label(node)))
    real = constant.real() if isinstance(constant, QuantConst) else constant.array
    if real.dtype != np.float32:
        raise BlockedError(f"its constant is {real.dtype}, not float32")
    if real.size == 1 and real.ndim <= len(other.shape or ()):
        step: Step = {"op": node.op_type, "name": label(node), "value": float(real.reshape(())), "swapped": swapped}
        if not np.isfinite(step["value"]):
            raise BlockedError(f"its constant is {step['value']}")
        return function(context, other, step)
    if node.op_type == "Mul" and isinstance(other, Held) and isinstance(constant, QuantConst):
        return _scale_channels(context, node, other, constant)
    raise BlockedError(
        f"{node.op_type} with a constant of shape {list(real.shape)}",
        "use a scalar, or for Mul an int8 quantized constant per channel",
    )


def _bias_per_channel(constant: Const | QuantConst, other: Pending) -> Const | QuantConst:
    """The constant as one value per channel of the pending operation's tensor; `BlockedError` if it is not that."""
    size = prod(other.shape)
    places = np.arange(size) if other.moves.index is None else other.moves.index.ravel()
    channel = places // (size // other.channels)

    def pick(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        try:
            spread = np.broadcast_to(values, other.shape).ravel()
        except ValueError:
            raise refusal from None
        picked = np.zeros(other.channels, values.dtype)
        picked[channel] = spread
        if not np.array_equal(picked[channel], spread):
            raise refusal
        return picked

    refusal = BlockedError(
        f"a constant of shape {list(constant.shape)} is not a bias of the channels of {list(other.shape)}"
    )
    if isinstance(constant, Const):
        return Const(pick(constant.array))
    scale, zero_point = constant.along(constant.scale), constant.along(constant.zero_point)
    return QuantConst(pick(constant.q), pick(scale), pick(zero_point), 0)


def _scale_channels(context: Context, node: onnx.NodeProto, other: Held, constant: QuantConst) -> Pending:
    x = context.quantized(node, 0 if context.values[node.input[0]] is other else 1)
    tensor = context.materialise(x)
    shape = (1,) * (len(x.shape) - constant.q.ndim) + constant.shape
    if (
        len(shape) != len(x.shape)
        or any(size != 1 for axis, size in enumerate(shape) if axis != 1)
        or shape[1] != tensor.channels
    ):
        raise BlockedError(
            f"a constant of shape {list(constant.shape)} is not one factor per channel of {list(x.shape)}"
        )
    if constant.axis is not None:
        raise BlockedError("the constant is quantized per channel", "quantize it per tensor")
    q, scale = weights(constant, 0, label(node))
    factors = q.reshape(-1)
    depthwise = Affine(
        context,
        label(node),
        tensor,
        factors.astype(np.int8).reshape(-1, 1, 1, 1),
        np.full(len(factors), scale[0], np.float32),
        None,
        FLAT,
        tensor.channels,
    )

    def finish(result: Result) -> Tensor:
        """The convolution rounds as float32 does, Mul once: they must agree for all 256 operands of each channel."""
        ratio = np.float32(np.float32(tensor.scale) * scale[0]) / result.scale
        operands = np.arange(-128, 128)[:, None] - tensor.zero_point
        products, ones = operands * factors, np.ones((1, len(factors)), np.int64)
        wanted = fixed.multiply(operands * ones, factors[None, :] * ones, float(ratio), result.zero_point)
        if not np.array_equal(fixed.requantize(products, ratio, result.zero_point), wanted):
            raise BlockedError(
                "its products are not the same under a convolution's rounding", "change the constant's scale slightly"
            )
        return depthwise.finish(result)

    return Pending(finish, Moves.of(tensor.shape, x.shape), (label(node),))
