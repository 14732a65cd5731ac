"""`onnxhw boards new`: a file that names what is missing until it is whole."""

import json
import re
from pathlib import Path

import pytest
from large_graphs import network

from onnxhw import board
from onnxhw.board_pins import KEYS as PINS
from onnxhw.board_tables import OF_CLASS, OPTIONAL, SECTIONS
from onnxhw.cli import main
from onnxhw.devices import find_family
from onnxhw.errors import DoesNotFitError

PAGE = Path(__file__).parents[2] / "docs" / "boards.md"
MODEL = str(Path(__file__).parents[2] / "examples" / "digits.onnx")
ANSWERS = (
    ("clock.hz", "hz = 0", "hz = 25_000_000"),
    ("program.sram", '"-b", "?", "{bitstream}"', '"-c", "ft2232", "{bitstream}"'),
    ("program.flash", '"-b", "?", "--write-flash"', '"-c", "ft2232", "--write-flash"'),
    ("program.detect", '"-b", "?", "--detect"', '"-c", "ft2232", "--detect"'),
    ("serial.usb", 'usb = "?"', 'usb = "0403:6010"'),
    ("pins.clock", '\nclock = "?"', '\nclock = "P3"'),
    ("pins.uart_rx", '\nuart_rx = "?"', '\nuart_rx = "H18"'),
    ("pins.uart_tx", '\nuart_tx = "?"', '\nuart_tx = "J17"'),
)
"""What a new file leaves open, with what is there and an answer."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_file_names_one_thing_after_the_other_until_it_is_whole(here, capsys):
    assert main(["boards", "new", "mine"]) == 0
    capsys.readouterr()
    path, open_keys = here / "mine.toml", {key for key, _, _ in ANSWERS}
    while open_keys:
        assert main(["check", MODEL, "--board", "./mine.toml", "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "E2303"
        (key,) = (key for key in open_keys if error["what"].startswith(key))
        old, new = next((old, new) for name, old, new in ANSWERS if name == key)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        open_keys.remove(key)
    assert main(["check", MODEL, "--board", "./mine.toml", "--json"]) == 0
    found = board.read_board(path)
    assert (found.name, found.device, found.preset, found.clock_hz) == ("mine", "LFE5U-25F", "mini", 25_000_000)


def refused_with(here, capsys, key, value):
    """What `check` says of a whole board file with one value changed."""
    assert main(["boards", "new", "mine"]) == 0
    path = here / "mine.toml"
    text = path.read_text(encoding="utf-8")
    for _, old, new in ANSWERS:
        text = text.replace(old, new)
    text, count = re.subn(rf"^{key} = \w+", f"{key} = {value}", text, flags=re.M)
    assert count == 1
    path.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["check", MODEL, "--board", "./mine.toml", "--json"]) == 2
    return json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hz", "25", "no clock can be made from 0.000025 MHz"),
        ("core_hz", "1_000_000_000", "1000 MHz cannot be made from 25 MHz, and 257 MHz is the most"),
        ("core_hz", "100_000_001", "100.000001 MHz cannot be made from 25 MHz"),
    ],
)
def test_check_refuses_a_clock_that_synth_cannot_make(here, capsys, key, value, says):
    """Clocks as a mistaken unit or digit makes them."""
    error = refused_with(here, capsys, key, value)
    assert (error["code"], error["where"]) == ("E2310", "board mine: clock.core_hz")
    assert error["what"].startswith(says)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("idcode", "0x41113043", "device.idcode is 0x41113043, an LFE5U-25F answers 0x41111043"),
        ("ebr", "208", "resources.ebr is 208, an LFE5U-25F has 56"),
        ("pll", "3", "resources.pll is 3, an LFE5U-25F has 2"),
    ],
)
def test_check_refuses_what_the_device_is_not(here, capsys, key, value, says):
    error = refused_with(here, capsys, key, value)
    assert (error["code"], error["where"], error["what"]) == ("E2371", "board mine", says)


def test_every_key_there_is_stands_in_a_new_file(here):
    assert main(["boards", "new", "mine"]) == 0
    text = (here / "mine.toml").read_text(encoding="utf-8")
    tables = {**SECTIONS, **{name: OPTIONAL[name] for name in ("usb", "external", "boot")}}
    wanted = {(table, key) for table, keys in tables.items() for key in keys} - OF_CLASS
    place, found = "", set()
    for line in text.splitlines():
        if table := re.fullmatch(r"(?:# )?\[(\w+)\]", line):
            place = table[1]
        elif key := re.match(r"(?:# )?(\w+) = ", line):
            found.add((place, key[1]))
    assert found == wanted | {("pins", key) for key in PINS}


@pytest.mark.parametrize("device", list(find_family("ecp5").parts()))
def test_what_is_known_of_a_device_is_filled_in(here, device):
    assert main(["boards", "new", "mine", "--device", device, "--speed", "8"]) == 0
    text = (here / "mine.toml").read_text(encoding="utf-8")
    part = find_family("ecp5").parts()[device]
    assert f"idcode = 0x{part.idcode:08x}\n" in text
    assert f"ebr = {part.resources.ebr}\n" in text
    assert ('"ulx3s-85f"' in text) == device.endswith("85F")


def test_what_is_known_of_devices_is_what_the_board_files_say():
    for entry in board.boards().values():
        part = find_family(entry.family).parts()[entry.device]
        assert (entry.resources, entry.idcode) == (part.resources, part.idcode)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["mine"], "E2903"), (["My board"], "E2303"), (["new", "--device", "LFE5U-99F"], "E2371"), ([], "E2901"),
        (["new", "--package", "CABGA256"], "E2371"), (["new", "--speed", "5"], "E2371"),
        (["new", "--device", "GW2A-18C", "--speed", "6"], "E2371"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(here, capsys, words, code):
    (here / "mine.toml").write_text("kept")
    assert main(["boards", "new", *words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code
    assert [path.name for path in here.iterdir()] == ["mine.toml"]
    assert (here / "mine.toml").read_text() == "kept"


def test_a_file_of_the_other_family_is_written(here):
    assert main(["boards", "new", "mine", "--device", "GW2A-18C"]) == 0
    text = (here / "mine.toml").read_text(encoding="utf-8")
    assert 'family = "gowin"\n' in text
    assert "\ncore_hz = 27_000_000" in text
    assert '\npackage = "PG256"' in text
    assert '\nspeed = "C8/I7"' in text


def test_a_model_may_still_follow(capsys):
    assert main(["boards", MODEL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == MODEL


def test_the_page_alone_makes_a_board(here, capsys):
    """Its answers, filled into a new file, give the tools what amaranth-boards' class for the same board does."""
    pytest.importorskip("amaranth_boards")
    from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

    from onnxhw.build.device import platform_of, require
    from onnxhw.build.flow import FlowOptions, elaborate
    from onnxhw.cli.common.synthesis import top
    from onnxhw.compiler.cost import line_rate
    from onnxhw.presets import preset

    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"^    onnxhw (boards new my-board .*)$", text, re.M)
    assert main(command.split()) == 0
    answers = dict(re.findall(r"^\| `(\w+\.\w+)` \| `(.+?)` \|", text, re.M))
    assert set(answers) == {key for key, _, _ in ANSWERS}
    table, lines = "", []
    for line in Path("my-board.toml").read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            table = found[1]
        key = f"{table}.{line.partition(' = ')[0]}"
        lines.append(f"{line.partition(' = ')[0]} = {answers.pop(key)}" if key in answers else line)
    Path("my-board.toml").write_text("\n".join(lines), encoding="utf-8")
    assert answers == {}
    capsys.readouterr()
    assert main(["check", MODEL, "--board", "./my-board.toml"]) == 0
    assert "fits" in capsys.readouterr().out
    mine, theirs = board.read_board(Path("my-board.toml")), Colorlight_5A75B_R70Platform()
    require(mine)
    made = platform_of(mine)
    assert (made.device, made.package, made.speed) == (theirs.device, theirs.package, theirs.speed)
    assert theirs.lookup("clk25", 0).clock.frequency == mine.clock_hz
    design = top(mine, preset("mini"), mine.core_hz, line_rate(mine, mine.core_hz))
    sites = dict(re.findall(r'LOCATE COMP "(\w+)" SITE "(\w+)";', elaborate(design, mine, FlowOptions())["top.lpf"]))
    rx, tx = (inner.ios[0].names[0] for inner in theirs.lookup("uart", 0).ios)
    (clock,) = theirs.lookup("clk25", 0).ios[0].names
    assert sites == {"clock_0__io": clock, "uart_0__rx__io": rx, "uart_0__tx__io": tx}


def test_large_models_are_forecast(tmp_path, capsys, monkeypatch):
    """What is too small is not compiled for, and the small boards' preset with SDRAM is there, with cycles about."""
    model = tmp_path / "large.onnx"
    model.write_bytes(network(width=128, size=32))
    monkeypatch.setattr("onnxhw.compiler.capacity.QUICK", 4)
    compiled = []

    def refused(source, config, **more):
        compiled.append(config.name)
        raise DoesNotFitError("E5102", "not tried")

    monkeypatch.setattr("onnxhw.compiler.place_and_schedule", refused)
    assert main(["boards", str(model), "--json"]) == 0
    rows = {row["preset"]: row for row in json.loads(capsys.readouterr().out)["presets"]}
    small = rows["ulx3s-25f-dense+sdram"]
    assert {"ulx3s-12f", "ulx3s-25f"} <= set(small["boards"])
    assert (small["fits"], small["about"], small["reason"]) == (True, True, "")
    assert small["predicted_cycles"] > rows["ulx3s-85f+sdram"]["predicted_cycles"] > 0
    assert rows["mini"]["fits"] is False
    assert rows["mini"]["reason"].startswith("E51")
    assert not {"mini", "ulx3s-25f-dense+sdram", "ulx3s-85f+sdram"} & set(compiled)
    assert main(["boards", str(model)]) == 0
    assert f"about {small['predicted_cycles']:,}" in " ".join(capsys.readouterr().out.split())
