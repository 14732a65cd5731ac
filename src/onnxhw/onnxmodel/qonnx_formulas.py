"""The QONNX operators as formulas: the integers behind their real results, which a table or a weight needs.

Float arithmetic is float32, as their reference implementation computes it. The host's operators
(`hostops.operators.qonnx`) are these formulas as well, so that a node means the same wherever it runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Number = Array | np.float32
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


def bounds(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """Smallest and largest integer of a QONNX type; narrow leaves out the end without a partner of the other sign."""
    if signed:
        return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow


@dataclass(frozen=True)
class IntQuant:
    """QONNX's Quant (IntQuant): ``round(clip(x / scale + zero_point, low, high))``.

    One signed bit is bipolar: +1 where ``x / scale + zero_point >= 0``, else -1.
    """

    bits: int
    signed: bool
    narrow: bool
    mode: str

    @property
    def bipolar(self) -> bool:
        """Are its integers -1 and 1?"""
        return self.bits == 1 and self.signed

    @property
    def range(self) -> tuple[int, int]:
        """Its smallest and largest integer."""
        return (-1, 1) if self.bipolar else bounds(self.bits, self.signed, self.narrow)

    def integers(self, x: Array, scale: Number, zero_point: Number) -> Floats:
        """The integers, as float32; a NaN stays one."""
        with np.errstate(over="ignore", invalid="ignore"):
            y = x.astype(np.float32) / np.asarray(scale, np.float32) + np.asarray(zero_point, np.float32)
        if self.bipolar:
            return np.where(np.isnan(y), y, np.where(y >= 0, np.float32(1), np.float32(-1)))
        low, high = self.range
        return np.asarray(ROUNDING[self.mode](np.clip(y, np.float32(low), np.float32(high))), np.float32)

    @classmethod
    def of(cls, attributes: Mapping[str, Any], bits: int) -> "IntQuant":
        """From the node's attributes; `KeyError` for a rounding mode that does not exist."""
        mode = str(attributes.get("rounding_mode", "ROUND")).upper()
        if mode not in ROUNDING:
            raise KeyError(mode)
        return cls(bits, bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0)), mode)


@dataclass(frozen=True)
class Trunc:
    """QONNX's Trunc: ``round(x / scale + zero_point)``, divided by a power of two and rounded by `mode`.

    Version 1 divides by ``2**(in_bits - out_bits)`` and keeps scale and zero point. Version 2 has an output scale: it
    divides by the power of two nearest to the scales' ratio, clamps to `limits`, and divides the zero point too.
    """

    scale: Number
    zero_point: Number
    divisor: float | Array
    mode: str
    out_scale: Number
    out_zero_point: float | Number
    limits: tuple[int, int] | None

    def integers(self, x: Array) -> Floats:
        """The integers of the result, as float32."""
        y = np.rint(x.astype(np.float32) / self.scale + self.zero_point) / np.asarray(self.divisor, np.float32)
        if self.limits is not None:
            y = np.clip(y, np.float32(self.limits[0]), np.float32(self.limits[1]))
        return np.asarray(ROUNDING[self.mode](y), np.float32)

    def real(self, x: Array) -> Floats:
        """The result of the operator."""
        return np.asarray((self.integers(x) - np.asarray(self.out_zero_point, np.float32)) * self.out_scale, np.float32)

    @classmethod
    def of(cls, attributes: Mapping[str, Any], inputs: Sequence[Array | None]) -> "Trunc":
        """From attributes and inputs: five in version 1, six in version 2. `KeyError` as in `IntQuant.of`."""
        numbers = [float(np.asarray(value).reshape(())) for value in inputs[1:] if value is not None]
        mode = str(attributes.get("rounding_mode", "FLOOR")).upper()
        if mode not in ROUNDING:
            raise KeyError(mode)
        scale, zero_point, in_bits = np.float32(numbers[0]), np.float32(numbers[1]), numbers[2]
        if len(numbers) == 4:
            divisor = 2.0 ** (in_bits - numbers[3])
            return cls(scale, zero_point, divisor, mode, scale, float(zero_point), None)
        divisor = 2.0 ** float(np.rint(np.log2(numbers[3] / numbers[0])))
        limits = bounds(int(numbers[4]), bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0)))
        return cls(scale, zero_point, divisor, mode, np.float32(numbers[3]), float(zero_point) / divisor, limits)


def bipolar_quant(x: Array, scale: Number) -> Floats:
    """QONNX's BipolarQuant: scale where ``x >= 0``, else -scale."""
    return np.asarray(np.where(x >= 0, scale, -scale), np.float32)


def count_thresholds(x: Array, thresholds: Array) -> npt.NDArray[np.int64]:
    """How many thresholds of its channel (row; axis 1) each element reaches, ``>=``; a single row serves all."""
    rows = np.broadcast_to(thresholds, (x.shape[1], thresholds.shape[1])) if x.ndim > 1 else thresholds
    moved = np.moveaxis(x, 1, -1) if x.ndim > 1 else x
    return np.asarray(np.moveaxis((moved[..., None] >= rows).sum(-1), -1, 1 if x.ndim > 1 else 0))


def multi_threshold(x: Array, thresholds: Array, attributes: Mapping[str, Any]) -> Floats:
    """FINN's MultiThreshold: `count_thresholds` times ``out_scale`` plus ``out_bias``.

    Channels are on axis 1 unless ``data_layout`` says NHWC.
    """
    last = str(attributes.get("data_layout", "NCHW")).upper() == "NHWC" and x.ndim > 2
    counts = count_thresholds(np.moveaxis(x, -1, 1) if last else x, thresholds)
    counts = np.moveaxis(counts, 1, -1) if last else counts
    out_scale, out_bias = (np.float32(attributes.get(key, d)) for key, d in (("out_scale", 1.0), ("out_bias", 0.0)))
    return np.asarray(counts.astype(np.float32) * out_scale + out_bias, np.float32)
