"""The integer contract: the datapath equals the definitions, where it is hard and at random."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw import fixed
from onnxhw.fixed import (
    MULTIPLIER_BITS,
    SHIFT_MAX,
    SHIFT_MIN,
    SUM_MAX,
    NotProvable,
    Scale,
    Scales,
    lane_add,
    lane_drain,
)

Ints = npt.NDArray[np.int64]

OUTPUTS = [(zp, lo, hi) for zp in (-128, -3, 0, 127) for lo, hi in ((-128, 127), (-5, 90))]
POWERS = [float(np.float32(2.0**e)) for e in range(-23, 6)]
LARGE, SMALL = float(np.float32(255.99)), float(np.float32(2.0**-23 * 1.1))


def float32s(seed: int, count: int, low: float = -23, high: float = 6) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(np.float32(2.0**e)) for e in rng.uniform(low, high, count)]


def sums_near_ties(multiplier: float, spread: int = 40) -> Ints:
    """Sums whose product lies as near as possible to each n + 1/2 that an int8 result can see, and around zero."""
    halves = np.arange(-260, 260) + 0.5
    centres = np.rint(halves / float(np.float32(multiplier)))
    centres = centres[np.abs(centres) < SUM_MAX - spread].astype(np.int64)
    edges = np.array([-SUM_MAX, SUM_MAX, 0], np.int64)
    near = (centres[:, None] + np.arange(-spread, spread + 1)).ravel()
    return np.unique(np.concatenate([near, edges]))


def exact_requantize(total: int, multiplier: float, zero_point: int) -> int:
    """`fixed.requantize` in rationals: each float32 step rounded by itself."""

    def float32(value: Fraction) -> Fraction:
        if value == 0:
            return value
        size, exponent = abs(value), 0
        while size >= 1 << 24:
            size, exponent = size / 2, exponent + 1
        while size < 1 << 23:
            size, exponent = size * 2, exponent - 1
        return (1 if value > 0 else -1) * round(size) * Fraction(2) ** exponent

    product = float32(float32(Fraction(total)) * Fraction(float(np.float32(multiplier))))
    return max(-128, min(127, round(max(-128 - zero_point, min(127 - zero_point, product))) + zero_point))


# -- definitions -----------------------------------------------------------------------------------


@given(
    st.integers(-(2**31) + 1, 2**31 - 1),
    st.floats(2.0**-30, 200, width=32),
    st.integers(-128, 127),
)
def test_requantize_is_its_rational_meaning(total: int, multiplier: float, zero_point: int) -> None:
    found = fixed.requantize(np.array([total]), multiplier, zero_point)
    assert found[0] == exact_requantize(total, multiplier, zero_point)


def test_requantize_rounds_twice() -> None:
    """Near ties the rounding of the product tells: results differ from one exact rounding, as onnxruntime's do."""
    differing = 0
    for multiplier in float32s(5, 200, -12, -6):
        sums = sums_near_ties(multiplier, 1)
        twice, once = fixed.requantize(sums, multiplier, 0), fixed.average(sums, multiplier, 1, 0)
        for total, result in zip(sums[twice != once], twice[twice != once], strict=True):
            assert result == exact_requantize(int(total), multiplier, 0)
            differing += 1
    assert differing > 0


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
def test_round_rational_is_half_to_even(numerator: int, denominator: int) -> None:
    assert fixed.round_rational(np.array([numerator]), denominator)[0] == round(Fraction(numerator, denominator))


@given(
    st.integers(-255, 255), st.integers(-255, 255), st.floats(2.0**-40, 2.0**30, width=32),
    st.floats(2.0**-40, 2.0**30, width=32), st.integers(-128, 127),
)  # fmt: skip
def test_add_is_its_rational_meaning(a: int, b: int, ratio_a: float, ratio_b: float, zero_point: int) -> None:
    exact = round(a * Fraction(ratio_a) + b * Fraction(ratio_b)) + zero_point
    assert fixed.add(np.array([a]), np.array([b]), ratio_a, ratio_b, zero_point)[0] == max(-128, min(127, exact))


@given(st.integers(-255, 255), st.integers(-255, 255), st.floats(2.0**-60, 2.0**40, width=32), st.integers(-128, 127))
def test_multiply_is_its_rational_meaning(a: int, b: int, ratio: float, zero_point: int) -> None:
    exact = round(a * b * Fraction(ratio)) + zero_point
    assert fixed.multiply(np.array([a]), np.array([b]), ratio, zero_point)[0] == max(-128, min(127, exact))


@given(st.integers(-(10**6), 10**6), st.floats(2.0**-60, 2.0**40, width=32), st.integers(1, 4096))
def test_average_is_its_rational_meaning(total: int, ratio: float, count: int) -> None:
    exact = round(total * Fraction(ratio) / count)
    assert fixed.average(np.array([total]), ratio, count, 0)[0] == max(-128, min(127, exact))


@given(st.floats(2.0**-126, 2.0**127, width=32))
def test_dyadic_is_exact(value: float) -> None:
    mantissa, shift = fixed.dyadic(value)
    assert Fraction(mantissa) / Fraction(2) ** shift == Fraction(value)
    assert mantissa < 1 << 24


@given(st.integers(-(2**40), 2**40), st.integers(2, 40))
def test_wrap_is_twos_complement(value: int, bits: int) -> None:
    wrapped = int(fixed.wrap(np.array([value]), bits)[0])
    assert -(1 << (bits - 1)) <= wrapped < 1 << (bits - 1)
    assert (wrapped - value) % (1 << bits) == 0


def test_quantize_divides_in_float32_and_rounds_half_to_even() -> None:
    x = np.array([-2.5, 0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf], np.float32)
    assert fixed.quantize(x, np.float32(1), 0).tolist() == [-2, 0, 2, 2, 0, 127, -128, 127, -128]
    # -2.5 / (5 / 255) is -127.5 in exact arithmetic and -127.49999 in float32.
    assert fixed.quantize(x[:1], np.float32(5 / 255), 0)[0] == -127
    assert fixed.quantize(np.array([3e38], np.float32), np.float32(1e-3), 0)[0] == 127


@given(st.integers(-128, 127), st.floats(2.0**-100, 2.0**100, width=32), st.integers(-128, 127))
def test_quantize_undoes_dequantize(q: int, scale: float, zero_point: int) -> None:
    real = fixed.dequantize(np.array([q]), np.float32(scale), zero_point)
    assert fixed.quantize(real, np.float32(scale), zero_point)[0] == q


# -- datapath = definition -------------------------------------------------------------------------


@pytest.mark.parametrize(("zero_point", "lo", "hi"), OUTPUTS)
def test_drain_equals_requantize_near_ties(zero_point: int, lo: int, hi: int) -> None:
    multipliers = POWERS + float32s(1, 40) + [LARGE, SMALL]
    for multiplier in multipliers:
        sums = sums_near_ties(multiplier)
        scale = fixed.scale_for_requantize(multiplier, int(sums.min()), int(sums.max()))
        wanted = fixed.requantize(sums, multiplier, zero_point, lo, hi)
        found = fixed.lane_drain(sums, scale, False, zero_point, lo, hi)
        assert np.array_equal(found, wanted), f"multiplier {multiplier!r}: sum {sums[found != wanted][:3]}"


def test_drain_equals_requantize_at_random() -> None:
    rng = np.random.default_rng(2)
    for multiplier in float32s(3, 300, -20, 4):
        reach = min(SUM_MAX, int(300 / multiplier) + 2)
        sums = rng.integers(-reach, reach + 1, 4000)
        scale = fixed.scale_for_requantize(multiplier, -reach, reach)
        wanted = fixed.requantize(sums, multiplier, -7)
        assert np.array_equal(fixed.lane_drain(sums, scale, False, -7, -128, 127), wanted)


@given(
    st.integers(-SUM_MAX, SUM_MAX), st.floats(2.0**-23, 255, width=32), st.integers(-128, 127),
    st.integers(-128, 127), st.integers(-128, 127),
)  # fmt: skip
def test_drain_equals_requantize(total: int, multiplier: float, zero_point: int, lo: int, hi: int) -> None:
    lo, hi = min(lo, hi), max(lo, hi)
    scale = fixed.scale_for_requantize(multiplier, -SUM_MAX, SUM_MAX)
    sums = np.array([total])
    wanted = fixed.requantize(sums, multiplier, zero_point, lo, hi)
    assert np.array_equal(fixed.lane_drain(sums, scale, False, zero_point, lo, hi), wanted)


def test_drain_saturates_sums_beyond_24_bits() -> None:
    sums = np.array([-(2**31) + 1, -SUM_MAX - 1, SUM_MAX + 1, 2**31 - 1])
    scale = fixed.scale_for_requantize(2.0**-10, -(2**31) + 1, 2**31 - 1)
    for zero_point in (-128, 0, 127):
        wanted = fixed.requantize(sums, 2.0**-10, zero_point)
        assert np.array_equal(fixed.lane_drain(sums, scale, False, zero_point, -128, 127), wanted)


def test_exact_rounding_is_the_rational_one() -> None:
    rng = np.random.default_rng(4)
    for shift in range(fixed.SHIFT_MIN, fixed.SHIFT_MAX + 1):
        halves = (2 * rng.integers(-500, 500, 200) + 1) << (shift - 1)
        products = np.concatenate([halves + d for d in (-2, -1, 0, 1, 2)])
        products = products[np.abs(products) < 1 << 52]
        wanted = fixed.round_rational(products, 1 << shift)
        assert np.array_equal(fixed.scale_round(products, shift, True), wanted), shift


def test_float_rounding_is_float32s() -> None:
    """`scale_round` without `exact` against float32 itself, on products that float64 holds exactly."""
    rng = np.random.default_rng(6)
    for shift in range(fixed.SHIFT_MIN, fixed.SHIFT_MAX + 1):
        halves = (2 * rng.integers(-256, 256, 400) + 1) << (shift - 1)
        window = np.int64(1) << max(shift - 14, 0)
        products = np.concatenate([halves + rng.integers(-window, window + 1, 400) for _ in range(5)] + [halves])
        products = products[np.abs(products) < 1 << 52]
        wanted = np.rint((products * 2.0**-shift).astype(np.float32)).astype(np.int64)
        assert np.array_equal(fixed.scale_round(products, shift, False), wanted), shift


def half_up(real: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.floor(real + 0.5)


def half_away(real: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.sign(real) * np.floor(np.abs(real) + 0.5)


@pytest.mark.parametrize("rule", [half_up, half_away, np.floor])
def test_another_tie_rule_is_noticed(
    rule: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above can fail: with another rounding the datapath differs from the definition."""

    def broken(products: Ints, shift: Ints | int, exact: bool) -> Ints:
        return rule(products * 2.0 ** -np.asarray(shift, np.float64)).astype(np.int64)

    monkeypatch.setattr(fixed, "scale_round", broken)
    with pytest.raises(AssertionError):
        test_drain_equals_requantize_near_ties(0, -128, 127)
    with pytest.raises(AssertionError):
        test_exact_rounding_is_the_rational_one()
    with pytest.raises(AssertionError):
        test_float_rounding_is_float32s()


@pytest.mark.parametrize("exact", [True, False])
def test_one_rounding_is_not_two(exact: bool) -> None:
    """The `exact` flag matters: each form fails the other's test."""
    right = fixed.scale_round
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed, "scale_round", lambda products, shift, _: right(products, shift, exact))
        with pytest.raises(AssertionError):
            (test_float_rounding_is_float32s if exact else test_exact_rounding_is_the_rational_one)()


# -- constants -------------------------------------------------------------------------------------


def test_scale_packs_and_unpacks() -> None:
    for scale in (Scale(0, 16), Scale((1 << 26) - 1, 47, -(1 << 31)), Scale(12345678, 30, (1 << 31) - 1), fixed.ONE):
        assert Scale.unpack(scale.pack()) == scale
        assert scale.pack() < 1 << 64


@pytest.mark.parametrize("fields", [(1 << 26, 20, 0), (-1, 20, 0), (1, 15, 0), (1, 48, 0), (1, 20, 1 << 31)])
def test_scale_refuses_what_has_no_bits(fields: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        Scale(*fields)


def test_one_is_one() -> None:
    values = np.arange(-255, 256)
    for exact in (True, False):
        assert np.array_equal(fixed.lane_drain(values, fixed.ONE, exact, 0, -128, 127), np.clip(values, -128, 127))


@pytest.mark.parametrize("seed", range(6))
def test_add_constants_are_equal_for_all_operands(seed: int) -> None:
    rng = np.random.default_rng(seed)
    powers = seed % 2 == 0
    ratios = [float(np.float32(2.0 ** (rng.integers(-4, 3) if powers else rng.uniform(-4, 2)))) for _ in range(2)]
    za, zb, zy = (int(z) for z in rng.integers(-128, 128, 3))
    scale, exact = fixed.scale_for_add(*ratios, za, zb, -128, 127, zy)
    a, b = np.meshgrid(np.arange(-128, 128) - za, np.arange(-128, 128) - zb)
    wanted = fixed.add(a, b, *ratios, zy)
    assert np.array_equal(fixed.lane_add(a, b, scale, exact, zy, -128, 127), wanted)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 25, 49, 64, 125])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.7310586, 1.9999, 0.03])
def test_average_constants_are_equal_for_all_sums(count: int, ratio: float) -> None:
    ratio = float(np.float32(ratio))
    for za in (-128, 5, 127):
        scale, exact = fixed.scale_for_average(ratio, count, za)
        sums = np.arange(count * (-128 - za), count * (127 - za) + 1)
        wanted = fixed.average(sums, ratio, count, 3)
        assert np.array_equal(fixed.lane_drain(sums, scale, exact, 3, -128, 127), wanted)


@pytest.mark.parametrize("ratio", [*POWERS[2:-6], 0.0071234, 1.5])
def test_mul_constants_are_equal_for_all_products(ratio: float) -> None:
    ratio = float(np.float32(ratio))
    scale = fixed.scale_for_multiply(ratio)
    products = np.arange(-255 * 255, 255 * 255 + 1)
    wanted = fixed.average(products, ratio, 1, -4)
    assert np.array_equal(fixed.lane_drain(products, scale, True, -4, -128, 127), wanted)


def test_channel_that_always_rounds_to_zero_has_no_multiplier() -> None:
    assert fixed.scale_for_requantize(1e-9, -1000, 1000).multiplier == 0
    sums = np.arange(-1000, 1001)
    assert not fixed.requantize(sums, 1e-9, 0).any()


@pytest.mark.parametrize(
    ("multiplier", "reach"), [(2.0**-40, 1 << 40), (1e6, 100), (2.0**-20, 1 << 28), (float(np.float32(1e-12)), 1 << 62)]
)
def test_what_cannot_be_equal_is_refused(multiplier: float, reach: int) -> None:
    with pytest.raises(NotProvable):
        fixed.scale_for_requantize(multiplier, -reach, reach)


def test_average_window_too_large_is_refused() -> None:
    with pytest.raises(NotProvable):
        fixed.scale_for_average(1.0, 1 << 17, 0)


@pytest.mark.parametrize("exact", [False, True])
def test_scales_are_one_scale_for_each_place(exact: bool) -> None:
    rng = np.random.default_rng(5)
    kept = [
        Scale(int(rng.integers(0, 1 << MULTIPLIER_BITS)), int(rng.integers(SHIFT_MIN, SHIFT_MAX + 1)),
              int(rng.integers(-(1 << 31), 1 << 31)))
        for _ in range(64)
    ]  # fmt: skip
    entries = np.array([scale.pack() for scale in kept], np.uint64).reshape(8, 1, 8)
    scales = Scales.unpack(entries)
    sums = rng.integers(-(1 << 24), 1 << 24, (8, 50, 8))
    second = rng.integers(-(1 << 8), 1 << 8, (8, 50, 8))
    drained = lane_drain(sums, scales, exact, 3, -120, 127)
    added = lane_add(second[::-1], second, scales, exact, -7, -128, 100)
    for plane, row in enumerate(entries[:, 0]):
        for lane, entry in enumerate(row):
            one, at = Scale.unpack(int(entry)), (plane, slice(None), lane)
            assert (scales.multiplier[plane, 0, lane], scales.shift[plane, 0, lane]) == (one.multiplier, one.shift)
            assert scales.bias[plane, 0, lane] == one.bias
            assert np.array_equal(drained[at], lane_drain(sums[at], one, exact, 3, -120, 127))
            assert np.array_equal(added[at], lane_add(second[::-1][at], second[at], one, exact, -7, -128, 100))
    assert len(np.unique(drained)) > 20
