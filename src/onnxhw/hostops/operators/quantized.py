"""Quantized operators of the default domain, on the numbers of `onnxhw.fixed`.

A node gives the same bits here as on the hardware, so its result does not depend on where it was placed. Sums are made
in float64, which is exact for them, and are then integers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_25
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_25

from ... import fixed
from .adapter import Array, HostOp, reference
from .windows import convolve

RANGES = {
    f"{'u' * unsigned}int{bits}": (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (2, 4, 8, 16)
    for unsigned in (0, 1)
}
"""Integer types that quantization produces, and their limits."""


class NotANumberError(ValueError):
    """A NaN, which has no quantized value."""


def spread(values: Array, shape: tuple[int, ...], axis: int, block_size: int = 0) -> Array:
    """A scale or zero point that broadcasts to `shape`: scalar, one per slice of `axis`, or one per block along it."""
    if values.size == 1 and values.ndim <= 1:
        return values.reshape(())
    if block_size:
        return np.take(values, np.arange(shape[axis]) // block_size, axis)
    if values.ndim != 1 or values.size != shape[axis]:
        raise ValueError(f"scale of shape {values.shape} does not fit axis {axis} of {shape}")
    return values.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


def quantize_linear(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Array:
    """``saturate(round_half_even(x / scale) + zero_point)``; the quotient in the type of the scale, or `precision`."""
    if zero_point is not None and output_dtype and zero_point.dtype != helper.tensor_dtype_to_np_dtype(output_dtype):
        raise ValueError(f"output_dtype {output_dtype} is not the zero point's {zero_point.dtype}")
    default = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else np.dtype(np.uint8)
    target = zero_point.dtype if zero_point is not None else default
    if target.name not in RANGES:
        more = {"axis": axis, "saturate": saturate, "block_size": block_size, "precision": precision}
        return _narrow_float(QuantizeLinear_25, "QuantizeLinear", x, scale, zero_point, output_dtype, more)
    exact = scale.dtype if scale.dtype.name != "float8_e8m0fnu" else np.dtype(np.float32)
    exact = helper.tensor_dtype_to_np_dtype(precision) if precision else exact
    factors = spread(scale, x.shape, axis, block_size).astype(exact)
    with np.errstate(over="ignore", divide="ignore"):  # beyond the type it is saturated all the same
        quotients = (x.astype(exact) / factors).astype(np.float64)
    if np.isnan(quotients).any():
        raise NotANumberError("input contains NaN, which has no quantized value")
    offset = 0 if zero_point is None else spread(zero_point, x.shape, axis, block_size).astype(np.float64)
    return np.asarray(np.clip(np.rint(quotients) + offset, *RANGES[target.name]).astype(np.int64).astype(target))


def dequantize_linear(
    x: Array, scale: Array, zero_point: Array | None = None, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Array:
    """``float32(x - zero_point) * scale``, in the type of the scale or `output_dtype`."""
    if x.dtype.name not in (*RANGES, "int32"):
        more = {"axis": axis, "block_size": block_size}
        return _narrow_float(DequantizeLinear_25, "DequantizeLinear", x, scale, zero_point, output_dtype, more)
    target = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else scale.dtype
    offset = 0 if zero_point is None else spread(zero_point, x.shape, axis, block_size).astype(np.int64)
    factors = spread(scale, x.shape, axis, block_size).astype(np.float32)
    return np.asarray(((x.astype(np.int64) - offset).astype(np.float32) * factors).astype(target))


def _narrow_float(
    cls: Any, op: str, x: Array, scale: Array, zero_point: Array | None, output_dtype: int, more: dict[str, int]
) -> Array:
    """The reference implementation, for floating-point element types of 8 bits and less."""
    if output_dtype:
        more["output_dtype"] = output_dtype
    return np.asarray(reference(cls, op, x, scale, zero_point, **more))


def requantize(sums: Array, multiplier: Array, zero_point: Array) -> Array:
    """`fixed.requantize` to the type of the zero point, int8 or uint8."""
    if zero_point.dtype.name not in ("int8", "uint8"):
        raise ValueError(f"output type {zero_point.dtype} is not int8 or uint8")
    middle = 128 if zero_point.dtype == np.uint8 else 0
    offset = int(zero_point.reshape(-1)[0]) - middle
    return (fixed.requantize(sums, multiplier, offset) + middle).astype(zero_point.dtype)


def centred(x: Array, zero_point: Array | None, axis: int | None = None) -> npt.NDArray[np.float64]:
    """``x - zero_point`` as float64; a vector of zero points belongs to `axis`."""
    if zero_point is None:
        return x.astype(np.float64)
    if axis is not None and zero_point.ndim == 1 and zero_point.size > 1:
        zero_point = spread(zero_point, x.shape, axis)
    elif zero_point.size == 1:
        zero_point = zero_point.reshape(())
    return x.astype(np.float64) - zero_point.astype(np.float64)


def sums_of_conv(x: Array, w: Array, xz: Array | None, wz: Array | None, **window: Any) -> fixed.Ints:
    """The integer sums of a convolution; padding counts as the zero point."""
    kernel = window.pop("kernel_shape", None)
    if kernel is not None and tuple(kernel) != w.shape[2:]:
        raise ValueError(f"kernel_shape {list(kernel)} is not that of the weights, {w.shape[2:]}")
    return convolve(centred(x, xz), centred(w, wz, 0), **window).astype(np.int64)


def conv_integer(x: Array, w: Array, xz: Array | None = None, wz: Array | None = None, **window: Any) -> Array:
    """ConvInteger: the sums, in 32 bits."""
    return fixed.wrap(sums_of_conv(x, w, xz, wz, **window), 32).astype(np.int32)


def qlinear_conv(
    x: Array, xs: Array, xz: Array, w: Array, ws: Array, wz: Array, ys: Array, yz: Array,
    bias: Array | None = None, **window: Any,
) -> Array:  # fmt: skip
    """QLinearConv: the sums and the bias in 32 bits, requantized."""
    sums = sums_of_conv(x, w, xz, wz, **window)
    trailing = (-1,) + (1,) * (sums.ndim - 2)
    if bias is not None:
        sums = sums + bias.astype(np.int64).reshape(trailing)
    return requantize(fixed.wrap(sums, 32), multiplier(xs, ws, ys).reshape(trailing), yz)


def multiplier(xs: Array, ws: Array, ys: Array) -> npt.NDArray[np.float32]:
    """``xs * ws / ys``, each step rounded to float32."""
    return np.asarray(xs.astype(np.float32) * ws.astype(np.float32) / ys.astype(np.float32), np.float32)


def matmul_integer(a: Array, b: Array, az: Array | None = None, bz: Array | None = None) -> Array:
    """MatMulInteger: the sums, in 32 bits; `az` may be one per row, `bz` one per column."""
    return fixed.wrap(_sums_of_matmul(a, b, az, bz), 32).astype(np.int32)


def qlinear_matmul(a: Array, sa: Array, az: Array, b: Array, sb: Array, bz: Array, ys: Array, yz: Array) -> Array:
    """QLinearMatMul: the sums in 32 bits, requantized; scales may be one per row of a and per column of b."""
    sums = fixed.wrap(_sums_of_matmul(a, b, az, bz), 32)
    rows = sa.reshape(*sa.shape, 1) if sa.ndim == 1 and sa.size > 1 else sa
    return requantize(sums, multiplier(rows, sb, ys), yz)


def _sums_of_matmul(a: Array, b: Array, az: Array | None, bz: Array | None) -> fixed.Ints:
    left = centred(a, az, a.ndim - 2 if a.ndim > 1 else None)
    return np.asarray(np.matmul(left, centred(b, bz, b.ndim - 1)).astype(np.int64))


def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """uint8 over the range of `x` with 0; scale 1/255 where that range is empty."""
    if np.isnan(x).any():
        raise NotANumberError("input contains NaN, which has no quantized value")
    low, high = np.float32(min(0, x.min(initial=0))), np.float32(max(0, x.max(initial=0)))
    scale = (high - low if high != low else np.float32(1)) / np.float32(255)
    zero_point = np.rint(np.clip(np.float32(0) - low / scale, 0, 255)).astype(np.uint8)
    return quantize_linear(x, np.asarray(scale), np.asarray(zero_point)), np.asarray(scale), np.asarray(zero_point)


OPERATORS = (
    HostOp("", "QuantizeLinear", quantize_linear),
    HostOp("", "DequantizeLinear", dequantize_linear),
    HostOp("", "ConvInteger", conv_integer),
    HostOp("", "QLinearConv", qlinear_conv),
    HostOp("", "MatMulInteger", matmul_integer),
    HostOp("", "QLinearMatMul", qlinear_matmul),
    HostOp("", "DynamicQuantizeLinear", dynamic_quantize_linear),
)
