"""QONNX: Quant, BipolarQuant, Trunc and MultiThreshold, in float32."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .adapter import HostOp

Array = npt.NDArray[Any]
DOMAINS = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")

ROUNDING: dict[str, Callable[[Array], Array]] = {
    "ROUND": np.rint,
    "HALF_EVEN": np.rint,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "DOWN": np.trunc,
    "ROUND_TO_ZERO": np.trunc,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
}
"""Rounding modes; UP and DOWN are away from and towards zero."""


def rounding(mode: str) -> Callable[[Array], Array]:
    """The function of a rounding mode."""
    if mode.upper() not in ROUNDING:
        raise ValueError(f"rounding mode {mode!r} is unknown")
    return ROUNDING[mode.upper()]


def limits(bits: float, signed: int, narrow: int) -> tuple[float, float]:
    """The smallest and the largest integer of a width."""
    if signed:
        return -(2.0 ** (bits - 1)) + narrow, 2.0 ** (bits - 1) - 1
    return 0.0, 2.0**bits - 1 - narrow


def width(bits: Array) -> float:
    """A bit width, which must be a positive integer."""
    value = float(np.asarray(bits).reshape(-1)[0])
    if np.asarray(bits).size != 1 or value != int(value) or value < 1:
        raise NotImplementedError(f"bit width {np.asarray(bits).tolist()} is not one positive integer")
    return value


def quant(
    x: Array,
    scale: Array,
    zero_point: Array,
    bits: Array,
    signed: int = 1,
    narrow: int = 0,
    rounding_mode: str = "ROUND",
) -> Array:
    """``(round(clip(x / scale + zero_point)) - zero_point) * scale``; one signed bit is bipolar."""
    steps = x / scale + zero_point
    if width(bits) == 1 and signed:
        steps = np.where(np.isnan(steps), steps, np.where(steps >= 0, np.float32(1), np.float32(-1)))
    else:
        steps = rounding(rounding_mode)(np.clip(steps, *limits(width(bits), signed, narrow)))
    return np.asarray((steps - zero_point) * scale, np.float32)


def bipolar_quant(x: Array, scale: Array) -> Array:
    """`scale` where ``x >= 0``, else ``-scale``."""
    return np.asarray(np.where(x >= 0, scale, -scale), np.float32)


def trunc(
    x: Array, scale: Array, zero_point: Array, in_bits: Array, out_bits: Array, rounding_mode: str = "FLOOR"
) -> Array:
    """Trunc, version 1: the low ``in_bits - out_bits`` bits go."""
    factor = 2.0 ** (width(in_bits) - width(out_bits))
    steps = rounding(rounding_mode)(np.rint(x / scale + zero_point) / np.float32(factor))
    return np.asarray((steps - zero_point) * scale, np.float32)


def trunc_scaled(
    x: Array,
    scale: Array,
    zero_point: Array,
    in_bits: Array,
    out_scale: Array,
    out_bits: Array,
    rounding_mode: str = "FLOOR",
    signed: int = 1,
    narrow: int = 0,
) -> Array:
    """Trunc, version 2: division by the power of two nearest to the ratio of the scales, then a clip."""
    factor = 2.0 ** np.rint(np.log2(out_scale / scale))
    low, high = limits(width(out_bits), signed, narrow)
    steps = np.clip(np.rint(x / scale + zero_point) / factor, low, high)
    return np.asarray((rounding(rounding_mode)(steps) - zero_point / factor) * out_scale, np.float32)


def multi_threshold(
    x: Array,
    thresholds: Array,
    out_scale: float = 1.0,
    out_bias: float = 0.0,
    out_dtype: str = "",
    data_layout: str = "NCHW",
) -> Array:
    """How many of its channel's thresholds each element reaches, times `out_scale` plus `out_bias`."""
    if data_layout not in ("NCHW", "NHWC", "NC"):
        raise NotImplementedError(f"data_layout {data_layout!r} is not supported")
    channels_last = np.moveaxis(x, 1, -1) if data_layout == "NCHW" else x
    counts = (channels_last[..., None] >= thresholds).sum(-1)
    counts = np.moveaxis(counts, -1, 1) if data_layout == "NCHW" else counts
    return np.asarray(counts * np.float32(out_scale) + np.float32(out_bias), np.float32)


OPERATORS = tuple(
    op
    for domain in DOMAINS
    for op in (
        HostOp(domain, "Quant", quant),
        HostOp(domain, "IntQuant", quant),
        HostOp(domain, "BipolarQuant", bipolar_quant),
        HostOp(domain, "Trunc", trunc, until=1),
        HostOp(domain, "Trunc", trunc_scaled, since=2),
        HostOp(domain, "MultiThreshold", multi_threshold),
    )
)
