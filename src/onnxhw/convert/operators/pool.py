"""Pooling and means over the spatial axes."""

import numpy as np

from ...ir.graph import AveragePool, MaxPool, Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import AxisMoves, QuantizedView, QuantizerTarget, Unquantized, Value, form
from .arrange import materialise
from .function_mean import mean_of_function
from .operands import on_grid, plain, ratios, real
from .window import Window, window


def max_pool(context: Context, node: Node) -> Value:
    """MaxPool and GlobalMaxPool, on the integers, on dequantized values, or on any result that waits for its scale."""
    if len(node.output) > 1 and node.output[1]:
        raise BlockedError("the Indices output is used")
    value = context.required(node, 0)
    if not isinstance(value, QuantizedView) or not value.integer:
        value = real(value)
    made = _window(node, value.shape)
    return maximum(context, value, made, node.output[0], node.label)


def maximum(
    context: Context, value: QuantizedView | Unquantized, made: Window, output: str, name: str
) -> QuantizedView | Unquantized:
    """The maximum over a window. It commutes with rounding, so a value that is not a tensor yet is quantized first."""
    plane = form(value.shape)
    if not made.always_inside(plane[2:]):
        raise BlockedError("a window lies wholly in the padding", "reduce the padding")
    shape = (1, plane[1], *made.size(plane[2:]))

    def pool(tensor: Tensor, to: str, nodes: tuple[str, ...]) -> Tensor:
        window = (made.kernel, made.strides, made.dilations, made.pads)
        return context.put(MaxPool(name, (tensor.name,), to, nodes, *window), shape, tensor.scale, tensor.zero_point)

    if isinstance(value, QuantizedView) and (value.integer or value.plain):
        out = pool(materialise(context, value), output, (name,))
        return QuantizedView(out, _moves(shape, value.shape), value.functions, value.unsigned)
    operand = value

    def finish(result: QuantizerTarget) -> Tensor:
        whole = on_grid(context, operand, result, f"{result.name}.input", f"{name}.input")
        return pool(whole, result.name, result.nodes)

    return Unquantized(finish, _moves(shape, value.shape), (name,))


def average_pool(context: Context, node: Node) -> Value:
    """AveragePool and GlobalAveragePool."""
    found = node.attributes
    value = context.required(node, 0)
    if isinstance(value, QuantizedView) and len(value.functions) > 1:
        counted = bool(found.get("count_include_pad", 0)) and not found.get("ceil_mode", 0)
        mean = mean_of_function(context, value, _window(node, value.shape), node.label, counted)
        if mean is not None:
            return mean
    x = plain(context, node, 0)
    tensor = materialise(context, x)
    made, count_pad = _window(node, x.shape), bool(found.get("count_include_pad", 0))
    if count_pad and found.get("ceil_mode", 0):
        floor = _window(node, x.shape, ceil=False)
        if floor != made:
            raise BlockedError("ceil_mode together with count_include_pad", "use explicit pads")
    if not count_pad and not made.always_inside((tensor.height, tensor.width)):
        raise BlockedError("a window lies wholly in the padding", "reduce the padding")
    return average(context, node.label, x.shape, tensor, made, count_pad and any(made.pads))


def average(
    context: Context, name: str, shape: Shape, tensor: Tensor, made: Window, count_pad: bool = False
) -> Unquantized:
    """The mean over a window of a tensor that has the ONNX shape `shape`."""
    out = (1, tensor.channels, *made.size((tensor.height, tensor.width)))

    def finish(result: QuantizerTarget) -> Tensor:
        (ratio,) = ratios(np.float32(tensor.scale) / result.scale)
        window = (made.kernel, made.strides, made.dilations, made.pads)
        fields = *window, ratio, count_pad, result.lo, result.hi
        pool = AveragePool(name, (tensor.name,), result.name, result.nodes, *fields)
        return context.put(pool, out, result.scale, result.zero_point)

    return Unquantized(finish, _moves(out, shape), (name,))


def _window(node: Node, shape: Shape, ceil: bool = True) -> Window:
    found = node.attributes
    if len(shape) not in (3, 4):
        raise BlockedError(f"pooling over an input of rank {len(shape)}", "use one or two spatial dimensions")
    if node.op_type.startswith("Global"):
        return window({}, shape[2:], shape[2:], node.label)
    if not ceil:
        found = {**found, "ceil_mode": 0}
    return window(found, tuple(found.get("kernel_shape", ())), shape[2:], node.label)


def _moves(out: tuple[int, int, int, int], like: Shape) -> AxisMoves:
    return AxisMoves.of(out, out if len(like) == 4 else (1, out[1], out[3]))


HANDLERS: Handlers = {
    ("", "MaxPool"): max_pool,
    ("", "GlobalMaxPool"): max_pool,
    ("", "AveragePool"): average_pool,
    ("", "GlobalAveragePool"): average_pool,
}
