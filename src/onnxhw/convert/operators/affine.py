"""Conv, Gemm and MatMul with constant weights: all become an IR `Conv`. MatMul of two activations is `product`."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import fixed
from ...errors import InvalidModelError
from ...ir.graph import Array8, Conv, Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..dialects.qdq import SMALLEST_NORMAL
from ..reach import reach
from ..values import Const, Floats, Held, Ints, Moves, Pending, QuantConst, Result, Value
from .matmul import product
from .operands import placed
from .window import Window, window

SCALE_TOLERANCE = 2.0**-20
"""Largest relative difference between a bias's scale and input scale times weight scale (8 float32 steps)."""
MOST_PARTS = 3
"""Most int8 parts of a weight; 3 hold every uint8 weight, whatever its zero point."""
FLAT = Window((1, 1), (1, 1), (1, 1), (0, 0, 0, 0))


@dataclass(frozen=True)
class Affine:
    """A convolution that waits for its result's scale.

    `weight` is ``[O, I / groups, KH, KW]``, sums of at most `MOST_PARTS` int8.
    """

    context: Context
    name: str
    tensor: Tensor
    weight: Ints | Array8
    scale: Floats
    bias: Const | QuantConst | None
    window: Window
    groups: int = 1

    def finish(self, result: Result) -> Tensor:
        """Add the IR operation."""
        outputs = len(self.weight)
        combined, multiplier = self._scales(result)
        bias, error = integer_bias(self.bias, combined, outputs)
        self.check_sums(bias)
        if error.any():
            self.context.note_rounded(result.nodes[0], float((error / float(result.scale)).max()))
        return self.added(result, bias, multiplier)

    def added(self, result: Result, bias: Ints, multiplier: Floats) -> Tensor:
        """Add the IR operation with these constants per output channel, and the tensor that it makes."""
        rows, cols = self.window.size((self.tensor.height, self.tensor.width))
        source, weight = self._in_parts(result.nodes)
        shape = (1, len(self.weight), rows, cols)
        out = self.context.tensor(result.name, shape, float(result.scale), result.zero_point)
        self.context.add(
            Conv(
                self.name,
                (source.name,),
                out.name,
                result.nodes,
                weight,
                bias.astype(np.int32),
                multiplier,
                self.window.strides,
                self.window.dilations,
                self.window.pads,
                self.groups,
                result.lo,
                result.hi,
            )
        )
        return out

    def interval(self, bias: Ints, inputs: bool = True) -> tuple[Ints, Ints]:
        """The least and the greatest sum of each output channel, bias included; `inputs` as in `reach`."""
        zero, count = self.tensor.zero_point, len(self.weight)
        low, high = (value - zero for value in reach(self.context, self.tensor, inputs))
        if max(self.window.pads) > 0:
            low, high = min(low, 0), max(high, 0)
        weight = self.weight.astype(np.int64).reshape(count, -1)
        up, down = np.maximum(weight, 0).sum(axis=1), np.minimum(weight, 0).sum(axis=1)
        return up * low + down * high + bias, up * high + down * low + bias

    def provable(self, bias: Ints, multiplier: Floats) -> bool:
        """Has the hardware constants for these entries, whatever the inputs hold?"""
        try:
            for low, high, factor in zip(*self.interval(bias, inputs=False), multiplier, strict=True):
                fixed.scale_for_requantize(float(factor), int(low), int(high))
        except fixed.NotProvable:
            return False
        return True

    def _scales(self, result: Result) -> tuple[Floats, Floats]:
        """Input scale * weight scale, and that / output scale; made once for all operations with the same."""
        key = ("scales", self.tensor.scale, self.scale.shape, self.scale.tobytes(), float(result.scale))
        found: tuple[Floats, Floats] | None = self.context.tables.get(key)
        if found is None:
            combined = np.float32(self.tensor.scale) * self.scale
            multiplier = (combined / result.scale).astype(np.float32)
            if not (multiplier.min() >= SMALLEST_NORMAL and multiplier.max() < np.inf):  # nor is NaN
                what = "input scale * weight scale / output scale leaves float32's range"
                raise BlockedError(what, "check the scales")
            found = self.context.tables[key] = combined, multiplier
        return found

    def _in_parts(self, nodes: tuple[str, ...]) -> tuple[Tensor, Array8]:
        """Input and int8 weights; weights beyond int8 are sums of parts, each with its copy of the input's channels.

        Before: ``sum(x[i] * w[i])``. After: ``sum(x'[n i + k] * part_k[i])`` with ``x'[n i + k] = x[i]``, made by a
        depthwise convolution of ones, which is exact: one product of 1, multiplier 1, the same zero point.
        """
        parts = split(self.weight)
        old, count = self.tensor, len(parts)
        if count == 1:
            return old, parts[0]
        self.context.parts[self.name] = count
        channels = old.channels * count
        new = self.context.tensor(f"{old.name}.copies", (1, channels, *old.shape[2:]), old.scale, old.zero_point)
        ones = np.ones((channels, 1, 1, 1), np.int8)
        zeros, unit = np.zeros(channels, np.int32), np.ones(channels, np.float32)
        copy = Conv(new.name, (old.name,), new.name, nodes, ones, zeros, unit, groups=old.channels)
        self.context.add(copy)
        shape = (self.weight.shape[0], self.weight.shape[1] * count, *self.weight.shape[2:])
        return new, np.stack(parts, axis=2).reshape(shape)

    def check_sums(self, bias: Ints) -> None:
        """`BlockedError` if a sum can leave 32 bits."""
        reach = max(127 - self.tensor.zero_point, 128 + self.tensor.zero_point)
        if self.weight.dtype == np.int8 and self.bias is None and self.weight[0].size * 128 * reach < 1 << 31:
            return
        largest = np.abs(bias) + np.abs(self.weight.astype(np.int64)).sum(axis=(1, 2, 3)) * reach
        if int(largest.max(initial=0)) >= 1 << 31:
            raise BlockedError(
                f"the sum of channel {int(largest.argmax())} can exceed 32 bits",
                "lower the bias or the number of inputs",
            )


def split(weight: Ints | Array8) -> list[Array8]:
    """As few int8 arrays as possible whose sum is the weights."""
    if weight.dtype == np.int8 or (weight.size and weight.min() >= -128 and weight.max() <= 127):
        return [weight.astype(np.int8)]
    rest, parts = weight.astype(np.int64), []
    while True:
        part = np.clip(rest, -128, 127)
        parts.append(part.astype(np.int8))
        rest = rest - part
        if not rest.any():
            return parts


def pending(affine: Affine, moves: Moves) -> Pending:
    """The value of an affine operation; it takes a bias later if it has none, and functions per channel."""
    from .chain import Chain  # it needs this class

    def with_bias(bias: Const | QuantConst) -> Pending:
        return pending(replace(affine, bias=bias), moves)

    later = with_bias if affine.bias is None else None
    return Pending(affine.finish, moves, (affine.name,), (), later, len(affine.weight), Chain(affine))


def integer_bias(
    bias: Const | QuantConst | None, combined: Floats, outputs: int
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """The bias in units of input scale * weight scale, and by how much real number it is another.

    The integers of an int32 bias whose scale is that product (within `SCALE_TOLERANCE`), or those that stand for
    exactly the same in float32; otherwise what QuantizeLinear gives: the quotient in float32, rounded half to even.
    `BlockedError` beyond int32.
    """
    exact = np.zeros(outputs)
    if bias is None:
        return np.zeros(outputs, np.int64), exact
    if isinstance(bias, QuantConst) and not bias.along(bias.zero_point).any():
        scale = np.broadcast_to(bias.along(bias.scale), bias.shape)
        scale, q = _per_output(scale, outputs), _per_output(bias.q, outputs)
        if np.all(np.abs(scale.astype(np.float64) - combined) <= SCALE_TOLERANCE * combined):
            return q.astype(np.int64), exact
    real = _per_output(bias.real() if isinstance(bias, QuantConst) else bias.array, outputs)
    real = real.astype(np.float32)
    ratio = real.astype(np.float64) / combined
    q = np.rint(ratio)
    same = q.astype(np.float32) * combined == real
    q = np.where(same, q, np.rint(real / combined))
    if not bool(np.all(np.abs(q) < 2**31)):  # nor is NaN
        raise BlockedError(
            "the bias in units of input scale * weight scale leaves 32 bits",
            "give channels of small weights a larger scale, as onnxhw quantize does",
        )
    return q.astype(np.int64), np.where(same, 0.0, np.abs(q - ratio) * combined)


def _per_output(values: npt.NDArray[Any], outputs: int) -> npt.NDArray[Any]:
    """A bias of shape [], [1], [O], [1, O] or [1, O, 1, 1] as [O]; of shape [O, 1] it is one of each row of a Gemm."""
    rows = values.ndim == 2 and len(values) > 1
    if rows or values.size not in (1, outputs) or max(values.shape, default=1) not in (1, outputs):
        raise BlockedError(f"a bias of shape {list(values.shape)} does not fit {outputs} outputs")
    return np.broadcast_to(values.ravel(), (outputs,))


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
    tensor = context.materialise(x)
    weight = q.reshape(*q.shape[:2], *made.kernel)
    affine = Affine(context, where, tensor, weight, scale, _bias(context, node, 2), made, groups)
    shape = made.size((tensor.height, tensor.width))
    out = (1, len(q), *shape)
    return pending(affine, Moves.of(out, out if q.ndim == 4 else (1, len(q), shape[1])))


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
    x: Held,
    weight: Ints | Array8,
    scale: Floats,
    bias: Const | QuantConst | None,
    shape: Shape,
) -> Pending:
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
        return pending(whole, Moves.of((1, outputs, 1, 1), shape))
    pixels = int(np.prod(x.shape[:-1]))
    last = np.arange(inputs)[None, :] * pixels + np.arange(pixels)[:, None]
    if x.moves.index is None or not np.array_equal(x.moves.index.reshape(-1, inputs), last):
        first = x.moves.reshape((1, pixels, inputs), name).transpose((0, 2, 1), name)
        tensor = placed(context, replace(x, moves=first))
    # Channels last: the same matrix on every pixel.
    pointwise = make(tensor, weight.reshape(outputs, inputs, 1, 1), scale, bias, FLAT)
    moves = Moves.of((1, outputs, tensor.height, tensor.width), (1, outputs, pixels)).transpose((0, 2, 1), name)
    return pending(pointwise, moves.reshape(shape, name))


HANDLERS: Handlers = {
    ("", "Conv"): conv,
    ("", "Gemm"): gemm,
    ("", "MatMul"): matmul,
}
