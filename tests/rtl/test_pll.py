"""The arithmetic of the clock."""

from fractions import Fraction

import pytest

from onnxhw.errors import UsageError
from onnxhw.rtl.pll import OUTPUT_HZ, PHASE_DETECTOR_HZ, VCO_HZ, choose, settings

MHZ = 1_000_000


@pytest.mark.parametrize("output", [25, 50, 62.5, 75, 80, 90, 95, 100, 105, 125, 150, 200])
def test_common_clocks_come_out_exactly(output):
    setting = choose(25 * MHZ, int(output * MHZ))
    assert setting.output_hz == Fraction(output) * MHZ
    assert setting.output_hz == Fraction(25 * MHZ * setting.feedback_div, setting.input_div)
    assert setting.vco_hz == setting.output_hz * setting.output_div
    assert setting.legal


def test_hundred_from_twentyfive():
    setting = choose(25 * MHZ, 100 * MHZ)
    assert (setting.input_div, setting.feedback_div, setting.output_div) == (1, 4, 6)


def test_every_setting_keeps_the_limits_of_the_data_sheet():
    found = settings(25 * MHZ)
    assert len({setting.output_hz for setting in found}) == len(found) > 100
    for setting in found:
        assert VCO_HZ[0] <= setting.vco_hz <= VCO_HZ[1]
        assert OUTPUT_HZ[0] <= setting.output_hz <= OUTPUT_HZ[1]
        assert PHASE_DETECTOR_HZ[0] <= Fraction(setting.input_hz, setting.input_div) <= PHASE_DETECTOR_HZ[1]
        assert 1 <= setting.output_div <= 128


def test_an_impossible_clock_is_answered_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        choose(25 * MHZ, 101 * MHZ)
    assert caught.value.code == "E2310"
    assert caught.value.hint == "the nearest is 100 MHz"


def test_a_clock_that_nothing_can_be_made_from():
    with pytest.raises(UsageError, match="no clock can be made from 1 MHz"):
        choose(MHZ, 100 * MHZ)
