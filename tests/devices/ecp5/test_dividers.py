"""The arithmetic of the clock, against the data sheet's limits written down here once more."""

import bisect
from fractions import Fraction
from itertools import product

import pytest

from onnxhw.devices.ecp5.dividers import choose, choose_usb, mhz, settings
from onnxhw.errors import UsageError

MHZ = 1_000_000
LIMITS = {"input": (8, 400), "detector": (10, 400), "vco": (400, 800), "output": (3.125, 400)}
"""FPGA-DS-02012, sysCLOCK PLL Timing: fIN, fPFD, fVCO, fOUT in MHz."""
NETWORK = {"6": 257, "7": 303, "8": 370}
"""FPGA-DS-02012, fMAX_PRI in MHz by speed grade."""
OSCILLATORS = (25, 12, 48, 100)


def within(hz, name):
    low, high = LIMITS[name]
    return low * MHZ <= hz <= high * MHZ


def frequencies(setting):
    """(detector, oscillator, fed back, output) from the dividers alone, by the data sheet's block diagram."""
    detector = Fraction(setting.input_hz) / setting.input_div
    loop = setting.loop_div or setting.output_div
    vco = detector * setting.feedback_div * loop
    return detector, vco, vco / loop, vco / setting.output_div


def reachable(input_mhz):
    """Every output in Hz that any four dividers make within the limits: all products are tried, each once."""
    found = set()
    dividers = range(1, 129)
    for divider in dividers:
        detector = Fraction(input_mhz * MHZ, divider)
        if not within(detector, "detector"):
            continue
        fed_back = [feedback for feedback in dividers if within(detector * feedback, "output")]
        fed_back = [feedback for feedback in fed_back if within(detector * feedback, "input")]
        factors = {feedback * loop for feedback, loop in product(fed_back, dividers)}
        found |= {detector * factor for factor in factors if within(detector * factor, "vco")}
    return {vco / out for vco in found for out in dividers if within(vco / out, "output")}


@pytest.mark.parametrize("oscillator", OSCILLATORS)
def test_every_setting_keeps_the_limits_of_the_data_sheet_and_no_frequency_is_missed(oscillator):
    found = settings(oscillator * MHZ)
    for output, setting in found.items():
        detector, vco, fed_back, made = frequencies(setting)
        assert made == output == setting.output_hz
        assert within(setting.input_hz, "input")
        assert within(detector, "detector")
        assert within(vco, "vco")
        assert within(fed_back, "output")
        assert within(made, "output")
        assert fed_back / setting.feedback_div == detector
        dividers = (setting.input_div, setting.feedback_div, setting.output_div, setting.loop_div or 1)
        assert all(1 <= divider <= 128 for divider in dividers)
    assert set(found) == reachable(oscillator)


@pytest.mark.parametrize("oscillator", OSCILLATORS)
def test_every_asked_frequency_is_made_or_answered_with_its_neighbours(oscillator):
    """In steps of 0.5 MHz and a few odd ones: the clock that comes out is the asked one to the Hz, or is named."""
    able = sorted(settings(oscillator * MHZ))
    by_hz = {round(output): output for output in able}
    for asked in [*(round(step * MHZ / 2) for step in range(10, 401)), 33_333_333, 66_666_667, 101_785_714, 33_330_000]:
        if asked in by_hz:
            setting = choose(oscillator * MHZ, asked)
            assert abs(setting.output_hz - asked) <= Fraction(1, 2)
            assert setting == settings(oscillator * MHZ)[by_hz[asked]]
            continue
        with pytest.raises(UsageError) as caught:
            choose(oscillator * MHZ, asked)
        assert caught.value.code == "E2310"
        place = bisect.bisect(able, asked)
        below, above = able[place - 1 : place + 1]
        assert caught.value.hint == f"the nearest: {mhz(below)} and {mhz(above)}"
        for name in caught.value.hint.removeprefix("the nearest: ").split(" and "):
            assert choose(oscillator * MHZ, round(float(name.split()[0]) * MHZ)).output_hz in (below, above)


@pytest.mark.parametrize("output", [5, 25, 40, 50, 60, 62.5, 75, 80, 85, 90, 95, 100, 105, 110, 120, 125, 150, 200])
def test_common_clocks_come_out_exactly(output):
    assert choose(25 * MHZ, int(output * MHZ)).output_hz == Fraction(output) * MHZ


def test_hundred_from_twentyfive_needs_one_output():
    setting = choose(25 * MHZ, 100 * MHZ)
    assert (setting.input_div, setting.feedback_div, setting.output_div, setting.loop_div) == (1, 4, 6, 0)


def test_the_clock_network_limits_by_speed_grade():
    for speed, most in NETWORK.items():
        with pytest.raises(UsageError, match=rf"E2310 .*{most} MHz is the most that the clock network carries"):
            choose(25 * MHZ, 400 * MHZ, speed)
        assert choose(25 * MHZ, 250 * MHZ, speed).output_hz == 250 * MHZ
    assert choose(25 * MHZ, 300 * MHZ, "7").output_hz == 300 * MHZ
    with pytest.raises(UsageError, match="E2310"):
        choose(25 * MHZ, 300 * MHZ, "6")


def test_a_fraction_is_told_as_one():
    assert choose(25 * MHZ, 33_333_333).output_hz == Fraction(100 * MHZ, 3)
    assert mhz(Fraction(100 * MHZ, 3)) == "33.333333 MHz (100/3)"
    assert mhz(62_500_000) == "62.5 MHz"
    assert mhz(33_333_333) == "33.333333 MHz"


@pytest.mark.parametrize("hz", [1, 25, MHZ, 9_999_999, 400_000_001, 2**53])
def test_a_clock_that_nothing_can_be_made_from(hz):
    with pytest.raises(UsageError, match="no clock can be made from") as caught:
        choose(hz, 100 * MHZ, where="board mine")
    assert caught.value.hint == "an oscillator must have 10 MHz to 400 MHz"
    assert caught.value.where == "board mine"


@pytest.mark.parametrize("asked", [0, 1, 3_124_999, 257_000_001, 1_000_000_000, 2**53])
def test_a_clock_beyond_all_limits_is_answered_with_its_neighbours(asked):
    with pytest.raises(UsageError, match="E2310") as caught:
        choose(25 * MHZ, asked)
    assert caught.value.hint.startswith("the nearest: ")


@pytest.mark.parametrize("oscillator", [25, 12, 27])
def test_the_clocks_of_usb_are_within_what_usb_allows(oscillator):
    """48 MHz and a quarter of it within 0.25 % (USB 2.0, 7.1.11), nothing nearer that one PLL makes."""
    setting = choose_usb(oscillator * MHZ)
    detector, vco, _, made = frequencies(setting)
    assert within(detector, "detector")
    assert within(vco, "vco")
    assert abs(made - 48 * MHZ) <= Fraction(48 * MHZ, 400)
    assert 4 * setting.output_div <= 128
    assert within(vco / (4 * setting.output_div), "output")
    assert not any(abs(other - 48 * MHZ) < abs(made - 48 * MHZ) for other in reachable(oscillator))


def test_from_25_mhz_usb_is_a_little_fast():
    assert choose_usb(25 * MHZ).output_hz == Fraction(625 * MHZ, 13)


def test_an_oscillator_without_usb_is_refused():
    with pytest.raises(UsageError, match="E2310") as caught:
        choose_usb(5 * MHZ)
    assert "48 MHz" in caught.value.what
