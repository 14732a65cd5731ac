"""The estimate: exact where it says so, near enough elsewhere."""

import dataclasses

import pytest

from onnxhw.devices.gowin.estimate import TOLERANCE, estimate, multipliers
from onnxhw.presets import PRESETS

MINI = PRESETS["mini"]
TINY = dataclasses.replace(
    MINI, name="tiny", rows=2, cols=2, word=2, lanes=1, act_banks=2, act_depth=256, weight_depth=512, acc_depth=128,
    param_depth=64, tables=1, unaligned=0,
)  # fmt: skip


def test_two_narrow_products_share_a_multiplier():
    """Of a lane's five products four are wide; those of the array and the fifth are narrow."""
    assert multipliers(MINI) == 2 * 4 + (16 + 2) // 2
    assert multipliers(dataclasses.replace(MINI, requant_dsps=1)) == 2 * 1 + (16 + 2) // 2
    assert multipliers(TINY) == 4 + -(-(4 + 1) // 2)


def test_products_of_a_fast_array_are_narrow_as_well():
    """One multiplier for two rows, and one more of each two for the activations."""
    fast = dataclasses.replace(MINI, inner_product="fast")
    assert multipliers(fast) == 2 * 4 + (2 * (4 + 1) + 2) // 2
    assert estimate(fast).ebr == estimate(MINI).ebr == 40


@pytest.mark.parametrize(
    ("name", "lut", "ff", "dsp", "ebr"), [("mini", 10_160, 10_111, 17, 40), ("tang-20k", 9_253, 9_295, 13, 46)]
)
def test_presets_are_what_yosys_made_of_them(name, lut, ff, dsp, ebr):
    """Yosys 0.70 for a Tang Nano 20K, which takes minutes."""
    guess = estimate(PRESETS[name])
    assert (guess.dsp, guess.ebr) == (dsp, ebr)
    assert guess.lut == pytest.approx(lut, rel=TOLERANCE)
    assert guess.ff == pytest.approx(ff, rel=TOLERANCE)


@pytest.mark.synth
@pytest.mark.slow
def test_estimate_against_yosys():
    from netlist import synthesize_netlist

    from onnxhw.rtl.top import LinkedCore

    netlist = synthesize_netlist(LinkedCore(TINY, clock_hz=54_000_000), family="gowin")
    guess = estimate(TINY)
    assert (guess.ebr, guess.dsp) == (netlist.ebrs, netlist.dsps)
    assert guess.lut == pytest.approx(netlist.luts, rel=TOLERANCE)
    assert guess.ff == pytest.approx(netlist.ffs, rel=TOLERANCE)
