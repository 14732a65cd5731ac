"""MatMul of two activations: an IR `MatMul`, heads (all dimensions before the last two) as channels.

    (1, H, M, K) @ (1, H, K, N)   ->   MatMul, (1, H, M, N)

An operand that lies transposed is read so: a Transpose of the last two dimensions costs nothing.
"""

from dataclasses import replace
from math import prod

import numpy as np

from ... import fixed
from ...ir.graph import Copy, MatMul, Piece, Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context
from ..values import AxisMoves, QuantizedView, QuantizerTarget, Unquantized
from .arrange import materialise
from .movement import moved
from .operands import broadcast, placed, plain, ratios


def product(context: Context, node: Node) -> Unquantized:
    """MatMul of two activations."""
    a, b, name = plain(context, node, 0), plain(context, node, 1), node.label
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise BlockedError(f"multiplies {list(a.shape)} by {list(b.shape)}", "use matrices: two dimensions or more")
    count, reach = a.shape[-1], fixed.dot_reach(a.shape[-1], a.tensor.zero_point, b.tensor.zero_point)
    if reach > fixed.SUM_MAX:
        hint = "up to 1,023 products fit with zero points of 0, 258 with any"
        raise BlockedError(f"a sum of {count} products can reach {reach}, beyond {fixed.SUM_BITS} bits", hint)
    batch = broadcast([a.shape[:-2], b.shape[:-2]])
    left, turned_left = _operand(context, a, batch, name)
    right, turned_right = _operand(context, b, batch, name)
    if _origin(context, left) == _origin(context, right):
        right = _copied(context, right, name)
    shape = (1, prod(batch), a.shape[-2], b.shape[-1])

    def finish(result: QuantizerTarget) -> Tensor:
        (multiplier,) = ratios(np.float32(np.float32(left.scale) * np.float32(right.scale)) / result.scale)
        names, turned = (left.name, right.name), (turned_left, turned_right)
        made = MatMul(name, names, result.name, result.nodes, multiplier, *turned, result.lo, result.hi)
        return context.put(made, shape, result.scale, result.zero_point)

    return Unquantized(finish, AxisMoves.of(shape, (*batch, *shape[2:])), (name,))


def _operand(context: Context, value: QuantizedView, batch: Shape, name: str) -> tuple[Tensor, bool]:
    """The operand as ``(1, H, rows, columns)``, repeated for all of the batch, or with rows and columns turned."""
    shape = (1, prod(batch), *value.shape[-2:])
    if prod(value.shape) != prod(shape):
        full = (1,) * (len(batch) + 2 - len(value.shape)) + value.shape
        index = np.broadcast_to(np.arange(prod(full)).reshape(full), (*batch, *shape[2:])).reshape(shape)
        repeated = moved(context, value, index, f"{value.tensor.name}.expanded", name)
        assert isinstance(repeated, QuantizedView)
        return materialise(context, repeated), False
    seen = replace(value, moves=value.moves.reshape(shape))
    turned = replace(value, moves=seen.moves.transpose((0, 1, 3, 2)))
    lies_turned = turned.moves.index is None and value.tensor.channels == shape[1]
    return placed(context, turned if lies_turned else seen), lies_turned


def _origin(context: Context, tensor: Tensor) -> str:
    """The tensor behind reshapes: where this one lies in memory."""
    maker = context.makers.get(tensor.name)
    if maker and maker.joins and len(maker.inputs) == 1:
        return _origin(context, context.graph.tensors[maker.inputs[0]])
    return tensor.name


def _copied(context: Context, tensor: Tensor, name: str) -> Tensor:
    """The same elsewhere: what is read in one cycle must lie in two banks."""
    _, _, height, width = tensor.shape
    copy = Copy(
        f"{name}.copy", (tensor.name,), f"{tensor.name}.copy", (name,), (Piece(0, 0, width, 1, height, width),)
    )
    return context.put(copy, tensor.shape, tensor.scale, tensor.zero_point)
