"""ReduceMean, ReduceSum, ReduceMax and ReduceMin: windows as large as what is reduced.

a row per position        as the tensor lies, [1, C, L], the axes turned: what MatMul makes is no movement
over pixels               AveragePool; MaxPool; for a minimum the MaxPool of complements
a sum, or over channels   Conv with weights of 1
maximum over channels     Max of the tensor and itself with the channels turned by 1, 2, 4, ...
"""

from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeVar

import numpy as np

from ...ir.graph import Conv, Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers, Reduced
from ..values import AxisMoves, QuantizedView, QuantizerTarget, Unquantized, Value, form
from .arrange import arrange, materialise
from .elementwise import greatest
from .function_mean import mean_of_function
from .layout import channels_first
from .operands import complement, on_grid, plain, ratios, real
from .pool import average, maximum
from .window import Window

Turned = TypeVar("Turned", QuantizedView, QuantizedView | Unquantized)


def reduce(context: Context, node: Node) -> Value:
    """ReduceMean, ReduceSum, ReduceMax, ReduceMin over any axes but the batch.

    A mean of means that are not quantized (``x.mean(3).mean(2)``) is one over all their axes, and so is a sum of sums.
    """
    value = context.required(node, 0)
    shape = value.shape or ()
    axes = _axes(context, node, len(shape))
    if not axes:
        return real(value)
    if axes[0] == 0 and shape[0] != 1:  # a vector's only axis too: it lies along the channels
        raise BlockedError("it reduces the first axis, along which samples lie", "give the tensor a first axis of 1")
    wanted = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if not node.attributes.get("keepdims", 1):
        wanted = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    whole = _whole(context, node, axes, len(shape))
    if whole.source != node.input[0]:
        node = Node(node.op_type, [whole.source, *node.input[1:]], node.output, node.label)
        value, axes = context.required(node, 0), [*whole.axes]
        shape = value.shape or ()
    context.reduced[node.output[0]] = whole
    turn = _turn(value)
    shape, axes = tuple(shape[axis] for axis in turn), sorted(turn.index(axis) for axis in axes)
    window = over(shape, axes)
    channels = 1 in axes and form(shape)[1] > 1
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    found: QuantizedView | Unquantized
    name = node.label
    if node.op_type in ("ReduceMax", "ReduceMin"):
        least = node.op_type == "ReduceMin"
        if least or channels:
            finish = partial(extremum, context, name, _turned(real(value), turn), window, channels, least)
            found = Unquantized(finish, AxisMoves.of(form(kept), kept), (name,))
        else:
            held = value if isinstance(value, QuantizedView) and value.integer else real(value)
            found = maximum(context, _turned(held, turn), window, node.output[0], name)
    elif (
        node.op_type == "ReduceMean" and not channels and turn == tuple(range(len(shape)))
        and (mean := mean_of_function(context, value, window, name)) is not None
    ):  # fmt: skip
        found = mean
    else:
        tensor = materialise(context, _turned(plain(context, node, 0), turn))
        if node.op_type == "ReduceMean" and not channels:
            found = average(context, name, shape, tensor, window)
        else:
            count = int(np.prod([shape[axis] for axis in axes])) if node.op_type == "ReduceMean" else 1
            finish = partial(total, context, name, tensor, window, channels, count)
            found = Unquantized(finish, AxisMoves.of(form(kept), kept), (name,))
    moves = found.moves if turn == tuple(sorted(turn)) else found.moves.reshape(kept, name).transpose(_back(turn), name)
    moves = moves.reshape(wanted, name)
    if isinstance(found, QuantizedView):
        return QuantizedView(found.tensor, moves, found.functions, found.unsigned)
    return Unquantized(found.finish, moves, whole.nodes)


def _whole(context: Context, node: Node, axes: list[int], rank: int) -> Reduced:
    """What a node reduces, with what was reduced before in the same way and not quantized."""
    before = context.reduced.get(node.input[0]) if isinstance(context.values[node.input[0]], Unquantized) else None
    alike = before is not None and before.op_type == node.op_type in ("ReduceMean", "ReduceSum")
    if before is None or not alike:
        every = tuple(range(rank))
        before = Reduced(node.op_type, node.input[0], (), every, ())
    kept = before.kept
    if not node.attributes.get("keepdims", 1):
        kept = tuple(source for axis, source in enumerate(kept) if axis not in axes)
    over_all = tuple(sorted({*before.axes, *(before.kept[axis] for axis in axes)}))
    return Reduced(node.op_type, before.source, over_all, kept, (*before.nodes, node.label))


def _turn(value: Value) -> tuple[int, ...]:
    """The order of the axes in which the value is reduced: channels that are its last axis come before the pixels."""
    order = tuple(range(len(value.shape or ())))
    if isinstance(value, (QuantizedView, Unquantized)) and value.moves.index is not None:
        turned = channels_first([value])
        if turned is not None:
            return 0, order[-1], *order[1:-1]
    return order


def _back(turn: tuple[int, ...]) -> tuple[int, ...]:
    """The order that undoes `turn`."""
    return tuple(turn.index(axis) for axis in range(len(turn)))


def _turned(value: Turned, turn: tuple[int, ...]) -> Turned:
    """The value with its axes in this order."""
    return value if turn == tuple(sorted(turn)) else replace(value, moves=value.moves.transpose(turn))


def _axes(context: Context, node: Node, rank: int) -> list[int]:
    """The axes, without the batch; they are an attribute in older operator sets, an input in newer ones."""
    found = node.attributes
    given = context.constant(node, 1)
    listed = found.get("axes", []) if given is None else given.ravel().tolist()
    if not listed:
        if found.get("noop_with_empty_axes", 0):
            return []
        listed = list(range(rank))
    if not rank:
        raise BlockedError("its input is a scalar")
    if any(not -rank <= axis < rank for axis in listed):
        raise BlockedError(f"axes {listed} of rank {rank}")
    axes = sorted({int(axis) % rank for axis in listed})
    if axes[0] == 0 and not found.get("keepdims", 1):
        raise BlockedError("it reduces the batch away", "reduce with keepdims, or over the other axes only")
    return axes


def over(shape: Shape, axes: list[int]) -> Window:
    """The window that covers the axes of pixels among `axes` of an ONNX shape."""
    _, _, height, width = form(shape)
    rows = height if len(shape) == 4 and 2 in axes else 1
    cols = width if len(shape) > 2 and len(shape) - 1 in axes else 1
    return Window((rows, cols), (1, 1), (1, 1), (0, 0, 0, 0))


def channel_maximum(context: Context, tensor: Tensor, output: str, name: str) -> Tensor:
    """The maximum over the channels, in every channel: of the tensor and itself turned by 1, 2, 4, ... channels."""
    _, channels, height, width = tensor.shape
    index = np.arange(channels * height * width).reshape(channels, -1)
    turn = 1
    while turn < channels:
        turned = arrange(context, [tensor], np.roll(index, -turn, 0), tensor.shape, f"{output}.turned{turn}", name)
        tensor = greatest(context, [tensor, turned], f"{output}.most{turn}", name, (name,))
        turn *= 2
    return tensor


def total(
    context: Context, name: str, x: Tensor, window: Window, channels: bool, count: int, result: QuantizerTarget
) -> Tensor:
    """Add the convolution of ones of a sum, or of a mean that includes channels, whose result's scale is known now."""
    (multiplier,) = ratios(np.float32(x.scale / np.float64(result.scale) / count))
    outputs = groups = 1 if channels else x.channels
    weight = np.ones((outputs, x.channels if channels else 1, *window.kernel), np.int8)
    zeros, scales = np.zeros(outputs, np.int32), np.full(outputs, multiplier, np.float32)
    made = Conv(name, (x.name,), result.name, result.nodes, weight, zeros, scales, groups=groups)
    shape = (1, outputs, *window.size((x.height, x.width)))
    return context.put(replace(made, lo=result.lo, hi=result.hi), shape, result.scale, result.zero_point)


def extremum(
    context: Context,
    name: str,
    operand: QuantizedView | Unquantized,
    window: Window,
    channels: bool,
    least: bool,
    result: QuantizerTarget,
) -> Tensor:
    """Add a minimum, or a maximum over channels and perhaps pixels, whose result's scale is known now.

    Rounding to the result's grid is monotone, so the operand is quantized first. The minimum is the complement of the
    maximum of complements.
    """
    tensor = on_grid(context, operand, result, f"{result.name}.input", f"{name}.input")
    if least:
        tensor = complement(context, tensor, f"{result.name}.complement", f"{name}.complement")
    held = QuantizedView(tensor, AxisMoves.of(tensor.shape, tensor.shape))
    most = maximum(context, held, window, f"{result.name}.most", name)
    assert isinstance(most, QuantizedView)
    tensor = most.tensor
    if channels:
        spread = channel_maximum(context, tensor, result.name, name)
        shape = (1, 1, *spread.shape[2:])
        tensor = arrange(context, [spread], np.arange(prod(shape)), shape, f"{result.name}.first", name)
    return complement(context, tensor, result.name, f"{name}.least") if least else tensor


HANDLERS: Handlers = {("", op_type): reduce for op_type in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")}
