"""What is wrong with a board file is said by the key's full name, with what it should say."""

import random
from pathlib import Path

import pytest

from onnxhw import board
from onnxhw.board_tables import OF_CLASS, OPTIONAL, SECTIONS, read_tables
from onnxhw.errors import UsageError

if board.sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOOD = (Path(__file__).parents[2] / "boards" / "ulx3s-85f.toml").read_text(encoding="utf-8")
PINS = """
name = "mine"
title = "A board of one's own"
aliases = []

[device]
family = "ecp5"
name = "LFE5U-25F"
package = "BG381"
speed = "6"
idcode = 0x41111043

[platform]
sysconfig = []

[clock]
hz = 25_000_000
core_hz = 100_000_000

[resources]
lut4 = 24288
ff = 24288
dsp = 28
ebr = 56
pll = 2

[presets]
default = "mini"
all = ["mini"]

[build]
seeds = [1]

[program]
sram = ["openFPGALoader", "{bitstream}"]
flash = []
detect = []

[serial]
usb = "0403:6015"
baud = 3_000_000

[bringup]
connect = "is it connected?"
notes = ""

[pins]
clock = "P3"
uart_rx = "H18"
uart_tx = "J17"
leds_n = "U16 L2"
button = "K18"
"""


def read(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return board.read_board(path)


def refused(tmp_path, text, code="E2303"):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert caught.value.code == code
    assert caught.value.where == str(tmp_path / "mine.toml")
    return caught.value.what


def test_a_file_with_pins_needs_no_class(tmp_path):
    found = read(tmp_path, PINS)
    assert (found.platform, found.clock_resource, found.usb_resource) == ("", "clock", "")
    assert dict(found.pins)["leds_n"] == "U16 L2"


def test_every_missing_key_is_named_with_what_it_says(tmp_path):
    record = tomllib.loads(GOOD)
    for section, keys in {**SECTIONS, **{name: OPTIONAL[name] for name in ("usb", "external", "boot")}}.items():
        for key, what in keys.items():
            table = {name: value for name, value in (record[section] if section else record).items() if name != key}
            wrong = {**record, section: table} if section else table
            with pytest.raises(ValueError) as caught:
                read_tables(wrong)
            assert str(caught.value) == f"{section + '.' if section else ''}{key} is missing: {what.says}"


def test_every_value_of_another_type_is_named(tmp_path):
    record = tomllib.loads(GOOD)
    for section, keys in {**SECTIONS, **{name: OPTIONAL[name] for name in ("usb", "external", "boot")}}.items():
        for key, what in keys.items():
            others = (None, {}, [[]], True, 7 if what.kind is str else "x", float("nan") if what.kind is int else 7)
            for value in others:
                table = {**(record[section] if section else record), key: value}
                with pytest.raises(ValueError) as caught:
                    read_tables({**record, section: table} if section else table)
                assert key in str(caught.value)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('{ mini = 0 }', "clock.preset_hz: 'mini' must be 1..1099511627775, not 0"),
        ('{ mini = 1.5 }', "clock.preset_hz: 'mini' must be 1..1099511627775, not 1.5"),
        ('{ mini = true }', "clock.preset_hz: 'mini' must be 1..1099511627775, not True"),
        ('{ minni = 1 }', "clock.preset_hz: 'minni' is not one of presets.all; did you mean 'mini'?"),
        ('{ tang-20k = 1 }', "clock.preset_hz: 'tang-20k' is not one of presets.all"),
        ('1', "clock.preset_hz must be a table, not 1: "),
    ],
)  # fmt: skip
def test_a_clock_is_of_a_preset_of_the_board(tmp_path, table, says):
    assert refused(tmp_path, PINS.replace("[resources]", f"preset_hz = {table}\n[resources]")).startswith(says)


def test_a_preset_has_its_own_clock_or_the_board_s(tmp_path):
    found = read(tmp_path, PINS.replace("[resources]", 'preset_hz = { "mini+sdram" = 75_000_000 }\n[resources]'))
    assert (found.core_hz_of("mini"), found.core_hz_of("mini+sdram")) == (100_000_000, 75_000_000)
    assert found.clocks == {"clock.core_hz": 100_000_000, "clock.preset_hz: mini+sdram": 75_000_000}


def test_keys_of_a_class_and_pins_exclude_each_other(tmp_path):
    for section, key in sorted(OF_CLASS - {(table, "resource") for table in ("usb", "external", "boot")}):
        text = PINS.replace(f"[{section}]\n", f'[{section}]\n{key} = "x"\n')
        assert refused(tmp_path, text).startswith(f"{section}.{key} goes with a platform's class")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lut4 = 24288", "lut = 24288", "as place and route counts them; the file has 'lut' there, which is no key"),
        ("lut4 = 24288", "lut4 = 24288\nlut5 = 1", "unknown key 'lut5' in table 'resources'; did you mean 'lut4'?"),
        ("[serial]", "[seral]", "unknown table 'seral'; did you mean 'serial'?"),
        ('title = "A', 'titel = "x"\ntitle = "A', "unknown key 'titel'; did you mean 'title'?"),
        ('title = "A', 'usb = 5\ntitle = "A', "usb must be a table, not 5"),
        ('title = "A', '"" = 5\ntitle = "A', "a key has no name"),
        ("[serial]", "[link]\na = 1\n[serial]", "link must not be a table"),
        ("[serial]", "[unused_memory]\n[serial]", "unused_memory must not be a table"),
        ("seeds = [1]", "seeds = 1", "build.seeds must be a list, not 1: seeds of place and route"),
        ("seeds = [1]", "seeds = [-1]", "build.seeds must be 0 to 2,147,483,647, not -1"),
        ("seeds = [1]", "seeds = [1, 2147483648]", "build.seeds must be 0 to 2,147,483,647, not 2147483648"),
        ("seeds = [1]", "seeds = [1.5]", "build.seeds must be a list whose items are each a whole number, not [1.5]"),
        ("sysconfig = []", 'sysconfig = ["a b"]', "platform.sysconfig must have words like"),
        ("sysconfig = []", 'sysconfig = ["MCCLK_FREQ=fast"]', "MCCLK_FREQ must be a number of MHz, not 'fast'"),
        ("sysconfig = []", 'sysconfig = ["MCCLK_FREQ=0.0"]', "MCCLK_FREQ must be a number of MHz"),
        ('default = "mini"', 'default = "mimi"', "there is no preset 'mimi'; did you mean 'mini'?"),
        ('sram = ["openFPGALoader", "{bitstream}"]', "sram = []", "program.sram and program.flash must not both"),
        ('"{bitstream}"]', '"top.bit"]', 'program.sram must have a word "{bitstream}"'),
        ("detect = []", 'detect = [""]', "program.detect: the words of a command must be printable"),
        ("aliases = []", 'aliases = ["A B"]', "aliases must be lower-case letters"),
        ("baud = 3_000_000", "baud = 0", "serial.baud must be 300 to 12,000,000, not 0: the fastest"),
        ("baud = 3_000_000", "baud = 80_000_000", "serial.baud must be 300 to 12,000,000, not 80,000,000"),
        ("[serial]\n", '"" = 1\n[serial]\n', "unknown key '' in table 'program'"),
        ('clock = "P3"\n', "", "pins.clock is missing: the oscillator's pin"),
        ('clock = "P3"', 'clock = "P3 P4"', "pins.clock must be the name of one pin, not 'P3 P4'"),
        ('clock = "P3"', 'clock = ""', "pins.clock must be the name of one pin, not ''"),
        ('clock = "P3"', 'clock = "J17"', "pins: J17 is both clock and uart_tx"),
        ('leds_n = "U16 L2"', 'leds_n = "U16 U16"', "pins.leds_n names U16 twice"),
        ('leds_n = "U16 L2"', 'leds_n = "U16"\nleds = "L2"', "pins: leds or leds_n, not both"),
        ('clock = "P3"', 'clock = "P-3"', "pins.clock: 'P-3' is no name of a pin"),
        ('clock = "P3"', 'clock = "P3"\nio_type = "3.3 V"', "pins.io_type must be one of LVCMOS33, LVCMOS25, "),
        ('clock = "P3"', 'clock = "P3"\nclok = "P4"', "unknown key 'clok' in table 'pins'; did you mean 'clock'?"),
        ('uart_rx = "H18"\n', "", "pins.uart_rx is missing: serial line: the FPGA's input"),
        ('clock = "P3"', 'clock = "P3"\nusb_d_p = "A1"', "pins.usb_d_p needs the table usb"),
        ("[pins]", '[usb]\nid = "1209:0001"\n[pins]', "pins.usb_d_p is missing: D+ of a USB connector"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_what_is_wrong(tmp_path, old, new, words):
    assert old in PINS
    assert words in refused(tmp_path, PINS.replace(old, new, 1))


def test_a_byte_order_mark_is_no_key(tmp_path):
    """Some editors write one."""
    assert read(tmp_path, "\ufeff" + PINS) == read(tmp_path, PINS)


def test_a_usb_link_needs_no_serial_line(tmp_path):
    text = PINS.replace("aliases = []", 'aliases = []\nlink = "usb"')
    text = text.replace('[serial]\nusb = "0403:6015"\nbaud = 3_000_000\n', '[usb]\nid = "1209:0001"\n')
    text = text.replace('uart_rx = "H18"\nuart_tx = "J17"', 'usb_d_p = "H18"\nusb_d_n = "J17"\nusb_pullup = "L1"')
    found = read(tmp_path, text)
    assert (found.link, found.usb, found.baud, found.usb_resource, found.usb_ids) == ("usb", "", 0, "usb", (0x1209, 1))
    assert "serial.usb is missing" in refused(tmp_path, text.replace('link = "usb"\n', ""))


def test_no_change_of_a_file_does_anything_else(tmp_path):
    """Characters lost, doubled or exchanged in good files: each is read, or refused by an error about the file."""
    draw, codes = random.Random(21), set()
    for text in (GOOD, PINS):
        for _ in range(600):
            place = draw.randrange(len(text))
            other = draw.choice([*'"[]=\n0a-\x00 {\'é', text[place] * 2, ""])
            try:
                read(tmp_path, text[:place] + other + text[place + 1 :])
            except UsageError as error:
                codes.add(error.code)
    assert {"E2302", "E2303"} <= codes <= {"E2301", "E2302", "E2303", "E2306"}
