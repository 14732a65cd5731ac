"""A critical path in words."""

import re

import pytest
from amaranth.back import rtlil

from onnxhw.config import HwConfig
from onnxhw.devices.ecp5.report import NAMES
from onnxhw.devices.path import BLOCKS, block_of, describe_path, end_of, remedy
from onnxhw.garbage import collection_paused
from onnxhw.rtl.top import LinkedCore

BITS = "design.device.core.vector.bits_TRELLIS_FF_Q_383"
END = "design.device.core.vector.out_loops.o_at_cb_TRELLIS_FF_Q_1"
LUT = "design.device.core.vector.left_TRELLIS_FF_Q_4_DI_LUT4_Z_D_CCU2C_S0$CCU2_COMB1"
CONFIG = HwConfig(
    "all units", rows=4, cols=4, word=4, lanes=2, acc_bits=24, act_depth=64, weight_depth=64, acc_depth=32,
    param_depth=32, load_ucode=64, array_ucode=64, vector_ucode=64, inner_product="fast", depthwise=8,
)  # fmt: skip


def segment(kind, delay, start, stop):
    """`start` and `stop`: cell, port and place."""
    names = ("cell", "port", "loc")
    return {"type": kind, "delay": delay, "from": dict(zip(names, start, strict=True)),
            "to": dict(zip(names, stop, strict=True))}  # fmt: skip


def path(wires):
    one, two, three = (BITS, "Q", [29, 44]), (LUT, "A", [10, 50]), (LUT, "F", [10, 50])
    four = (END, "CE", [31, 41])
    return [
        segment("clk-to-q", 0.5, one, one), segment("routing", wires, one, two), segment("logic", 0.25, two, three),
        segment("routing", 0.75, three, four), segment("setup", 0.0, four, four),
    ]  # fmt: skip


def test_a_path_is_told_in_words():
    assert describe_path(path(1.25), NAMES) == (
        "2.75 ns from register bits of the vector unit to register o_at_cb (its clock enable) of the vector unit's "
        "address loops: 0.75 ns in 1 level of logic and the cells at both ends, 2.00 ns in wires; longest wire "
        "1.25 ns, over 19 columns and 6 rows"
    )
    assert describe_path([], NAMES) == ""


@pytest.mark.parametrize(
    ("name", "port", "words"),
    [
        ("design.device.core.array.array.pe_3_12.active_0_TRELLIS_FF_Q_2", "CE",
         "register active_0 (its clock enable) of element 3 of array column 12"),
        ("design.device.core.vector.lane_2.p10.cell", "A3", "a multiplier of requantizer lane 2"),
        ("design.device.core.act.bank_1.tile_7", "ADB3", "block RAM 7 of the activation memory"),
        ("design.device.core.vector_fetch.left_TRELLIS_FF_Q", "LSR",
         "register left (its reset) of the vector unit's fetcher"),
        ("design.device.loader.encoder.head_TRELLIS_FF_Q_3", "DI", "register encoder.head of the link"),
        ("design.heartbeat_TRELLIS_FF_Q", "DI", "register design.heartbeat of the board's surroundings"),
    ],
)  # fmt: skip
def test_ends(name, port, words):
    assert end_of(name, port, NAMES) == words


def test_what_would_help_depends_on_where_the_time_goes():
    assert remedy(path(1.25), NAMES) == (
        "mostly wires: other placements (--seeds 10), a lower clock (--freq), or lower lanes in the preset"
    )
    assert remedy(path(0.0), NAMES).startswith("mostly logic, which placement cannot change: a lower clock (--freq)")
    assert "a smaller preset" in remedy([], NAMES)


def test_blocks_say_what_to_lower():
    fields = HwConfig.__dataclass_fields__
    for pattern, _, smaller in BLOCKS:
        units = re.findall(r"load|array|vector", pattern) if "{" in smaller else [""]
        for name in (one for unit in units for one in smaller.format(unit).split(", ") if one):
            assert name in fields, pattern
    assert block_of("design.device.core.vector_fetch.left")[2] == "vector_ucode"


def test_every_block_is_in_the_design_and_every_part_of_the_design_in_a_block():
    with collection_paused():
        text = rtlil.convert(LinkedCore(CONFIG, clock_hz=25_000_000), name="device", emit_src=False)
    modules = re.findall(r"^module \\([\w.]+)$", text, re.MULTILINE)
    places = {name.removeprefix("device.") for name in modules} - {"device"}
    assert len(places) > 100
    for place in places:
        assert block_of(f"design.device.{place}")[0] != "the board's surroundings", place
    for pattern, _, _ in BLOCKS:
        assert any(re.match(rf"(?:{pattern})(?:\.|$)", place) for place in places), pattern
