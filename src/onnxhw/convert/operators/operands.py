"""Operands as the hardware needs them: on their own grid, on the result's grid, of the result's shape.

materialized     DQ -> Relu              the dequantized form of a tensor, where the function never leaves the grid
on_grid     DQ -> f, or Conv ->     the tensor that QuantizeLinear would make of the value: rounding to a grid is
                                    monotone, so it commutes with minimum, maximum and movements
expanded    [1, C, 1, 1]            the same elements in a larger shape
beside      input, input.T          an input of the model, laid out as another operand
"""

from dataclasses import replace
from math import inf, prod

import numpy as np

from ... import fixed
from ...ir.graph import Add, Mul, Op, Tensor
from ...ir.steps import apply
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context
from ..dialects.qdq import SMALLEST_NORMAL, add_table, enter_table
from ..values import QuantizedView, QuantizerTarget, Step, Unquantized, Value, form
from .arrange import materialise
from .movement import moved

COMPLEMENT = np.arange(127, -129, -1).astype(np.int8)
"""The table of ``-1 - q``: the integer of the negated value, on the grid of zero point ``-1 - zero_point``."""


def plain(context: Context, node: Node, index: int) -> QuantizedView:
    """An operand that is a dequantized tensor, perhaps after functions that stay on its grid."""
    value = context.required(node, index)
    if isinstance(value, QuantizedView) and len(value.functions) > 1:
        return materialized(context, value) or context.quantized(node, index)
    return context.quantized(node, index)


def materialized(context: Context, value: QuantizedView) -> QuantizedView | None:
    """The value as a dequantized tensor of the same grid, if its functions give nothing else."""
    grid, reals = replace(value, functions=value.functions[:1]).reals(), value.reals()
    places = np.minimum(np.searchsorted(grid, reals), 255)
    if not np.array_equal(grid[places], reals):
        return None
    tensor = value.tensor
    nodes = tuple(step["name"] for step in value.functions[1:])
    name = f"{tensor.name}.{value.functions[-1]['op']}"
    out = enter_table(context, tensor, places - 128, name, tensor.scale, tensor.zero_point, nodes)
    return QuantizedView(out, value.moves, value.functions[:1])


def on_grid(
    context: Context, value: QuantizedView | Unquantized, result: QuantizerTarget, output: str, name: str
) -> Tensor:
    """The tensor of IR form that quantizing and clamping the value as `result` asks would give."""
    if isinstance(value, Unquantized):
        ends = apply(value.clamps, np.array([-np.inf, np.inf], np.float32))
        lo, hi = (int(np.clip(q, result.lo, result.hi)) for q in fixed.quantize(ends, result.scale, result.zero_point))
        nodes = (*value.nodes, *result.nodes[-1:])
        tensor = value.finish(replace(result, name=output, lo=lo, hi=hi, nodes=nodes))
        return materialise(context, QuantizedView(tensor, value.moves))
    tensor = materialise(context, value)
    same = (tensor.scale, tensor.zero_point) == (float(result.scale), result.zero_point)
    clamped = (result.lo, result.hi) != (-128, 127)
    if value.plain and same and not clamped:
        return tensor
    steps = (*value.functions, *_clamp(result, name), *_quantize(result))
    return add_table(context, tensor, steps, output, float(result.scale), result.zero_point, name)


def _clamp(result: QuantizerTarget, name: str) -> tuple[Step, ...]:
    low, high = ((bound - result.zero_point) * float(result.scale) for bound in (result.lo, result.hi))
    bounds = {"min": low if result.lo > -128 else None, "max": high if result.hi < 127 else None}
    return ({"op": "Clip", "name": name, **bounds},) if (result.lo, result.hi) != (-128, 127) else ()


def _quantize(result: QuantizerTarget) -> tuple[Step, ...]:
    scale, zero_point = float(result.scale), result.zero_point
    name = result.nodes[-1]
    return ({"op": "QuantizeLinear", "name": name, "scale": scale, "zero_point": zero_point, "dtype": "int8"},)


def ratios(*found: np.floating) -> list[float]:
    """Ratios of input and output scales, as operations carry them; `BlockedError` for one beyond float32's range."""
    if not all(SMALLEST_NORMAL <= ratio < inf for ratio in map(float, found)):
        raise BlockedError("the ratio of input and output scales leaves float32's range", "check the scales")
    return [float(ratio) for ratio in found]


def binary(context: Context, op_type: str, name: str, left: Tensor, right: Tensor, result: QuantizerTarget) -> Tensor:
    """Add an Add (of a Sub with its second operand negated, too) or a Mul, whose result's scale is known now."""
    sa, sb, names = np.float32(left.scale), np.float32(right.scale), (left.name, right.name)
    made: Op
    if op_type == "Mul":
        (ratio,) = ratios(np.float32(sa * sb) / result.scale)
        made = Mul(name, names, result.name, result.nodes, ratio, result.lo, result.hi)
    else:
        a, b = ratios(sa / result.scale, sb / result.scale)
        made = Add(name, names, result.name, result.nodes, a, b, result.lo, result.hi)
    return context.put(made, max(left.shape, right.shape, key=prod), result.scale, result.zero_point)


def complement(context: Context, tensor: Tensor, output: str, name: str) -> Tensor:
    """The negated tensor: ``-1 - q`` on the grid of zero point ``-1 - zero_point``."""
    return enter_table(context, tensor, COMPLEMENT, output, tensor.scale, -1 - tensor.zero_point, (name,))


def expanded(context: Context, value: QuantizedView, shape: Shape, name: str) -> QuantizedView:
    """The value in a larger shape, as numpy broadcasts."""
    if value.shape == shape:
        return value
    full = (1,) * (len(shape) - len(value.shape)) + value.shape
    index = np.broadcast_to(np.arange(prod(full)).reshape(full), shape)
    found = moved(context, value, index, f"{value.tensor.name}.expanded", name)
    assert isinstance(found, QuantizedView)
    return found


def placed(context: Context, value: QuantizedView) -> Tensor:
    """The value's own tensor, as `materialise` gives it; a model's input that lies otherwise is loaded so, too."""
    tensor, shape = value.tensor, form(value.shape)
    fed = context.fed(tensor, value.shape)
    if fed is None or (value.moves.index is None and shape[1] == tensor.channels):
        return materialise(context, value)
    whole: Step = {"op": "Reshape", "name": "", "shape": list(tensor.shape)}
    return context.feed(fed, f"{tensor.name}.placed", (whole, *value.moves.steps), tensor.scale, tensor.zero_point)


def aligned_input(context: Context, value: QuantizedView, other: QuantizedView) -> QuantizedView | None:
    """An input of the model loaded so that its elements lie as those of `other`, of the same shape; None if `value` is
    no input."""
    tensor, like = value.tensor, other.tensor
    fed = context.fed(tensor, like.shape)
    if fed is None or value.shape != other.shape:
        return None
    whole: Step = {"op": "Reshape", "name": "", "shape": list(tensor.shape)}
    steps = (whole, *value.moves.steps, *other.moves.back(like.shape))
    laid = context.feed(fed, f"{tensor.name}.beside", steps, tensor.scale, tensor.zero_point)
    return replace(value, tensor=laid, moves=other.moves)


def broadcast(shapes: list[Shape]) -> Shape:
    """The common shape; `BlockedError` if there is none."""
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*shapes))
    except ValueError:
        raise BlockedError(f"operands of shapes {' and '.join(str(list(s)) for s in shapes)} do not match") from None


def real(value: Value) -> QuantizedView | Unquantized:
    """A real value of the hardware; `BlockedError` for any other."""
    if isinstance(value, QuantizedView) and value.integer:
        raise BlockedError("its input is an integer tensor", "put it between DequantizeLinear and QuantizeLinear")
    if not isinstance(value, (QuantizedView, Unquantized)):
        raise BlockedError("its input is not quantized", "put QuantizeLinear and DequantizeLinear on every activation")
    return value
