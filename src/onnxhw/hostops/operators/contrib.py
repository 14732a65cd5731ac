"""Quantized operators of com.microsoft, on the numbers of `onnxhw.fixed`.

Add, Mul and the average pools round an exact value once, as the hardware does; onnxruntime rounds in float32 steps, so
that it may differ by one (docs/numerics.md).
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ... import fixed
from ...onnxmodel.pooling import PoolAttributes
from .adapter import Array, HostOp
from .pools import max_pool, view
from .quantized import (
    centred,
    dequantize_linear,
    dynamic_quantize_linear,
    matmul_integer,
    multiplier,
    qlinear_conv,
    quantize_linear,
    requantize,
)

DOMAIN = "com.microsoft"


def _zero(zero_point: Array | None, like: Array) -> Array:
    return np.zeros((), like.dtype) if zero_point is None else zero_point.reshape(-1)[0]


def _int8(zero_point: Array) -> tuple[int, int]:
    """The zero point of the int8 form of a type, and what lies between both."""
    if zero_point.dtype.name not in ("int8", "uint8"):
        raise ValueError(f"type {zero_point.dtype} is not int8 or uint8")
    middle = 128 if zero_point.dtype == np.uint8 else 0
    return int(zero_point) - middle, middle


def _ratio(scale: Array, by: Array) -> float:
    return float(np.float32(scale.reshape(())) / np.float32(by.reshape(())))


def qlinear_binary(
    multiplies: bool,
    a: Array, sa: Array, za: Array | None, b: Array, sb: Array, zb: Array | None, sc: Array, zc: Array | None = None,
) -> Array:  # fmt: skip
    """`fixed.add`; or `fixed.multiply` with the float32 ratio ``sa * sb / sc``."""
    a, b = np.broadcast_arrays(a, b)
    zero, middle = _int8(_zero(zc, a))
    left, right = centred(a, za).astype(np.int64), centred(b, zb).astype(np.int64)
    if multiplies:
        found = fixed.multiply(left, right, float(multiplier(sa, sb, sc).reshape(())), zero)
    else:
        found = fixed.add(left, right, _ratio(sa, sc), _ratio(sb, sc), zero)
    return (found + middle).astype(a.dtype)


def either_layout(function: Callable[..., Array]) -> Callable[..., Array]:
    """An operator whose channels come second, or last if `channels_last` is set."""

    def apply(x: Array, *more: Array | None, channels_last: int = 0, **attributes: Any) -> Array:
        if not channels_last:
            return function(x, *more, **attributes)
        return np.moveaxis(function(np.moveaxis(x, -1, 1), *more, **attributes), 1, -1)

    return apply


def nhwc_max_pool(x: Array, **attributes: Any) -> Array:
    """NhwcMaxPool: MaxPool with the channels last."""
    return np.moveaxis(max_pool(np.moveaxis(x, -1, 1), **attributes)[0], 1, -1)


def qgemm(
    a: Array, sa: Array, za: Array, b: Array, sb: Array, zb: Array, c: Array | None = None,
    sy: Array | None = None, zy: Array | None = None, transA: int = 0, transB: int = 0, alpha: float = 1.0,
) -> Array:  # fmt: skip
    """QGemm: sums and bias in 32 bits, requantized; without `sy` the output is float32."""
    left, right = centred(a, za), centred(b, zb, 0 if transB else 1)
    product = (left.T if transA else left) @ (right.T if transB else right)
    sums = product.astype(np.int64) + (0 if c is None else c.astype(np.int64))
    sums = fixed.wrap(sums, 32)
    scale = np.asarray(np.float32(alpha) * sa.astype(np.float32) * sb.astype(np.float32), np.float32)
    if sy is None:
        return np.asarray(sums.astype(np.float32) * scale, np.float32)
    return requantize(sums, scale / sy.astype(np.float32), np.asarray(_zero(zy, a)))


def qlinear_average_pool(
    x: Array, sx: Array, zx: Array | None, sy: Array, zy: Array | None = None,
    kernel_shape: Sequence[int] = (), strides: Sequence[int] | None = None, pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
) -> Array:  # fmt: skip
    """`fixed.average` of each window: over its taps in the input, or over all of it, as onnxruntime divides, even where
    the last window of `ceil_mode` reaches beyond the padding."""
    pool = PoolAttributes(kernel_shape, strides or (), pads, (), auto_pad, ceil_mode)
    taps = tuple(range(-len(kernel_shape), 0))
    sums = view(pool, centred(x, zx), 0).sum(taps).astype(np.int64)
    inside = np.ones(x.shape, np.int64)
    counts = np.full_like(sums, prod(kernel_shape)) if count_include_pad else view(pool, inside, 0).sum(taps)
    return _average(sums, counts, _ratio(sx, sy), np.asarray(_zero(zy, x)))


def qlinear_global_average_pool(
    x: Array, sx: Array, zx: Array | None, sy: Array, zy: Array | None = None, channels_last: int = 0
) -> Array:
    """`fixed.average` over all spatial axes."""
    axes = range(1, x.ndim - 1) if channels_last else range(2, x.ndim)
    return qlinear_reduce_mean(x, sx, zx, sy, zy, axes)


def qlinear_reduce_mean(
    x: Array, sx: Array, zx: Array | None, sy: Array, zy: Array | None = None,
    axes: Sequence[int] = (), keepdims: int = 1,
) -> Array:  # fmt: skip
    """`fixed.average` over these axes; over all without any."""
    over = tuple(axes) or tuple(range(x.ndim))
    sums = np.asarray(centred(x, zx).sum(over, keepdims=bool(keepdims))).astype(np.int64)
    return _average(sums, np.full_like(sums, x.size // sums.size), _ratio(sx, sy), np.asarray(_zero(zy, x)))


def _average(sums: fixed.Ints, counts: fixed.Ints, ratio: float, zero_point: Array) -> Array:
    zero, middle = _int8(zero_point)
    result = np.zeros(sums.shape, zero_point.dtype)
    for count in np.unique(counts):
        chosen = counts == count
        result[chosen] = fixed.average(sums[chosen], ratio, int(count), zero) + middle
    return result


def _table(function: Callable[..., Array]) -> Callable[..., Array]:
    """An operator that dequantizes, applies a float32 function and quantizes."""

    def apply(x: Array, sx: Array, zx: Array | None, sy: Array, zy: Array | None = None, **attributes: Any) -> Array:
        y = function(dequantize_linear(x, sx, zx), **attributes)
        return quantize_linear(y, sy, np.asarray(_zero(zy, x)))

    return apply


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))), np.float32)


def _leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    return np.where(x >= 0, x, np.float32(alpha) * x)


def _softmax(x: Array, axis: int = -1, opset: int = 13) -> Array:
    axes = tuple(range(axis % x.ndim, x.ndim)) if opset < 13 else (axis,)
    raised = np.exp(x - x.max(axes, keepdims=True))
    return np.asarray(raised / raised.sum(axes, keepdims=True), np.float32)


def qlinear_concat(sy: Array, zy: Array, *operands: Array, axis: int) -> Array:
    """Each operand requantized through float32, then joined."""
    if len(operands) % 3:
        raise ValueError("operands come as tensor, scale, zero point")
    triples = [operands[i : i + 3] for i in range(0, len(operands), 3)]
    return np.concatenate([quantize_linear(dequantize_linear(x, s, z), sy, zy) for x, s, z in triples], axis)


def matmul_integer_to_float(
    a: Array,
    b: Array,
    sa: Array,
    sb: Array,
    za: Array | None = None,
    zb: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """MatMulIntegerToFloat: the integer product times both scales, plus a float bias."""
    product = matmul_integer(a, b, za, zb).astype(np.float32) * (sa.astype(np.float32) * sb.astype(np.float32))
    return np.asarray(product if bias is None else product + bias, np.float32)


def dynamic_quantize_matmul(a: Array, b: Array, sb: Array, zb: Array | None = None, bias: Array | None = None) -> Array:
    """DynamicQuantizeMatMul: DynamicQuantizeLinear of `a`, then MatMulIntegerToFloat."""
    quantized, scale, zero_point = dynamic_quantize_linear(a)
    return matmul_integer_to_float(quantized, b, scale, sb, zero_point, zb, bias)


def qlinear_where(
    condition: Array, x: Array, sx: Array, zx: Array, y: Array, sy: Array, zy: Array, sz: Array, zz: Array
) -> Array:
    """QLinearWhere: both operands requantized through float32, then chosen from."""
    left, right = (quantize_linear(dequantize_linear(a, s, z), sz, zz) for a, s, z in ((x, sx, zx), (y, sy, zy)))
    return np.where(condition, left, right)


def mul_integer(a: Array, za: Array | None, b: Array, zb: Array | None = None) -> Array:
    """MulInteger: the product of both without their zero points, as int32."""
    left, right = (x.astype(np.int32) - (0 if z is None else z.astype(np.int32)) for x, z in ((a, za), (b, zb)))
    return np.asarray(left * right)


def reduce_sum_integer(x: Array, axes: Sequence[int], keepdims: int = 1) -> Array:
    """ReduceSumInteger: sums modulo 2**32, of the operand's signedness."""
    kind = np.uint32 if x.dtype.kind == "u" else np.int32
    return np.asarray(x.sum(tuple(axes), kind, keepdims=bool(keepdims)))


def matmul_n_bits(
    a: Array, b: Array, scales: Array, zero_points: Array | None = None, g_idx: Array | None = None,
    bias: Array | None = None, *, K: int, N: int, block_size: int, bits: int = 4, **ignored: Any,
) -> Array:  # fmt: skip
    """MatMulNBits: ``a @ w.T + bias``, ``w`` of shape (N, K) unpacked from `bits` per element, lowest bits first.

    Each `block_size` elements of a row have a scale and a zero point, ``2**(bits - 1)`` by default; `g_idx` says for
    each element which. Zero points are packed like weights, or real numbers.
    """
    blocks = -(-K // block_size)
    weights = _unpacked(b.reshape(N, -1), bits, blocks * block_size)[:, :K].astype(np.float32)
    group = np.arange(K) // block_size if g_idx is None else g_idx[:K]
    if zero_points is None:
        middle = np.full((N, blocks), 2 ** (bits - 1), np.float32)
    elif zero_points.dtype == np.uint8:
        middle = _unpacked(zero_points.reshape(N, -1), bits, blocks).astype(np.float32)
    else:
        middle = zero_points.reshape(N, blocks).astype(np.float32)
    real = (weights - middle[:, group]) * scales.reshape(N, blocks).astype(np.float32)[:, group]
    product = a.astype(np.float32) @ real.T
    return np.asarray(product if bias is None else product + bias.astype(np.float32)).astype(a.dtype)


def _unpacked(rows: Array, bits: int, count: int) -> Array:
    """The first `count` elements of each row of bytes."""
    single = np.unpackbits(rows, axis=1, bitorder="little")[:, : count * bits]
    return np.asarray(single.reshape(len(rows), count, bits) @ (1 << np.arange(bits)))


OPERATORS = (
    HostOp(DOMAIN, "QuantizeLinear", quantize_linear),
    HostOp(DOMAIN, "DequantizeLinear", dequantize_linear),
    HostOp(DOMAIN, "QLinearConv", either_layout(qlinear_conv)),
    HostOp(DOMAIN, "NhwcMaxPool", nhwc_max_pool),
    HostOp(DOMAIN, "QLinearAdd", partial(qlinear_binary, False)),
    HostOp(DOMAIN, "QLinearMul", partial(qlinear_binary, True)),
    HostOp(DOMAIN, "QGemm", qgemm),
    HostOp(DOMAIN, "QLinearAveragePool", either_layout(qlinear_average_pool)),
    HostOp(DOMAIN, "QLinearGlobalAveragePool", qlinear_global_average_pool),
    HostOp(DOMAIN, "QLinearSigmoid", _table(_sigmoid)),
    HostOp(DOMAIN, "QLinearLeakyRelu", _table(_leaky_relu)),
    HostOp(DOMAIN, "QLinearSoftmax", _table(_softmax)),
    HostOp(DOMAIN, "QLinearConcat", qlinear_concat),
    HostOp(DOMAIN, "MatMulIntegerToFloat", matmul_integer_to_float),
    HostOp(DOMAIN, "DynamicQuantizeMatMul", dynamic_quantize_matmul),
    HostOp(DOMAIN, "QLinearReduceMean", qlinear_reduce_mean),
    HostOp(DOMAIN, "QLinearWhere", qlinear_where),
    HostOp(DOMAIN, "MulInteger", mul_integer),
    HostOp(DOMAIN, "ReduceSumInteger", reduce_sum_integer),
    HostOp(DOMAIN, "MatMulNBits", matmul_n_bits),
)
