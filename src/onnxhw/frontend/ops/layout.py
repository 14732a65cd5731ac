"""Operators that only move data: Flatten, Reshape, Squeeze, Unsqueeze, Transpose, Identity, Concat."""

from dataclasses import dataclass, replace
from math import prod

import onnx

from ...ir.graph import Concat, Tensor
from ..blockers import BlockedError
from ..context import Context, attributes, label
from ..quant.qdq import add_table
from ..shapes import Shape
from ..values import Fed, Held, Hosted, Moves, Pending, QuantConst, Result, Step, Value, form


def identity(context: Context, node: onnx.NodeProto) -> Value:
    """Identity, and Dropout in inference."""
    if len(node.output) > 1 and node.output[1]:
        raise BlockedError("the mask output is used")
    if node.op_type == "Dropout":
        training = context.constant(node, 2)
        if training is not None and bool(training):
            raise BlockedError("training_mode is set", "export the model for inference")
    return context.required(node, 0)


def reshape(context: Context, node: onnx.NodeProto) -> Value:
    """Flatten, Reshape, Squeeze, Unsqueeze."""
    value = context.required(node, 0)
    shape = context.shapes.get(node.output[0])
    if shape is None:
        raise BlockedError("its result has no static shape", "simplify the model with fixed shapes (onnxsim)")
    if isinstance(value, (Held, Pending)):
        return replace(value, moves=value.moves.reshape(shape, label(node)))
    if isinstance(value, (Fed, Hosted)):
        step: Step = {"op": "Reshape", "name": label(node), "shape": list(shape)}
        return replace(value, shape=shape, steps=(*value.steps, step))
    if isinstance(value, QuantConst) and value.axis is None:
        return replace(value, q=value.q.reshape(shape))
    raise BlockedError("its input is a constant quantized per channel", "reshape the weights when exporting")


def transpose(context: Context, node: onnx.NodeProto) -> Value:
    """Transpose: free where it moves only dimensions of size 1, on the host, or before a Gemm."""
    value = context.required(node, 0)
    shape: Shape = value.shape or ()
    perm = tuple(attributes(node).get("perm", range(len(shape))[::-1]))
    if sorted(perm) != list(range(len(shape))):
        raise BlockedError(f"perm {list(perm)} does not permute {len(shape)} axes")
    if isinstance(value, (Held, Pending)):
        return replace(value, moves=value.moves.transpose(perm, label(node)))
    if isinstance(value, (Fed, Hosted)):
        step: Step = {"op": "Transpose", "name": label(node), "perm": list(perm)}
        return replace(value, shape=tuple(shape[axis] for axis in perm), steps=(*value.steps, step))
    assert isinstance(value, QuantConst)
    axis = None if value.axis is None else perm.index(value.axis)
    return replace(value, q=value.q.transpose(perm), axis=axis)


def concat(context: Context, node: onnx.NodeProto) -> Value:
    """Concat along axis 1; inputs of another scale than the result's go through a table."""
    values = [context.required(node, index) for index in range(len(node.input))]
    axis = int(attributes(node).get("axis", 1))
    if all(isinstance(value, Held) and value.integer for value in values):
        held = [value for value in values if isinstance(value, Held)]
    else:
        held = [context.quantized(node, index) for index in range(len(node.input))]
    rank = len(held[0].shape)
    if axis % max(rank, 1) != 1:
        raise BlockedError(f"concatenates along axis {axis} of rank {rank}", "only the channel axis (1) is supported")
    joined = Concatenation(
        context,
        label(node),
        tuple(context.materialise(value) for value in held),
        tuple(value.functions for value in held),
    )
    shape = (1, sum(value.shape[1] for value in held), *held[0].shape[2:])
    first = joined.tensors[0]
    if all((tensor.scale, tensor.zero_point) == (first.scale, first.zero_point) for tensor in joined.tensors):
        out = joined.join(joined.tensors, node.output[0], (joined.name,))
        return Held(out, Moves.of(out.shape, shape), held[0].functions, held[0].unsigned)
    if held[0].integer:
        raise BlockedError("concatenates integers of different scales")
    return Pending(joined.finish, Moves.of(form(shape), shape), (joined.name,))


@dataclass(frozen=True)
class Concatenation:
    """A Concat of tensors of different scales that waits for its result's."""

    context: Context
    name: str
    tensors: tuple[Tensor, ...]
    functions: tuple[tuple[Step, ...], ...]

    def finish(self, result: Result) -> Tensor:
        """Requantize what differs, then join; a clamp is part of the tables."""
        last: list[Step] = [
            {
                "op": "QuantizeLinear",
                "name": result.nodes[-1],
                "scale": float(result.scale),
                "zero_point": result.zero_point,
                "dtype": "int8",
            }
        ]
        clamped = (result.lo, result.hi) != (-128, 127)
        ready = []
        for index, (tensor, functions) in enumerate(zip(self.tensors, self.functions, strict=True)):
            if clamped or (tensor.scale, tensor.zero_point) != (float(result.scale), result.zero_point):
                name = f"{result.name}.input{index}"
                steps = (*functions, *self._clamp(result), *last)
                tensor = add_table(
                    self.context,
                    tensor,
                    steps,
                    name,
                    float(result.scale),
                    result.zero_point,
                    f"{self.name}.table{index}",
                )
            ready.append(tensor)
        return self.join(tuple(ready), result.name, result.nodes)

    def _clamp(self, result: Result) -> list[Step]:
        low, high = ((bound - result.zero_point) * float(result.scale) for bound in (result.lo, result.hi))
        return [
            {
                "op": "Clip",
                "name": self.name,
                "min": low if result.lo > -128 else None,
                "max": high if result.hi < 127 else None,
            }
        ]

    def join(self, tensors: tuple[Tensor, ...], name: str, nodes: tuple[str, ...]) -> Tensor:
        """Add the IR operation; all tensors have one scale."""
        first = tensors[0]
        shape = (1, sum(tensor.channels for tensor in tensors), *first.shape[2:])
        if prod(shape) != sum(prod(tensor.shape) for tensor in tensors):
            raise BlockedError("its inputs differ in height or width")
        out = self.context.tensor(name, shape, first.scale, first.zero_point)
        self.context.add(Concat(self.name, tuple(tensor.name for tensor in tensors), out.name, nodes))
        return out
