"""The estimate: exact where it says so, near enough elsewhere, and refused before anything is synthesized."""

import dataclasses

import pytest

from onnxhw.board import boards, find
from onnxhw.config import HwConfig
from onnxhw.devices.ecp5.estimate import TOLERANCE, estimate
from onnxhw.devices.family import check_fit
from onnxhw.devices.memories import block_rams
from onnxhw.errors import DoesNotFitError
from onnxhw.presets import PRESETS, preset

SMALL = HwConfig(
    "small", rows=2, cols=3, word=2, lanes=1, acc_bits=24, act_banks=2, act_depth=1024, weight_depth=2048,
    acc_depth=600, param_depth=64, tables=1, multiplier="fabric", requant_dsps=5,
)  # fmt: skip


def test_every_preset_fits_the_boards_that_offer_it():
    for board in boards().values():
        for name in board.presets:
            check_fit(estimate(PRESETS[name]).counts(), board)


def test_block_rams_of_the_largest_preset():
    assert block_rams(PRESETS["ulx3s-85f"]) == {
        "activations": 64, "weights": 64, "accumulators": 24, "depthwise sums": 9, "parameters": 16, "tables": 16,
        "load microcode": 2, "array microcode": 1, "depthwise microcode": 1, "vector microcode": 3,
    }  # fmt: skip
    assert estimate(PRESETS["ulx3s-85f"]).dsp == 8 * (16 + 1) + 8 * 2


def test_short_memories_of_the_depthwise_unit_are_lookup_tables():
    long = dataclasses.replace(PRESETS["ulx3s-45f"], window_depth=256, depthwise=256, depthwise_ucode=512)
    found = block_rams(long)
    assert [found[f"depthwise {what}"] for what in ("lines", "sums", "microcode")] == [4, 5, 1]
    assert not any("depthwise" in name for name in block_rams(PRESETS["ulx3s-45f"]))
    assert estimate(long).lut < estimate(PRESETS["ulx3s-45f"]).lut


@pytest.mark.parametrize(
    ("name", "lut", "ff"), [("mini+sdram", 13851, 12343), ("ulx3s-25f-dense+sdram", 19323, 16738),
                            ("ulx3s-85f+sdram", 67302, 62762)]
)  # fmt: skip
def test_external_memory_counts(name: str, lut: int, ff: int) -> None:
    """What Yosys 0.70 makes of them."""
    guess = estimate(preset(name))
    assert guess.lut == pytest.approx(lut, rel=0.05)
    assert guess.ff == pytest.approx(ff, rel=0.05)


def test_weights_of_the_dense_preset_leave_room_for_the_rest():
    dense = PRESETS["ulx3s-85f-dense"]
    assert block_rams(dense) == {
        "activations": 16, "weights": 128, "accumulators": 24, "parameters": 16, "tables": 8,
        "load microcode": 1, "array microcode": 1, "vector microcode": 1,
    }  # fmt: skip
    assert estimate(dense).ebr == 201
    full = estimate(dataclasses.replace(dense, weight_depth=1024))
    assert estimate(dense).ebr == full.ebr
    assert estimate(dense).lut - full.lut == 8 * 256 // 4 * 6 + 8 * 256


def test_what_does_not_fit_is_told_with_all_numbers():
    config = dataclasses.replace(PRESETS["ulx3s-25f"], rows=16, word=16, act_depth=8192)
    with pytest.raises(DoesNotFitError) as caught:
        check_fit(estimate(config).counts(), find("ulx3s-25f"))
    assert caught.value.code == "E5201"
    assert caught.value.exit_status == 5
    assert caught.value.what == "needs 56 multipliers, LFE5U-25F has 28; 234 block RAMs, LFE5U-25F has 56"
    assert caught.value.where == "ulx3s-25f"
    assert "multiplier='fabric'" in caught.value.hint


def test_multipliers_of_the_requantizer_count():
    config = dataclasses.replace(PRESETS["mini"], requant_dsps=3)
    assert estimate(config).dsp == 16 + 2 * 3


@pytest.mark.synth
@pytest.mark.slow
@pytest.mark.parametrize("config", [SMALL, PRESETS["mini"]], ids=lambda config: config.name)
def test_estimate_against_yosys(config):
    from netlist import synthesize_netlist

    from onnxhw.rtl.top import LinkedCore

    netlist = synthesize_netlist(LinkedCore(config, clock_hz=100_000_000))
    guess = estimate(config)
    assert (guess.ebr, guess.dsp) == (netlist.ebrs, netlist.dsps)
    assert guess.lut == pytest.approx(netlist.luts, rel=TOLERANCE)
    assert guess.ff == pytest.approx(netlist.ffs, rel=TOLERANCE)
