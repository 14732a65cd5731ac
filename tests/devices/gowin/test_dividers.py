"""The rPLL's dividers: what is asked for comes out, within all limits, or the nearest frequencies are named."""

import pytest

from onnxhw.devices.gowin.dividers import choose, settings
from onnxhw.errors import UsageError


@pytest.mark.parametrize("mhz", [27, 54, 81, 40.5])
def test_a_setting_makes_what_was_asked_for(mhz):
    setting = choose(27_000_000, int(mhz * 1e6))
    assert setting.legal
    assert 27_000_000 * setting.feedback_div == setting.output_hz * setting.input_div == mhz * 1e6 * setting.input_div


def test_every_setting_is_legal_and_makes_its_own_output():
    able = settings(27_000_000)
    assert len(able) > 100
    assert all(setting.legal and setting.output_hz == output for output, setting in able.items())
    assert all(choose(27_000_000, round(output)) == setting for output, setting in able.items())


@pytest.mark.parametrize("hz", [1, 27, 2_999_999])
def test_a_clock_that_nothing_can_be_made_from(hz):
    with pytest.raises(UsageError, match="E2310") as caught:
        choose(hz, 27_000_000, where="board mine")
    assert caught.value.hint == "an oscillator must have 3 MHz or more"
    assert caught.value.where == "board mine"


def test_what_cannot_be_made_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="E2310") as caught:
        choose(27_000_000, 54_000_001)
    assert "54 MHz" in caught.value.hint


@pytest.mark.parametrize("asked", [0, 1, 1_000_000_000])
def test_a_clock_beyond_all_limits_is_answered_with_its_neighbours(asked):
    with pytest.raises(UsageError, match="E2310") as caught:
        choose(27_000_000, asked)
    assert caught.value.hint.startswith("the nearest: ")
