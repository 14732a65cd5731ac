"""External memory of boards: its cycles at a clock, its pins, and presets with it."""

from dataclasses import replace
from pathlib import Path

import pytest

from onnxhw import board
from onnxhw.errors import UsageError
from onnxhw.presets import preset

EXTERNAL = ("ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f")


def test_external_memory_of_the_ulx3s():
    """Geometry by the platform's pins; at 100 MHz what the preset ``+sdram`` has, but for the one for 125."""
    from onnxhw.external import ULX3S, ULX3S_125

    for name in EXTERNAL:
        entry = board.find(name)
        assert entry.external.size == 32 << 20
        assert entry.external.external(100_000_000) == ULX3S == preset("mini+sdram").external
        assert entry.external.external(125_000_000) == ULX3S_125 == preset("ulx3s-85f+sdram").external


def test_the_configuration_of_a_board_has_the_board_s_memory_at_its_clock():
    """Of the 85F it is what the preset's name says anywhere; of another board with that preset it is another memory."""
    large, other = board.find("ulx3s"), board.find("colorlight-i5")
    assert large.configuration() == large.configuration("ulx3s-85f+sdram") == preset("ulx3s-85f+sdram")
    assert large.configuration("mini", 50_000_000) == preset("mini")
    assert large.configuration(clock_hz=50_000_000).external == large.external.external(50_000_000)
    assert other.configuration() == preset("mini")
    assert other.configuration("mini+sdram").external == other.external.external(other.core_hz)
    assert other.configuration("mini+sdram") != preset("mini+sdram")
    assert large.offers("mini")
    assert large.offers("mini+sdram")
    assert not large.offers("ulx3s-45f+sdram")
    with pytest.raises(UsageError, match="E2374"):
        board.find("ecpix5-85f").configuration("mini+sdram")


def test_a_preset_s_own_clock_is_that_of_its_memory():
    entry = board.find("ulx3s-85f")
    quick = replace(entry, preset_hz=(("mini+sdram", 75_000_000),))
    assert quick.configuration("mini+sdram").external == entry.external.external(75_000_000)
    assert quick.configuration("ulx3s-25f+sdram").external == entry.external.external(entry.core_hz)


def test_pins_of_the_external_memory_are_checked():
    pytest.importorskip("amaranth_boards")
    from onnxhw.build.device import require

    entry = board.find("ulx3s-85f")
    external = entry.external.external(entry.core_hz)
    require(entry, external=external)
    with pytest.raises(UsageError, match=r"E2375.*dq has 16 pins, not 32"):
        require(entry, external=replace(external, data_bits=32))
    with pytest.raises(UsageError, match=r"E2375.*no external memory 'ram'"):
        require(replace(entry, external=replace(entry.external, resource="ram")), external=external)


@pytest.mark.parametrize("clock_mhz", [25, 50, 99.9, 100, 100.1, 125, 142])
def test_cycles_of_the_external_memory_are_long_enough(clock_mhz):
    """Every time in cycles is that of the data sheet, and not a cycle more than it takes."""
    memory, hz = board.find("ulx3s-85f").external, round(clock_mhz * 1e6)
    external, period = memory.external(hz), 1e9 / hz
    for cycles, nanoseconds in (
        (external.rcd, memory.trcd_ns), (external.rp, memory.trp_ns), (external.rfc, memory.trfc_ns),
    ):  # fmt: skip
        assert cycles * period >= nanoseconds > (cycles - 1) * period - 1e-6
    assert external.ras * period >= memory.tras_ns
    assert (external.ras + external.rp) * period >= memory.trc_ns
    assert external.wr * period >= memory.twr_ns
    assert external.rrd * period >= memory.trrd_ns
    assert min(external.wr, external.rrd) >= 2
    assert period >= (memory.tck2_ns if external.cas_latency == 2 else memory.tck3_ns)
    assert external.turn == external.cas_latency + 2
    late = 2 * external.sequence
    assert memory.rows * external.refresh + late <= memory.retention_ms * 1e6 / period


def test_clocks_that_the_external_memory_does_not_take():
    memory = board.find("ulx3s-85f").external
    with pytest.raises(UsageError, match=r"E2373.*142.9 MHz at most, not 150"):
        memory.external(150_000_000)
    with pytest.raises(UsageError, match=r"E2373.*refresh must be "):
        memory.external(1_000_000)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("data_bits = 16", "data_bits = 8", "external.data_bits must be 16 or 32, not 8"),
        ("rows = 8192", "rows = 8000", "external.rows must be a power of two in 2..8192, not 8000"),
        ("columns = 512", "columns = 2048", "external.columns must be a power of two in 8..1024, not 2048"),
        ("trcd_ns = 21.0", "trcd_ns = 21", "external.trcd_ns must be a number with a decimal point, not 21"),
        ("trcd_ns = 21.0", "trcd_ns = nan", "external.trcd_ns must be above 0"),
        ("trcd_ns = 21.0", "trcd_ns = inf", "external.trcd_ns must be above 0"),
        ("trcd_ns = 21.0", "trcd_ns = -1.0", "external.trcd_ns must be above 0"),
        ("tmrd_cycles = 2", "tmrd_cycles = 9", "external.tmrd_cycles must be 1..7, not 9"),
        ("tck2_ns = 10.0", "tck2_ns = 6.0", "external.tck2_ns must not be less than tck3_ns"),
        ('resource = "sdram"', 'resource = ""', "external.resource must not be empty"),
        ("capture = 1", "capture = 0", "external.capture must be 1 or 2, not 0"),
        ("trp_ns = 21.0\n", "", "external.trp_ns is missing: from PRECHARGE"),
        ("trp_ns = 21.0", "trp_ns = 21.0\ntfoo_ns = 1.0", "unknown key 'tfoo_ns'"),
    ],
)
def test_what_is_wrong_with_the_external_memory_of_a_file_is_said(old, new, what, tmp_path):
    text = (Path(__file__).parents[2] / "boards" / "ulx3s-85f.toml").read_text()
    assert old in text
    path = tmp_path / "board.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError) as error:
        board.read_board(path)
    assert error.value.code == "E2303"
    assert what in str(error.value)


def test_a_board_without_external_memory_refuses_presets_with_it(tmp_path):
    from onnxhw.cli.common.pipeline import target

    text = (Path(__file__).parents[2] / "boards" / "ulx3s-85f.toml").read_text()
    start = text.index("[external]")
    path = tmp_path / "bare.toml"
    bare = text[:start] + text[text.index("[bringup]") :]
    path.write_text(bare)
    with pytest.raises(UsageError, match=r"E2303 .*presets\.external goes with a table external"):
        target(str(path), "mini")
    path.write_text(bare := bare.replace('external = "ulx3s-85f"\n', ""))
    with pytest.raises(UsageError, match=r"E2303 .*presets\.default 'ulx3s-85f\+sdram' goes with a table external"):
        target(str(path), "mini")
    path.write_text(bare.replace('default = "ulx3s-85f+sdram"', 'default = "ulx3s-85f"'))
    assert target(str(path), "mini").config == preset("mini")
    with pytest.raises(UsageError, match="E2374"):
        target(str(path), "mini+sdram")
    with pytest.raises(UsageError, match="E2104"):
        target("ulx3s", "nothing+sdram")
    with pytest.raises(UsageError, match="E2904"):
        target("ulx3s-12f", "ulx3s-85f+sdram")
