"""The rPLL's dividers: what is asked for comes out, within all limits, or the nearest frequencies are named."""

import pytest

from onnxhw.devices.gowin.pll import choose, settings
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


def test_what_cannot_be_made_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="E2310") as caught:
        choose(27_000_000, 54_000_001)
    assert "54 MHz" in caught.value.hint
