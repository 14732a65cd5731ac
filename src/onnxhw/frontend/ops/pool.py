"""Pooling and means over the spatial axes."""

from dataclasses import dataclass

import numpy as np
import onnx

from ...ir.graph import AveragePool, MaxPool, Tensor
from ..blockers import BlockedError
from ..context import Context, attributes, label
from ..quant.qdq import SMALLEST_NORMAL
from ..shapes import Shape
from ..values import Held, Moves, Pending, Result, Value
from .window import Window, window


def max_pool(context: Context, node: onnx.NodeProto) -> Value:
    """MaxPool and GlobalMaxPool, on dequantized values or on the integers: the scale stays."""
    if len(node.output) > 1 and node.output[1]:
        raise BlockedError("the Indices output is used")
    value = context.required(node, 0)
    x = value if isinstance(value, Held) and value.integer else context.quantized(node, 0)
    tensor = context.materialise(x)
    made = _window(node, x.shape)
    if not made.always_inside((tensor.height, tensor.width)):
        raise BlockedError("a window lies wholly in the padding", "reduce the padding")
    rows, cols = made.size((tensor.height, tensor.width))
    out = context.tensor(node.output[0], (1, tensor.channels, rows, cols), tensor.scale, tensor.zero_point)
    name = label(node)
    context.add(MaxPool(name, (tensor.name,), out.name, (name,), made.kernel, made.strides, made.dilations, made.pads))
    return Held(out, _moves(out.shape, x.shape), x.functions, x.unsigned)


def average_pool(context: Context, node: onnx.NodeProto) -> Value:
    """AveragePool and GlobalAveragePool."""
    found = attributes(node)
    x = context.quantized(node, 0)
    tensor = context.materialise(x)
    made, count_pad = _window(node, x.shape), bool(found.get("count_include_pad", 0))
    if count_pad and found.get("ceil_mode", 0):
        floor = _window(node, x.shape, ceil=False)
        if floor != made:
            raise BlockedError("ceil_mode together with count_include_pad", "use explicit pads")
    if not count_pad and not made.always_inside((tensor.height, tensor.width)):
        raise BlockedError("a window lies wholly in the padding", "reduce the padding")
    return _average(context, node, x, tensor, made, count_pad and any(made.pads))


def reduce_mean(context: Context, node: onnx.NodeProto) -> Value:
    """ReduceMean over spatial axes."""
    found = attributes(node)
    x = context.quantized(node, 0)
    axes = context.constant(node, 1)
    listed = found.get("axes", []) if axes is None else axes.tolist()
    rank = len(x.shape)
    wanted = sorted(axis % rank for axis in listed)
    if not wanted or wanted[0] < 2 or rank not in (3, 4):
        raise BlockedError(f"a mean over axes {listed} of rank {rank}", "only spatial axes (2, 3) are supported")
    tensor = context.materialise(x)
    height = tensor.height if rank == 4 and 2 in wanted else 1
    width = tensor.width if rank - 1 in wanted else 1
    value = _average(context, node, x, tensor, Window((height, width), (1, 1), (1, 1), (0, 0, 0, 0)), False)
    if found.get("keepdims", 1):
        return value
    shape = tuple(size for axis, size in enumerate(value.shape) if axis not in wanted)
    return Pending(value.finish, value.moves.reshape(shape, label(node)), value.nodes)


@dataclass(frozen=True)
class Average:
    """An average pooling that waits for its result's scale."""

    context: Context
    name: str
    tensor: Tensor
    window: Window
    count_pad: bool

    def finish(self, result: Result) -> Tensor:
        """Add the IR operation."""
        ratio = np.float32(self.tensor.scale) / result.scale
        if not np.isfinite(ratio) or ratio < SMALLEST_NORMAL:
            raise BlockedError("the ratio of input and output scales leaves float32's range", "check the scales")
        rows, cols = self.window.size((self.tensor.height, self.tensor.width))
        shape = (1, self.tensor.channels, rows, cols)
        out = self.context.tensor(result.name, shape, float(result.scale), result.zero_point)
        made = self.window
        self.context.add(
            AveragePool(
                self.name,
                (self.tensor.name,),
                out.name,
                result.nodes,
                made.kernel,
                made.strides,
                made.dilations,
                made.pads,
                float(ratio),
                self.count_pad,
                result.lo,
                result.hi,
            )
        )
        return out


def _average(context: Context, node: onnx.NodeProto, x: Held, tensor: Tensor, made: Window, count_pad: bool) -> Pending:
    average = Average(context, label(node), tensor, made, count_pad)
    rows, cols = made.size((tensor.height, tensor.width))
    return Pending(average.finish, _moves((1, tensor.channels, rows, cols), x.shape), (average.name,))


def _window(node: onnx.NodeProto, shape: Shape, ceil: bool = True) -> Window:
    found = attributes(node)
    if len(shape) not in (3, 4):
        raise BlockedError(f"pooling over an input of rank {len(shape)}", "use one or two spatial dimensions")
    if node.op_type.startswith("Global"):
        return window({}, shape[2:], shape[2:], label(node))
    if not ceil:
        found = {**found, "ceil_mode": 0}
    return window(found, tuple(found.get("kernel_shape", ())), shape[2:], label(node))


def _moves(out: tuple[int, int, int, int], like: Shape) -> Moves:
    return Moves.of(out, out if len(like) == 4 else (1, out[1], out[3]))
