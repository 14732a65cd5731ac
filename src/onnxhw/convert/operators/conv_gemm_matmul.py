"""Conv, Gemm and MatMul with constant weights: all become an IR `Conv`. MatMul of two activations is `product`."""

from dataclasses import replace
from functools import partial

import numpy as np

from ...errors import InvalidModelError
from ...ir.graph import Array8
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import AxisMoves, Const, Floats, Ints, QuantConst, QuantizedView, Unquantized, Value
from .affine_sum import FLAT, MOST_PARTS, Affine
from .arrange import materialise
from .chain import Chain
from .matmul import product
from .operands import placed
from .window import Window, window


def pending(affine: Affine, moves: AxisMoves) -> Unquantized:
    """The value of an affine operation; it takes a bias later if it has none, and functions per channel."""
    def with_bias(bias: Const | QuantConst) -> Unquantized:
        return pending(replace(affine, bias=bias), moves)

    later = with_bias if affine.bias is None else None
    return Unquantized(affine.finish, moves, (affine.name,), (), later, len(affine.weight), Chain(affine))


def weights(value: Value, axis: int, where: str, parts: int = 1) -> tuple[Ints | Array8, Floats]:
    """Constant weights without zero point, sums of at most `parts` int8, and one scale per entry of `axis`."""
    if not isinstance(value, QuantConst):
        if isinstance(value, Const):
            raise BlockedError("the weights are not quantized", "quantize the weights too (QDQ format)")
        raise BlockedError("the weights are not constant")
    narrow = value.q.dtype == np.int8 and not value.zero_point.any()
    q = value.q if narrow else value.centred()
    if q.ndim <= axis:
        raise BlockedError(f"the weights have shape {list(q.shape)}", "use a matrix of two dimensions")
    low, high = (int(q.min()), int(q.max())) if q.size and not narrow else (0, 0)
    if q.size == 0 or low < -128 * parts or high > 127 * parts:
        raise BlockedError(
            f"weights less their zero point leave {-128 * parts}..{127 * parts}",
            "quantize weights symmetrically to int8",
        )
    if value.axis not in (None, axis):
        raise BlockedError(
            f"weights are quantized along axis {value.axis}, not along the output channels ({axis})",
            "quantize weights per tensor or per output channel",
        )
    scale = np.empty(q.shape[axis], np.float32)
    scale[:] = value.scale.ravel()
    return (q.astype(np.int8) if low >= -128 and high <= 127 else q), scale


def _bias(context: Context, node: Node, index: int) -> Const | QuantConst | None:
    value = context.operand(node, index)
    if value is None or isinstance(value, (Const, QuantConst)):
        return value
    raise BlockedError("the bias is not constant")


def conv(context: Context, node: Node) -> Value:
    """Conv, 1-D or 2-D, any groups."""
    found, where = node.attributes, node.label
    x = context.quantized(node, 0)
    q, scale = weights(context.required(node, 1), 0, where, MOST_PARTS)
    if len(x.shape) != q.ndim or q.ndim < 3:
        raise BlockedError(f"input of rank {len(x.shape)} and weights of rank {q.ndim} make no convolution")
    kernel = tuple(found.get("kernel_shape", q.shape[2:]))
    if kernel != q.shape[2:]:
        raise InvalidModelError(
            "E3030", f"kernel_shape {list(kernel)} is not that of the weights {list(q.shape)}", where=where
        )
    groups = int(found.get("group", 1))
    if groups < 1 or q.shape[0] % groups or q.shape[1] * groups != x.shape[1]:
        raise InvalidModelError(
            "E3032", f"group {groups} and weights {list(q.shape)} do not fit {x.shape[1]} channels", where=where
        )
    made = window(found, kernel, x.shape[2:], where)
    tensor = materialise(context, x)
    weight = q.reshape(*q.shape[:2], *made.kernel)
    affine = Affine(context, where, tensor, weight, scale, _bias(context, node, 2), made, groups)
    shape = made.size((tensor.height, tensor.width))
    out = (1, len(q), *shape)
    return pending(affine, AxisMoves.of(out, out if q.ndim == 4 else (1, len(q), shape[1])))


def gemm(context: Context, node: Node) -> Value:
    """Gemm with constant B and C."""
    found, where = node.attributes, node.label
    x = context.quantized(node, 0)
    if found.get("transA", 0):
        raise BlockedError("transA is set", "transpose the input instead")
    if found.get("alpha", 1.0) != 1.0 or (found.get("beta", 1.0) != 1.0 and len(node.input) > 2):
        raise BlockedError("alpha and beta must be 1", "fold them into the weights and the bias")
    transposed = bool(found.get("transB", 0))
    q, scale = weights(context.required(node, 1), 0 if transposed else 1, where, MOST_PARTS)
    if q.ndim != 2:
        raise BlockedError(f"the matrix has shape {list(q.shape)}", "use a matrix of two dimensions")
    return _matrix(
        context,
        where,
        x,
        q if transposed else q.T,
        scale,
        _bias(context, node, 2),
        (*x.shape[:-1], q.shape[0 if transposed else 1]),
    )


def matmul(context: Context, node: Node) -> Value:
    """MatMul with a constant matrix on the right, or of two activations."""
    value = context.required(node, 1)
    if not isinstance(value, (Const, QuantConst)):
        return product(context, node)
    x = context.quantized(node, 0)
    axis = len(value.shape or ()) - 1
    q, scale = weights(value, axis, node.label, MOST_PARTS)
    if q.ndim < 2 or any(size != 1 for size in q.shape[:-2]):
        raise BlockedError(f"the matrix has shape {list(q.shape)}", "use a matrix of two dimensions")
    leading = (1,) * (q.ndim - max(len(x.shape), 2))  # of a matrix with more dimensions than what it multiplies
    shape = *leading, *x.shape[:-1], q.shape[-1]
    return _matrix(context, node.label, x, q.reshape(q.shape[-2:]).T, scale, None, shape)


def _matrix(
    context: Context,
    name: str,
    x: QuantizedView,
    weight: Ints | Array8,
    scale: Floats,
    bias: Const | QuantConst | None,
    shape: Shape,
) -> Unquantized:
    """``x @ weight.T`` for x of shape ``(1, ..., K)`` and weight ``[N, K]``."""
    outputs, inputs = weight.shape
    if not x.shape or x.shape[-1] != inputs:
        raise BlockedError(f"input of shape {list(x.shape)} does not fit a matrix of {inputs} rows")
    tensor = x.tensor
    make = partial(Affine, context, name)
    if all(size == 1 for size in x.shape[:-1]):
        # A kernel as large as the input; its weights take the place to which the moves put their elements.
        order = np.arange(inputs) if x.moves.index is None else x.moves.index.ravel()
        kernels = np.zeros((outputs, inputs), np.int64)
        kernels[:, order] = weight
        kernel = (tensor.height, tensor.width)
        whole = make(
            tensor,
            kernels.reshape(outputs, tensor.channels, *kernel),
            scale,
            bias,
            Window(kernel, (1, 1), (1, 1), (0, 0, 0, 0)),
        )
        return pending(whole, AxisMoves.of((1, outputs, 1, 1), shape))
    pixels = int(np.prod(x.shape[:-1]))
    last = np.arange(inputs)[None, :] * pixels + np.arange(pixels)[:, None]
    if x.moves.index is None or not np.array_equal(x.moves.index.reshape(-1, inputs), last):
        first = x.moves.reshape((1, pixels, inputs), name).transpose((0, 2, 1), name)
        tensor = placed(context, replace(x, moves=first))
    # Channels last: the same matrix on every pixel.
    pointwise = make(tensor, weight.reshape(outputs, inputs, 1, 1), scale, bias, FLAT)
    moves = AxisMoves.of((1, outputs, tensor.height, tensor.width), (1, outputs, pixels)).transpose((0, 2, 1), name)
    return pending(pointwise, moves.reshape(shape, name))


HANDLERS: Handlers = {
    ("", "Conv"): conv,
    ("", "Gemm"): gemm,
    ("", "MatMul"): matmul,
}
