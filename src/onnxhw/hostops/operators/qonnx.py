"""QONNX on the host: Quant, BipolarQuant, Trunc and MultiThreshold, by the formulas that hardware tables have too."""


import numpy as np

from ...onnxmodel.qonnx_formulas import DOMAINS, ROUNDING, IntQuant, Trunc, bipolar_quant, bounds, multi_threshold
from .adapter import Array, HostOp


def rounding(mode: str) -> str:
    """The name of a rounding mode."""
    if mode.upper() not in ROUNDING:
        raise ValueError(f"rounding mode {mode!r} is unknown")
    return mode.upper()


def width(bits: Array) -> int:
    """A bit width, which must be an integer from 1 to 32."""
    value = float(np.asarray(bits).reshape(-1)[0])
    if np.asarray(bits).size != 1 or not 1 <= value <= 32 or value % 1:
        raise NotImplementedError(f"bit width {np.asarray(bits).tolist()} is not one integer from 1 to 32")
    return int(value)


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
    formula = IntQuant(width(bits), bool(signed), bool(narrow), rounding(rounding_mode))
    return np.asarray((formula.integers(x, scale, zero_point) - zero_point) * scale, np.float32)


def trunc(
    x: Array, scale: Array, zero_point: Array, in_bits: Array, out_bits: Array, rounding_mode: str = "FLOOR"
) -> Array:
    """Trunc, version 1: the low ``in_bits - out_bits`` bits go."""
    divisor = 2.0 ** (width(in_bits) - width(out_bits))
    return Trunc(scale, zero_point, divisor, rounding(rounding_mode), scale, zero_point, None).real(x)


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
    divisor = 2.0 ** np.rint(np.log2(out_scale / scale))
    limits = bounds(width(out_bits), bool(signed), bool(narrow))
    formula = Trunc(scale, zero_point, divisor, rounding(rounding_mode), out_scale, zero_point / divisor, limits)
    return formula.real(x)


def thresholds(
    x: Array,
    steps: Array,
    out_scale: float = 1.0,
    out_bias: float = 0.0,
    out_dtype: str = "",
    data_layout: str = "NCHW",
) -> Array:
    """`multi_threshold`; the type that the result could be stored in does not change its values."""
    if data_layout not in ("NCHW", "NHWC", "NC"):
        raise NotImplementedError(f"data_layout {data_layout!r} is not supported")
    more = {"out_scale": out_scale, "out_bias": out_bias, "data_layout": data_layout}
    return multi_threshold(x, steps, more)


OPERATORS = tuple(
    op
    for domain in DOMAINS
    for op in (
        HostOp(domain, "Quant", quant),
        HostOp(domain, "IntQuant", quant),
        HostOp(domain, "BipolarQuant", bipolar_quant),
        HostOp(domain, "Trunc", trunc, until=1),
        HostOp(domain, "Trunc", trunc_scaled, since=2),
        HostOp(domain, "MultiThreshold", thresholds),
    )
)
