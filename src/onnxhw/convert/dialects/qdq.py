"""QuantizeLinear and DequantizeLinear: where real values become IR tensors and back.

DQ -> op -> [Relu | Clip]* -> Q     an IR operation with a clamp
DQ -> elementwise* -> Q             a table, filled by the ONNX formulas
DQ -> Q with the same parameters    nothing
input -> Q                          an input port

`into` and `out_of` are the same for values, for the other dialects.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ... import fixed
from ...errors import InvalidModelError, UsageError
from ...ir.graph import Table, Tensor
from ...ir.steps import apply
from ...onnxmodel.nodes import Node
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import (
    EVERY,
    Array,
    AxisMoves,
    Const,
    Floats,
    GraphInput,
    HostValue,
    Ints,
    QuantConst,
    QuantizedView,
    QuantizerTarget,
    Step,
    Unquantized,
    Value,
)
from .parameters import RANGES, SMALLEST_NORMAL, ActivationGrid, Parameters, bounded, check_scale, dtype_name

__all__ = ["HANDLERS", "SMALLEST_NORMAL", "add_table", "check_scale", "dequantized", "into", "out_of", "quantized"]


def quantize(context: Context, node: Node) -> Value:
    """QuantizeLinear."""
    value, parameters = context.required(node, 0), Parameters.of(context, node)
    return quantized(context, value, parameters, node.label, node.output[0])


def quantized(context: Context, value: Value, parameters: Parameters, name: str, output: str) -> Value:
    """The real `value` as the QuantizeLinear `name` makes it its result `output`."""
    if isinstance(value, QuantConst):
        value = Const(value.real())
    if isinstance(value, Const):
        return _fold(value, parameters, name)
    if isinstance(value, HostValue):
        if value.dtype != "float32":
            raise BlockedError(f"quantizes {value.dtype}")
        if parameters.dtype not in ("int8", "uint8"):
            raise BlockedError(f"quantizes to {parameters.dtype} at the model's edge")
        grid = parameters.activation(value.shape, name)
        host: Step = {**_step("QuantizeLinear", name, grid), "dtype": parameters.dtype}
        step: Step = {**host, "zero_point": int(parameters.zero_point.item())}
        return replace(value, steps=(*value.steps, step), dtype=parameters.dtype)
    return into(context, value, parameters.activation(value.shape, name), name, output)


def into(
    context: Context,
    value: Value,
    grid: ActivationGrid,
    name: str,
    output: str,
    formula: Callable[[Floats], Ints] | None = None,
) -> QuantizedView:
    """The real `value` on `grid`, as QuantizeLinear puts it there, or `formula`: the integers, as tensor `output`."""
    if isinstance(value, Unquantized):
        lo, hi = grid.lo, grid.hi
        if value.clamps:
            clamps = tuple(tuple(item for item in step.items() if item[0] != "name") for step in value.clamps)
            lo, hi = (max(lo, min(q, hi)) for q in _ends(clamps, float(grid.scale), grid.zero_point))
        nodes = tuple(dict.fromkeys((*value.nodes, name)))
        result = QuantizerTarget(output, grid.scale, grid.zero_point, lo, hi, nodes, formula)
        return QuantizedView(value.finish(result), value.moves, unsigned=grid.unsigned)
    step: Step = {**_step("QuantizeLinear", name, grid), "dtype": "int8"}
    last: tuple[Step, ...] = (step,)
    if not grid.whole:
        low, high = ((bound - grid.zero_point) * float(grid.scale) for bound in (grid.lo, grid.hi))
        last = ({"op": "Clip", "name": name, "min": low, "max": high}, step)
    if isinstance(value, GraphInput):
        back = tuple(range(len(value.shape)))
        if output in context.channels_last and len(back) > 2:  # the host turns it, the value is seen as it was
            perm, back = (0, back[-1], *back[1:-1]), (0, *back[2:], 1)
            turn: Step = {"op": "Transpose", "name": name, "perm": list(perm)}
            value = replace(value, shape=tuple(value.shape[axis] for axis in perm), steps=(*value.steps, turn))
        tensor = context.feed(value, output, last, float(grid.scale), grid.zero_point)
        context.ranges[tensor.name] = grid.lo, grid.hi
        moves = AxisMoves.of(tensor.shape, value.shape)
        moves = moves if back == tuple(sorted(back)) else moves.transpose(back, name)
        return QuantizedView(tensor, moves, unsigned=grid.unsigned)
    if isinstance(value, QuantizedView):
        if value.integer:
            raise BlockedError("quantizes integers")
        if value.plain and grid.whole and same_grid(value.tensor, grid):
            return QuantizedView(value.tensor, value.moves, (), grid.unsigned)
        steps = (*value.functions, *last)
        tensor = add_table(context, value.tensor, steps, output, float(grid.scale), grid.zero_point, name)
        return QuantizedView(tensor, value.moves, unsigned=grid.unsigned)
    raise BlockedError("quantizes a value that is not real")


@lru_cache(maxsize=1024)
def _ends(clamps: tuple[tuple[tuple[str, Any], ...], ...], scale: float, zero_point: int) -> tuple[int, int]:
    """The smallest and the largest integer after some clamps."""
    ends = apply([{"name": "", **dict(step)} for step in clamps], np.array([-np.inf, np.inf], np.float32))
    low, high = fixed.quantize(ends, np.float32(scale), zero_point)
    return int(low), int(high)


def dequantize(context: Context, node: Node) -> Value:
    """DequantizeLinear."""
    value, parameters = context.required(node, 0), Parameters.of(context, node)
    return dequantized(context, value, parameters, node.label, node.input[0], node.output[0])


def dequantized(context: Context, value: Value, parameters: Parameters, name: str, source: str, output: str) -> Value:
    """The integers `value`, called `source`, as the DequantizeLinear `name` makes them its result `output`."""
    if isinstance(value, QuantizedView):  # first, for it is by far the most frequent
        if not parameters.explicit:
            parameters = parameters.typed("uint8" if value.unsigned else "int8")
        return out_of(context, value, parameters.activation(value.shape, name), name, source, output)
    if isinstance(value, Const):
        if parameters.explicit and dtype_name(value.array.dtype) != parameters.dtype:
            raise InvalidModelError(
                "E3023", f"zero point is {parameters.dtype}, the integers are {value.array.dtype}", where=name
            )
        return parameters.constant(value.array, name)
    if isinstance(value, GraphInput):
        if value.dtype not in ("int8", "uint8"):
            raise BlockedError(f"its input is {value.dtype}", "feed int8, uint8 or float32")
        parameters = parameters.typed(value.dtype)
    grid = parameters.activation(value.shape, name)
    if isinstance(value, HostValue):
        if value.dtype not in ("int8", "uint8"):
            raise BlockedError(f"its input is {value.dtype}")
        step = {**_step("DequantizeLinear", name, grid), "zero_point": int(parameters.zero_point.item())}
        return replace(value, steps=(*value.steps, step), dtype="float32")
    return out_of(context, value, grid, name, source, output)


def out_of(context: Context, value: Value, grid: ActivationGrid, name: str, source: str, output: str) -> QuantizedView:
    """The integers `value`, called `source`, as the real numbers that DequantizeLinear makes of them."""
    step = _step("DequantizeLinear", name, grid)
    if isinstance(value, GraphInput):
        last: tuple[Step, ...] = ({"op": "ToInt8", "name": name},) if grid.unsigned else ()
        tensor = context.feed(value, source, last, float(grid.scale), grid.zero_point)
        return QuantizedView(tensor, AxisMoves.of(tensor.shape, value.shape), (step,))
    if isinstance(value, QuantizedView) and value.integer:
        if grid.unsigned != value.unsigned:
            raise BlockedError("the zero point's type is not that of the integers")
        tensor = value.tensor
        if not same_grid(tensor, grid):
            tensor = add_table(context, tensor, (), output, float(grid.scale), grid.zero_point, name)
        return QuantizedView(tensor, value.moves, (step,))
    raise BlockedError("dequantizes a value that is not quantized")


def same_grid(tensor: Tensor, grid: ActivationGrid) -> bool:
    """Do tensor and grid agree on scale and zero point?"""
    return (tensor.scale, tensor.zero_point) == (float(grid.scale), grid.zero_point)


def add_table(
    context: Context, tensor: Tensor, steps: tuple[Step, ...], name: str, scale: float, zero_point: int, node: str
) -> Tensor:
    """The tensor after `steps`, elementwise from int8 to int8, as a 256-entry table."""
    plain = [{key: value for key, value in step.items() if key != "name"} for step in steps]
    key = ("table", repr(plain))
    table: Array | None = context.tables.get(key)
    if table is None:
        try:
            with np.errstate(all="ignore"):
                table = apply(steps, EVERY).astype(np.int8)
        except UsageError as error:
            raise BlockedError(f"its function has no quantized value everywhere: {error.what}") from error
        context.tables[key] = table
    nodes = tuple(dict.fromkeys([*(step["name"] for step in steps), node]))
    return enter_table(context, tensor, table, name, scale, zero_point, nodes)


def enter_table(
    context: Context,
    tensor: Tensor,
    table: Array,
    name: str,
    scale: float,
    zero_point: int,
    nodes: tuple[str, ...],
) -> Tensor:
    """Add a table, its entries for -128 to 127, and the tensor that it makes; it is named by the last of `nodes`."""
    made = Table(nodes[-1], (tensor.name,), name, nodes, table.astype(np.int8))
    return context.put(made, tensor.shape, scale, zero_point)


def _step(op: str, name: str, grid: ActivationGrid) -> Step:
    return {"op": op, "name": name, "scale": float(grid.scale), "zero_point": grid.zero_point}


def _fold(value: Const, parameters: Parameters, name: str) -> Const:
    kind = dtype_name(value.array.dtype)
    if kind not in ("float32", "float16", "bfloat16", "int32"):
        raise BlockedError(f"quantizes a {kind} constant to {parameters.dtype}")
    low, high = RANGES[parameters.dtype]
    scale, zero_point = parameters.spread(value.array.shape, name)
    real = bounded(value.array).astype(np.float32)
    if np.isnan(real).any():
        raise BlockedError("quantizes a constant with NaN, which has no quantized value")
    rounded = np.rint(real / scale).astype(np.float64)
    integers = np.clip(rounded + zero_point, low, high)
    return Const(integers.astype(np.int64).astype(np.dtype(parameters.dtype)))


HANDLERS: Handlers = {
    ("", "QuantizeLinear"): quantize,
    ("", "DequantizeLinear"): dequantize,
    ("com.microsoft", "QuantizeLinear"): quantize,
    ("com.microsoft", "DequantizeLinear"): dequantize,
}
