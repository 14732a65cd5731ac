"""The integer contract: requantize, round, saturate. One definition, used by every rung.

Two forms of each operation live here. The *definition* says what a result means (float32 steps of
onnxruntime's x86 kernels for convolution and gemm; exact rationals for Add, Mul and average
pooling). The *datapath* (`scale_round` and below) is what the hardware computes, in integers only.
Tests prove them equal; constants for the datapath are emitted only after `prove_*` found them equal
to the definition over every operand.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

INT8_MIN, INT8_MAX = -128, 127
SUM_BITS = 25
"""Width of the requantizer's first operand; sums are clamped to +-SUM_MAX before they are scaled."""
SUM_MAX = (1 << (SUM_BITS - 1)) - 1
MULTIPLIER_BITS = 26
"""Width of an (unsigned) multiplier in the parameter memory."""
SHIFT_MIN, SHIFT_MAX = 16, 47
"""Range of the shift; five bits hold ``shift - SHIFT_MIN``."""
FRACTION = 25
"""Fraction bits that the rounding stage looks at (a sticky bit stands for the rest)."""


@dataclass(frozen=True)
class Scale:
    """``multiplier * 2**-shift``: one parameter entry.

    `bias` is the 32-bit bias (DRAIN) or the multiplier of the second operand (ADD).
    """

    multiplier: int
    shift: int
    bias: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.multiplier < 1 << MULTIPLIER_BITS:
            raise ValueError(f"multiplier must be 0..{(1 << MULTIPLIER_BITS) - 1}, not {self.multiplier}")
        if not SHIFT_MIN <= self.shift <= SHIFT_MAX:
            raise ValueError(f"shift must be {SHIFT_MIN}..{SHIFT_MAX}, not {self.shift}")
        if not -(1 << 31) <= self.bias < 1 << 31:
            raise ValueError(f"bias must fit 32 bits, not {self.bias}")

    def pack(self) -> int:
        """The 64-bit parameter entry: bias (32), multiplier (26), shift - SHIFT_MIN (5)."""
        return (self.bias & 0xFFFFFFFF) | self.multiplier << 32 | (self.shift - SHIFT_MIN) << 58

    @classmethod
    def unpack(cls, entry: int) -> "Scale":
        """Inverse of `pack`."""
        bias = entry & 0xFFFFFFFF
        bias -= (bias >> 31) << 32
        return cls((entry >> 32) & ((1 << MULTIPLIER_BITS) - 1), ((entry >> 58) & 31) + SHIFT_MIN, bias)


@dataclass(frozen=True)
class Scales:
    """Parameter entries by numbers' places, of a shape that can be broadcast to theirs: what `lane_drain` and
    `lane_add` take in the place of one `Scale`."""

    multiplier: Ints
    shift: Ints
    bias: Ints

    @classmethod
    def unpack(cls, entries: npt.NDArray[np.uint64]) -> "Scales":
        """As `Scale.unpack`, of each."""
        shift = (entries >> np.uint64(58) & np.uint64(31)).astype(np.int64) + SHIFT_MIN
        multiplier = (entries >> np.uint64(32)).astype(np.int64) & ((1 << MULTIPLIER_BITS) - 1)
        return cls(multiplier, shift, wrap(entries.astype(np.int64) & 0xFFFFFFFF, 32))


ONE = Scale(1 << 23, 23)
"""The scale 1."""


def wrap(values: Ints, bits: int) -> Ints:
    """Two's complement of `bits` bits: what a register of that width holds."""
    half = np.int64(1) << np.int64(bits - 1)
    return ((values + half) & ((half << np.int64(1)) - 1)) - half


def dyadic(value: float | np.float32) -> tuple[int, int]:
    """A positive float32 as ``(mantissa, shift)`` with ``value == mantissa * 2**-shift`` exactly.

    The mantissa has 24 significant bits (denormals fewer).
    """
    mantissa, exponent = np.frexp(np.float32(value))
    return int(np.float64(mantissa) * (1 << 24)), 24 - int(exponent)


# -- definitions -----------------------------------------------------------------------------------


def requantize(sums: Ints, multiplier: npt.ArrayLike, zero_point: int, lo: int = INT8_MIN, hi: int = INT8_MAX) -> Ints:
    """Convolution and gemm output from 32-bit sums (bias included), as onnxruntime's x86 kernels.

    float32 of the sum, times the float32 multiplier, clamped to the output's range without the zero
    point, rounded half to even, plus the zero point; then `lo`, `hi` (a fused Relu or Clip).
    `multiplier` broadcasts against `sums`. Source: MLAS quantize.cpp (see docs/numerics.md).
    """
    with np.errstate(over="ignore"):  # beyond float32 it is saturated all the same
        scaled = sums.astype(np.float32) * np.asarray(multiplier, np.float32)
    scaled = np.clip(scaled, np.float32(INT8_MIN - zero_point), np.float32(INT8_MAX - zero_point))
    return np.asarray(np.clip(np.rint(scaled).astype(np.int64) + zero_point, lo, hi))


def round_rational(numerators: Ints, denominator: int) -> Ints:
    """``numerators / denominator`` rounded half to even, exactly (``denominator > 0``)."""
    divisor = np.array(denominator, numerators.dtype)  # of one type: an object array has no limit
    quotient = numerators // divisor
    twice = 2 * (numerators - quotient * divisor)
    up = (twice > divisor) | ((twice == divisor) & (quotient % 2 != 0))
    return np.asarray(quotient + up)


def _saturate(values: Ints, zero_point: int, lo: int, hi: int) -> Ints:
    return np.clip(np.clip(values, -(1 << 20), 1 << 20).astype(np.int64) + zero_point, lo, hi)


def add(
    a: Ints, b: Ints, ratio_a: float, ratio_b: float, zero_point: int, lo: int = INT8_MIN, hi: int = INT8_MAX
) -> Ints:
    """``a * ratio_a + b * ratio_b`` for operands without their zero points.

    The float32 ratios (input scale / output scale) are taken as exact dyadic numbers; the exact sum is
    rounded half to even once.
    """
    (ma, sa), (mb, sb) = dyadic(ratio_a), dyadic(ratio_b)
    shift = max(sa, sb, 0)
    ka, kb = ma << (shift - sa), mb << (shift - sb)
    if max(ka, kb) < 1 << 50 and shift < 62:
        sums = a.astype(np.int64) * ka + b.astype(np.int64) * kb
        return _saturate(round_rational(sums, 1 << shift), zero_point, lo, hi)
    exact = a.astype(object) * ka + b.astype(object) * kb
    return _saturate(round_rational(exact, 1 << shift), zero_point, lo, hi)


def multiply(a: Ints, b: Ints, ratio: float, zero_point: int, lo: int = INT8_MIN, hi: int = INT8_MAX) -> Ints:
    """``a * b * ratio`` for operands without their zero points: exact product, one rounding half to even."""
    return average(a.astype(np.int64) * b.astype(np.int64), ratio, 1, zero_point, lo, hi)


def average(sums: Ints, ratio: float, count: int, zero_point: int, lo: int = INT8_MIN, hi: int = INT8_MAX) -> Ints:
    """``sums * ratio / count`` for sums of operands without their zero points, rounded half to even once."""
    mantissa, shift = dyadic(ratio)
    numerator, denominator = mantissa << max(-shift, 0), count << max(shift, 0)
    if numerator.bit_length() < 38 and denominator.bit_length() < 62:
        return _saturate(round_rational(sums.astype(np.int64) * numerator, denominator), zero_point, lo, hi)
    return _saturate(round_rational(sums.astype(object) * numerator, denominator), zero_point, lo, hi)


def quantize(
    x: npt.NDArray[np.float32], scale: np.float32, zero_point: int, low: int = INT8_MIN, high: int = INT8_MAX
) -> Ints:
    """QuantizeLinear: ``saturate(round_half_even(x / scale) + zero_point)``, division in float32.

    Infinities and quotients beyond float32 saturate; NaN has no result (see `onnxhw.ir.steps`).
    """
    with np.errstate(over="ignore"):
        rounded = np.rint(x.astype(np.float32) / np.float32(scale))
    return np.asarray(np.clip(rounded.astype(np.float64) + zero_point, low, high).astype(np.int64))


def dequantize(q: Ints, scale: np.float32, zero_point: int) -> npt.NDArray[np.float32]:
    """DequantizeLinear: ``float32(q - zero_point) * scale``."""
    return (q - zero_point).astype(np.float32) * np.float32(scale)


# -- datapath --------------------------------------------------------------------------------------


def scale_round(products: Ints, shift: Ints | int, exact: bool) -> Ints:
    """``products * 2**-shift`` rounded to an integer, as the rounding stage of a requantizer lane.

    With ``exact`` one rounding, half to even. Without, the product is first rounded to 24 significant
    bits (as a float32 product is), then to an integer; both half to even. The second differs from the
    first only where the 24-bit product is a tie: within ``2**(floor(log2 x) - 24)`` of a half. Valid for
    ``|products| < 2**52``; results beyond +-512 are only meant to be saturated.
    """
    shift = np.asarray(shift, np.int64)
    left = np.maximum(FRACTION - shift, 0)
    right = np.maximum(shift - FRACTION, 0)
    aligned = (products << left) >> right
    sticky = (products & ((np.int64(1) << right) - 1)) != 0
    integer = aligned >> FRACTION
    distance = (aligned & ((1 << FRACTION) - 1)) - (1 << (FRACTION - 1))
    if exact:
        tie = (distance == 0) & ~sticky
    else:
        magnitude = np.minimum(np.where(integer < 0, ~integer, integer), 255)
        window = np.int64(1) << np.ceil(np.log2(magnitude + 1)).astype(np.int64)
        tie = (distance >= -window) & ((distance < window) | ((distance == window) & ~sticky))
    return integer + np.where(tie, integer & 1, distance >= 0)


def lane_drain(sums: Ints, scale: Scale | Scales, exact: bool, zero_point: int, lo: int, hi: int) -> Ints:
    """A lane's result for ``op(a, b) = sums`` (DRAIN with the bias added, SUM, MAX, MUL, DOT)."""
    clamped = np.clip(sums.astype(np.int64), -SUM_MAX, SUM_MAX)
    return _saturate(scale_round(clamped * scale.multiplier, scale.shift, exact), zero_point, lo, hi)


def lane_add(
    a: Ints, b: Ints, scale: Scale | Scales, exact: bool, zero_point: int, lo: int, hi: int
) -> Ints:
    """A lane's result for ADD: ``a * multiplier + b * bias``, scaled and rounded."""
    products = a.astype(np.int64) * scale.multiplier + b.astype(np.int64) * scale.bias
    return _saturate(scale_round(products, scale.shift, exact), zero_point, lo, hi)


# -- constants, each proved ------------------------------------------------------------------------


class NotProvable(ValueError):  # noqa: N818 - a finding, not a fault
    """No hardware constant was found that equals the definition; the node runs on the host."""


def scale_for_requantize(multiplier: float, low: int, high: int, bias: int = 0) -> Scale:
    """The parameter entry of one output channel whose sums (bias included) lie in ``low .. high``.

    The lane equals `requantize` for every sum of up to 24 bits (proved in the tests: the datapath is the
    float32 computation); a channel that always rounds to 0 gets the multiplier 0. Otherwise a channel
    whose sums may exceed 24 bits and are not saturated there, or whose multiplier is out of range, is
    refused with `NotProvable`.
    """
    mantissa, shift = dyadic(multiplier)
    value = float(np.float32(multiplier))
    if max(abs(low), abs(high)) * value < 0.499:
        return Scale(0, SHIFT_MIN, bias)
    while mantissa % 2 == 0 and shift > SHIFT_MAX:
        mantissa, shift = mantissa // 2, shift - 1
    if shift < SHIFT_MIN and mantissa.bit_length() + SHIFT_MIN - shift <= MULTIPLIER_BITS:
        mantissa, shift = mantissa << (SHIFT_MIN - shift), SHIFT_MIN
    if not SHIFT_MIN <= shift <= SHIFT_MAX:
        raise NotProvable(f"multiplier {value:g} is outside 2^-24 .. 2^8")
    if max(abs(low), abs(high)) > SUM_MAX and SUM_MAX * value < 256:
        raise NotProvable(f"sums reach {max(abs(low), abs(high))}, beyond 24 bits, at multiplier {value:g}")
    return Scale(mantissa, shift, bias)


def dot_reach(count: int, za: int, zb: int) -> int:
    """The largest ``abs(sum)`` of `count` products ``(a - za) * (b - zb)`` of int8 values."""
    return count * max(za - INT8_MIN, INT8_MAX - za) * max(zb - INT8_MIN, INT8_MAX - zb)


def scale_for_dot(multiplier: float, count: int, za: int, zb: int) -> Scale:
    """The entry of a sum of `count` products, equal to `requantize`; `NotProvable` if a sum may exceed 25 bits."""
    reach = dot_reach(count, za, zb)
    if reach > SUM_MAX:
        raise NotProvable(f"a sum of {count} products can reach {reach}, beyond {SUM_BITS} bits")
    return scale_for_requantize(multiplier, -reach, reach)


def scale_for_multiply(ratio: float) -> Scale:
    """The entry of a Mul: the ratio's own 24 bits, so the product is exact."""
    mantissa, shift = dyadic(ratio)
    if not SHIFT_MIN <= shift <= SHIFT_MAX:
        raise NotProvable(f"scale ratio {float(ratio):g} is outside 2^-24 .. 2^8")
    return Scale(mantissa, shift)


def _nearest(target: Fraction, spread: int) -> list[int]:
    base = round(target)
    found = sorted(range(base - spread, base + spread + 1), key=lambda k: abs(k - target))
    return [k for k in found if 0 <= k < 1 << MULTIPLIER_BITS]


def _ratio(ratio: float) -> Fraction:
    mantissa, shift = dyadic(ratio)
    return Fraction(mantissa) / Fraction(2) ** shift


def _common_shift(largest: Fraction) -> int:
    shift = SHIFT_MAX
    while shift > SHIFT_MIN and largest * 2**shift >= (1 << MULTIPLIER_BITS) - 8:
        shift -= 1
    if largest * 2**shift >= (1 << MULTIPLIER_BITS) - 8:
        raise NotProvable(f"scale ratio {float(largest):g} is too large")
    return shift


def scale_for_average(ratio: float, count: int, za: int, terms: int | None = None) -> tuple[Scale, bool]:
    """An entry and its ``exact`` flag for sums of `terms` (default `count`) int8 values less `za`, divided by `count`.

    Proved over every sum that can occur.
    """
    terms = count if terms is None else terms
    if terms * max(za - INT8_MIN, INT8_MAX - za) > SUM_MAX:
        raise NotProvable(f"a window of {terms} values can exceed {SUM_BITS} bits")
    sums = np.arange(terms * (INT8_MIN - za), terms * (INT8_MAX - za) + 1, dtype=np.int64)
    wanted = average(sums, ratio, count, 0, -512, 511)
    target = _ratio(ratio) / count
    top = _common_shift(target)
    for shift in range(top, max(top - 3, SHIFT_MIN - 1), -1):
        for multiplier in _nearest(target * 2**shift, 2):
            for exact in (True, False):
                scale = Scale(multiplier, shift)
                if np.array_equal(lane_drain(sums, scale, exact, 0, -512, 511), wanted):
                    return scale, exact
    raise NotProvable(f"no constant equals sum * {float(ratio):g} / {count} for every sum")


def scale_for_add(
    ratio_a: float, ratio_b: float, za: int, zb: int, lo: int = INT8_MIN, hi: int = INT8_MAX, zero_point: int = 0
) -> tuple[Scale, bool]:
    """An entry (multiplier for a, bias for b) and its ``exact`` flag for Add.

    Proved over all 65,536 operand pairs, on the saturated result.
    """
    a, b = np.meshgrid(np.arange(-128, 128, dtype=np.int64) - za, np.arange(-128, 128, dtype=np.int64) - zb)
    wanted = add(a, b, ratio_a, ratio_b, zero_point, lo, hi)
    ta, tb = _ratio(ratio_a), _ratio(ratio_b)
    top = _common_shift(max(ta, tb))
    for shift in range(top, max(top - 3, SHIFT_MIN - 1), -1):
        pairs = [(ka, kb) for ka in _nearest(ta * 2**shift, 3) for kb in _nearest(tb * 2**shift, 3)]
        pairs.sort(key=lambda k: abs(k[0] - ta * 2**shift) + abs(k[1] - tb * 2**shift))
        for ka, kb in pairs:
            for exact in (True, False):
                scale = Scale(ka, shift, kb)
                if np.array_equal(lane_add(a, b, scale, exact, zero_point, lo, hi), wanted):
                    return scale, exact
    raise NotProvable(f"no pair of constants equals a * {float(ratio_a):g} + b * {float(ratio_b):g} for all operands")
