"""Operators that only move data: Flatten, Reshape, Squeeze, Unsqueeze, Transpose, Identity, Concat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import numpy as np

from ...errors import InvalidModelError
from ...ir.graph import Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import (
    Array,
    AxisMoves,
    Const,
    GraphInput,
    HostValue,
    QuantConst,
    QuantizedView,
    QuantizerTarget,
    Step,
    Unquantized,
    Value,
    form,
)
from .arrange import arrange, joined, materialise
from .movement import moved
from .operands import on_grid, real

Laid = TypeVar("Laid", bound=QuantizedView | Unquantized)
LAYERED = 3
"""The least rank of a tensor whose channels have a place of their own."""


def identity(context: Context, node: Node) -> Value:
    """Identity, and Dropout in inference."""
    if len(node.output) > 1 and node.output[1]:
        raise BlockedError("the mask output is used")
    if node.op_type == "Dropout":
        training = context.constant(node, 2)
        if training is not None and bool(training):
            raise BlockedError("training_mode is set", "export the model for inference")
    return context.required(node, 0)


def reshape(context: Context, node: Node) -> Value:
    """Flatten, Reshape, Squeeze, Unsqueeze."""
    value = context.required(node, 0)
    shape = context.shapes.get(node.output[0])
    shape = _wanted(context, node, value) if shape is None else shape
    if shape is None:
        raise BlockedError("its result has no static shape", "simplify the model with fixed shapes (onnxsim)")
    if value.shape is not None and prod(value.shape) != prod(shape):
        what = f"has {prod(value.shape)} elements, its result {node.output[0]!r} is to have the shape {list(shape)}"
        raise InvalidModelError("E3400", what, where=node.label, hint="export the model again")
    if isinstance(value, (QuantizedView, Unquantized)):
        return replace(value, moves=value.moves.reshape(shape, node.label))
    if isinstance(value, (GraphInput, HostValue)):
        step: Step = {"op": "Reshape", "name": node.label, "shape": list(shape)}
        return replace(value, shape=shape, steps=(*value.steps, step))
    if isinstance(value, Const):
        return Const(value.array.reshape(shape))
    if isinstance(value, QuantConst) and value.axis is None:
        return replace(value, q=value.q.reshape(shape))
    raise BlockedError("its input is a constant quantized per channel", "reshape the weights when exporting")


def _wanted(context: Context, node: Node, value: Value) -> Shape | None:
    """The result's shape where onnx does not see it: the operand's came of computed sizes, or a Reshape's target did,
    as an exporter's ``x.view(x.size(0), -1)``; None if nothing says it."""
    old = value.shape
    if old is None:
        return None
    if node.op_type == "Flatten":
        axis = int(node.attributes.get("axis", 1))
        return (prod(old[:axis]), prod(old[axis:])) if -len(old) <= axis <= len(old) else None
    target = context.operand(node, 1) if len(node.input) > 1 else None
    given = target.array if isinstance(target, Const) else np.array(node.attributes.get("axes", ()), np.int64)
    if given.ndim != 1 or (node.op_type != "Reshape" and target is not None and not isinstance(target, Const)):
        return None
    numbers = [int(number) for number in given]
    if node.op_type == "Reshape":
        return None if target is None else _target(numbers, old, bool(node.attributes.get("allowzero", 0)))
    whole = len(old) + (len(numbers) if node.op_type == "Unsqueeze" else 0)
    if any(not -whole <= axis < whole for axis in numbers):
        return None
    axes = {axis % whole for axis in numbers}
    if node.op_type == "Squeeze":
        return tuple(size for axis, size in enumerate(old) if not (axis in axes if axes else size == 1))
    rest = iter(old)
    return tuple(1 if axis in axes else next(rest) for axis in range(whole)) if len(axes) == len(numbers) else None


def _target(wanted: list[int], old: Shape, zeros: bool) -> Shape | None:
    """What a Reshape's target means for an operand of shape `old`; None if it does not fit. `zeros`: a 0 is a size."""
    if not zeros:
        copied = [*old, *[-1] * len(wanted)]
        wanted = [copied[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    rest = prod(size for size in wanted if size != -1)
    if min(wanted, default=0) < -1 or wanted.count(-1) > 1 or not rest or prod(old) % rest:
        return None
    whole = tuple(prod(old) // rest if size == -1 else size for size in wanted)
    return whole if prod(whole) == prod(old) else None


def transpose(context: Context, node: Node) -> Value:
    """Transpose: free where it moves only dimensions of size 1, on the host, or before a Gemm."""
    value = context.required(node, 0)
    shape: Shape = value.shape or ()
    perm = tuple(node.attributes.get("perm", range(len(shape))[::-1]))
    if sorted(perm) != list(range(len(shape))):
        raise BlockedError(f"perm {list(perm)} does not permute {len(shape)} axes")
    if isinstance(value, (QuantizedView, Unquantized)):
        return replace(value, moves=value.moves.transpose(perm, node.label))
    if isinstance(value, (GraphInput, HostValue)):
        step: Step = {"op": "Transpose", "name": node.label, "perm": list(perm)}
        return replace(value, shape=tuple(shape[axis] for axis in perm), steps=(*value.steps, step))
    if isinstance(value, Const):  # inside a quantized operator; others are folded
        return Const(value.array.transpose(perm))
    if not isinstance(value, QuantConst):
        raise BlockedError("its input has no static shape", "simplify the model with fixed shapes (onnxsim)")
    axis = None if value.axis is None else perm.index(value.axis)
    return replace(value, q=value.q.transpose(perm), axis=axis)


def concat(context: Context, node: Node) -> Value:
    """Concat along any axis but the batch; inputs of another scale than the result's go through a table.

    Constants among them are added as a Pad would, if they are one number: rows and channels of zeros.
    """
    values = [context.required(node, index) for index in range(len(node.input))]
    known = [value.real() if isinstance(value, QuantConst) else value.array for value in values
             if isinstance(value, (Const, QuantConst))]  # fmt: skip
    if len(known) == len(values):
        return _of_constants(node, known)
    rank = len(values[0].shape or ())
    axis = int(node.attributes.get("axis", 1))
    if not -rank <= axis < rank or axis % rank == 0:
        raise BlockedError(f"concatenates along axis {axis} of rank {rank}", "only axes after the batch are supported")
    if any(len(value.shape or ()) != rank for value in values):
        raise BlockedError("concatenates tensors of different ranks")
    axis %= rank
    laid = [value for value in values if isinstance(value, (QuantizedView, Unquantized))]
    if known and laid and len(known) + len(laid) == len(values):
        return _padded(context, node, values, axis, laid, known)
    if len(laid) == len(values) and (turned := channels_first(laid)) is not None:
        return turned_back(_concatenated(context, node, turned, (0, *range(2, rank), 1)[axis]))
    return _concatenated(context, node, values, axis)


def _padded(
    context: Context, node: Node, values: Sequence[Value], axis: int, laid: Sequence[Laid], known: Sequence[Array]
) -> Value:
    """With constants among the operands: a movement of the others, joined."""
    numbers = {float(number) for array in known if array.size for number in (array.min(), array.max())}
    if len(numbers) != 1:
        what = "concatenates constants that are not all one number"
        raise BlockedError(what, "compute them of an input, or add them on the host")
    output = node.output[0]
    joined_ = laid[0] if len(laid) == 1 else _concatenated(context, node, laid, axis, f"{output}.operands")
    whole = np.arange(prod(joined_.shape)).reshape(joined_.shape)
    left = iter(np.split(whole, np.cumsum([value.shape[axis] for value in laid])[:-1], axis))
    parts = [
        np.full(value.shape or (), -1) if isinstance(value, (Const, QuantConst)) else next(left) for value in values
    ]
    try:
        index = np.concatenate(parts, axis)
    except ValueError:
        raise BlockedError("its operands do not fit each other") from None
    return moved(context, joined_, index, output, node.label, numbers.pop())


def channels_first(values: Sequence[Laid]) -> list[Laid] | None:
    """The values with their last axis behind the batch, if the channels of their tensors are that axis (channels last),
    so that they lie as they are; None if one does not, or none has moved."""
    if min(len(value.shape) for value in values) < LAYERED:
        return None
    turned = [value.moves.transpose((0, len(value.shape) - 1, *range(1, len(value.shape) - 1))) for value in values]
    if any(moves.index is not None for moves in turned) or all(value.moves.index is None for value in values):
        return None
    return [replace(value, moves=moves) for value, moves in zip(values, turned, strict=True)]


def turned_back(value: Laid) -> Laid:
    """The value with the axis behind the batch as its last one."""
    return replace(value, moves=value.moves.transpose((0, *range(2, len(value.shape)), 1)))


def _concatenated(
    context: Context, node: Node, values: Sequence[Value], axis: int, output: str = ""
) -> QuantizedView | Unquantized:
    """The joined values; `output`: the tensor's name, by default that of the node's result."""
    name = node.label
    held = [value for value in values if isinstance(value, QuantizedView)]
    if len(held) < len(values) or not all(value.integer or value.plain for value in held):
        operands = tuple(real(value) for value in values)
        whole = Concatenation(context, name, axis, operands)
        return Unquantized(whole.finish, AxisMoves.of(form(whole.shape), whole.shape), (name,))
    whole = Concatenation(context, name, axis, tuple(held))
    first = held[0]
    same = {(value.tensor.scale, value.tensor.zero_point, value.integer, value.unsigned) for value in held}
    if len(same) == 1:
        out = whole.join([materialise(context, value) for value in held], output or node.output[0], (name,))
        return QuantizedView(out, AxisMoves.of(out.shape, whole.shape), first.functions, first.unsigned)
    if any(value.integer for value in held):
        raise BlockedError("concatenates integers of different scales")
    return Unquantized(whole.finish, AxisMoves.of(form(whole.shape), whole.shape), (name,))


def _of_constants(node: Node, known: list[Array]) -> Const:
    """Of constants, quantized ones among them: sizes that a quantizer took for numbers, say."""
    try:
        return Const(np.concatenate(known, int(node.attributes.get("axis", 1))))
    except ValueError:
        raise BlockedError("its constants do not fit each other") from None


@dataclass(frozen=True)
class Concatenation:
    """A Concat that waits for its result's scale: rounding commutes with it, so the parts are quantized first."""

    context: Context
    name: str
    axis: int
    operands: tuple[QuantizedView | Unquantized, ...]

    @property
    def shape(self) -> Shape:
        """The result's ONNX shape."""
        first = self.operands[0].shape
        total = sum(operand.shape[self.axis] for operand in self.operands)
        return (*first[: self.axis], total, *first[self.axis + 1 :])

    def finish(self, result: QuantizerTarget) -> Tensor:
        """Requantize what differs, then join; a clamp is part of the tables."""
        parts = [
            on_grid(self.context, operand, result, f"{result.name}.input{number}", f"{self.name}.table{number}")
            for number, operand in enumerate(self.operands)
        ]
        return self.join(parts, result.name, result.nodes)

    def join(self, tensors: list[Tensor], output: str, nodes: tuple[str, ...]) -> Tensor:
        """Add the IR operation; all tensors have one scale."""
        if self.axis > 1:
            numbers, start = [], 0
            for tensor, operand in zip(tensors, self.operands, strict=True):
                numbers.append(start + np.arange(prod(tensor.shape)).reshape(operand.shape))
                start += prod(tensor.shape)
            index = np.concatenate(numbers, axis=self.axis)
            return arrange(self.context, tensors, index, form(self.shape), output, self.name)
        return joined(self.context, tensors, output, self.name, nodes)


HANDLERS: Handlers = {
    ("", "Flatten"): reshape,
    ("", "Reshape"): reshape,
    ("", "Squeeze"): reshape,
    ("", "Unsqueeze"): reshape,
    ("", "Transpose"): transpose,
    ("", "Identity"): identity,
    ("", "Dropout"): identity,
    ("", "Concat"): concat,
}
