"""Board files: what they say is true, and what is wrong with a file is said."""

from pathlib import Path

import pytest

from onnxhw import board
from onnxhw.cli import main
from onnxhw.cli.common.pipeline import BoardTarget
from onnxhw.compiler.cost import line_rate
from onnxhw.errors import ToolError, UsageError
from onnxhw.isa.link import USB_BAUD
from onnxhw.presets import PRESETS, preset
from onnxhw.program.traffic import Rates

DIGITS = Path(__file__).parents[2] / "examples" / "digits.onnx"

DETECT = """Jtag frequency : requested 6.00MHz -> real 6.00MHz
index 0:
\tidcode 0x{:08x}
\tmanufacturer lattice
\tfamily ECP5
"""


NAMES = ["colorlight-i5", "colorlight-i9", "ecpix5-85f", "icepi-zero", "orangecrab-25f", "orangecrab-85f",
         "tang-nano-20k", "tang-primer-20k", "ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f"]  # fmt: skip


def test_all_boards_are_there():
    assert board.names() == NAMES
    assert board.find("ulx3s").device == "LFE5U-85F"
    assert board.find("ULX3S-25F").name == "ulx3s-25f"


def test_files_agree_with_the_amaranth_platforms_and_presets():
    pytest.importorskip("amaranth_boards")
    from onnxhw.build.flow import platform_of
    from onnxhw.devices.gowin.parts import part_number

    for entry in board.boards().values():
        platform = platform_of(entry)
        if entry.family == "gowin":
            assert platform.part == part_number(entry)
        else:
            assert (platform.device, platform.package, platform.speed) == (entry.device, entry.package, entry.speed)
        assert platform.default_clk == entry.clock_resource
        assert int(platform.lookup(entry.clock_resource).clock.frequency) == entry.clock_hz
        assert entry.offers(entry.preset)
        assert not entry.preset.endswith("+sdram") or entry.external
        assert set(entry.presets) <= set(PRESETS)


def test_idcodes_are_those_of_the_devices_and_compared_in_full():
    codes = {entry.device: entry.idcode for entry in board.boards().values() if entry.family == "ecp5"}
    assert codes == {"LFE5U-12F": 0x21111043, "LFE5U-25F": 0x41111043, "LFE5U-45F": 0x41112043,
                     "LFE5U-85F": 0x41113043, "LFE5UM5G-85F": 0x81113043}  # fmt: skip
    small, large = board.find("ulx3s-12f"), board.find("ulx3s-25f")
    assert board.idcode_matches(large, 0x41111043)
    assert not board.idcode_matches(large, small.idcode)


def test_check_device_accepts_the_board_and_names_another_one():
    entry = board.find("ulx3s-85f")
    board.check_device(entry, DETECT.format(0x41113043))
    with pytest.raises(ToolError) as caught:
        board.check_device(entry, DETECT.format(0x41111043))
    assert caught.value.code == "E7202"
    assert caught.value.what == "the connected device answers 0x41111043 (LFE5U-25F), not 0x41113043 (LFE5U-85F)"
    assert caught.value.hint == "use --board ulx3s-25f"  # not another board with that device, asked in another way
    with pytest.raises(ToolError, match=r"E7201.*openFPGALoader says: 'JTAG failed; unable to open ftdi device'"):
        board.check_device(entry, "JTAG failed\n\nunable to open ftdi device\n")
    with pytest.raises(ToolError, match="E7201 tool: ulx3s-85f: no device answers over JTAG Hint"):
        board.check_device(entry, "")


def test_program_command_names_the_file():
    entry = board.find("ulx3s")
    assert entry.program_command("out/top.bit") == ["openFPGALoader", "-b", "ulx3s", "out/top.bit"]
    assert "--write-flash" in entry.program_command("top.bit", flash=True)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        board.find("ulx3s-25g")
    assert caught.value.code == "E2305"
    assert "did you mean 'ulx3s-25f'?" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (("idcode = 0x41113043", 'idcode = "x"'), "E2303", "device.idcode must be a whole number, not 'x': what"),
        (('speed = "6"', 'speed = "6"\nspeedy = 1'), "E2303", "unknown key 'speedy'"),
        (("[serial]", "[parallel]"), "E2303", "unknown table 'parallel'"),
        (("[device]", "[device"), "E2302", "not TOML"),
        (('family = "ecp5"\n', ""), "E2303", "device.family is missing: a package of"),
        (('external = "ulx3s-85f"', 'external = "ulx3s-45f"'), "E2303", "presets.external 'ulx3s-45f' is not in"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, change, code, words):
    source = next(place for place in board.folders() if (place / "ulx3s-85f.toml").exists()) / "ulx3s-85f.toml"
    path = tmp_path / "broken.toml"
    path.write_text(source.read_text().replace(*change))
    with pytest.raises(UsageError) as caught:
        board.read_board(path)
    assert caught.value.code == code
    assert words in caught.value.what


def test_another_device_family_is_refused_by_every_command(tmp_path, capsys):
    """`boards` lists the file as no board; `check`, `compile` and `synth` end before they read the model."""
    import json

    from onnxhw.cli import main

    path = tmp_path / "nano.toml"
    nano = GOOD.replace('family = "ecp5"', 'family = "ecp6"').replace('name = "ulx3s-85f"', 'name = "nano"')
    path.write_text(nano.replace('aliases = ["ulx3s"]', "aliases = []"))
    for words in (["check", "none.onnx"], ["compile", "none.onnx"], ["synth", "none.onnx"]):
        assert main([*words, "--board", str(path), "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["code"], error["where"]) == ("E2306", str(path))
        assert "'ecp6'" in error["what"]
        assert "ecp5" in error["hint"]


def test_another_device_family_is_not_among_the_boards(tmp_path, capsys, monkeypatch):
    from onnxhw.cli import main

    (tmp_path / "nano.toml").write_text(GOOD.replace('family = "ecp5"', 'family = "ecp6"'))
    monkeypatch.setenv("ONNXHW_BOARDS", str(tmp_path))
    assert main(["boards"]) == 0
    shown = capsys.readouterr()
    assert "E2306" in shown.err
    assert "nano.toml" in shown.err


@pytest.mark.parametrize("command", ["check", "compile", "synth"])
def test_a_part_that_the_family_does_not_have_is_refused_before_the_model_is_read(tmp_path, capsys, command):
    import json

    from onnxhw.cli import main

    path = tmp_path / "large.toml"
    path.write_text(GOOD.replace('name = "LFE5U-85F"', 'name = "LFE5U-99F"'))
    assert main([command, "none.onnx", "--board", str(path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E2371"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "1209:0001"', 'id = "1209-0001"', "usb.id must be like"),
        ('id = "1209:0001"', "id = 1209", "usb.id must be a text in quotes, not 1209"),
        ('resource = "usb"\n', "", "usb.resource is missing"),
        ('resource = "usb"\n', 'resource = ""\n', "usb.resource must not be empty"),
        ('resource = "usb"\n', 'resource = "usb"\npins = 2\n', "unknown key 'pins'"),
        ('aliases = ["ulx3s"]', 'aliases = []\nlink = "ethernet"', "link must be one of uart, usb"),
        ('aliases = ["ulx3s"]', "aliases = []\nlink = 1", "link must be a text in quotes, not 1"),
    ],
)
def test_a_wrong_usb_connector_is_one_error(tmp_path, old, new, words):
    text = (board.folders()[-1] / "ulx3s-85f.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "odd.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match="E2303") as caught:
        board.read_board(path)
    assert words in caught.value.what


def without_usb(text):
    """The same board without its table usb, and those that follow."""
    before, rest = text.split("[usb]\n", 1)
    before = before.replace('external = "ulx3s-85f"\n', "").replace("ulx3s-85f+sdram", "ulx3s-85f")
    return before + "[bringup]\n" + rest.split("[bringup]\n", 1)[1]


def test_a_board_without_usb_pins_has_no_such_link(tmp_path, capsys):
    """A file without the table is as it was before there was one; a USB link is refused before anything is built."""
    text = without_usb((board.folders()[-1] / "ulx3s-85f.toml").read_text(encoding="utf-8"))
    path = tmp_path / "plain.toml"
    path.write_text(text, encoding="utf-8")
    found = board.read_board(path)
    assert (found.link, found.usb_resource, found.usb_id) == ("uart", "", "")
    path.write_text(text.replace('aliases = ["ulx3s"]', 'aliases = []\nlink = "usb"'), encoding="utf-8")
    with pytest.raises(UsageError, match='link "usb" needs the table usb'):
        board.read_board(path)
    pytest.importorskip("amaranth_boards")
    path.write_text(text, encoding="utf-8")
    command = ["synth", str(DIGITS), "--board", str(path), "--preset", "mini", "--link", "usb"]
    assert main([*command, "-o", str(tmp_path / "o")]) == 2
    assert "E2341" in capsys.readouterr().err
    assert main(["synth", str(DIGITS), "--preset", "mini", "--link", "usb", "--baud", "9600"]) == 2
    assert "E2342" in capsys.readouterr().err
    for baud, code in ((3_000_001, "E2343"), (12_000_001, "E2901"), (299, "E2901")):
        assert main(["synth", str(DIGITS), "--preset", "mini", "--baud", str(baud)]) == 2
        assert code in capsys.readouterr().err


def test_the_link_of_a_board_is_that_of_its_file(tmp_path):
    text = (board.folders()[-1] / "ulx3s-85f.toml").read_text(encoding="utf-8")
    path = tmp_path / "other.toml"
    path.write_text(text.replace('aliases = ["ulx3s"]', 'aliases = []\nlink = "usb"'), encoding="utf-8")
    found = board.read_board(path)
    assert (found.link, found.usb_resource, found.usb_ids) == ("usb", "usb", (0x1209, 1))
    assert line_rate(found, 100e6) == USB_BAUD
    mine = board.find("ulx3s-85f")
    assert line_rate(mine, 100e6) == 3_000_000
    assert line_rate(mine, 100e6, "usb") == USB_BAUD
    assert line_rate(mine, 20e6) == 1_500_000, "eight cycles to a bit"
    assert BoardTarget(mine, preset("mini")).rates(20_000_000) == Rates(1_500_000, 20_000_000)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="E2301"):
        board.read_board(tmp_path / "none.toml")


# -- files of others -------------------------------------------------------------------------------

GOOD = (board.folders()[-1] / "ulx3s-85f.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('default = "ulx3s-85f+sdram"', 'default = "none"', "E2303"),
        ('default = "ulx3s-85f+sdram"', 'default = "none+sdram"', "E2303"),
        ('all = ["ulx3s-85f",', 'all = ["none",', "E2303"),
        ('default = "ulx3s-85f+sdram"', 'default = "virtual+sdram"', "E2303"),
        ("hz = 25_000_000", "hz = 0", "E2303"),
        ("hz = 25_000_000", f"hz = {10**30}", "E2303"),
        ("hz = 25_000_000", "hz = true", "E2303"),
        ("seeds = [1, 2, 3, 4, 5]", "seeds = []", "E2303"),
        ("seeds = [1, 2, 3, 4, 5]", 'seeds = ["1"]', "E2303"),
        ('aliases = ["ulx3s"]', "aliases = [1]", "E2303"),
        ('detect = ["openFPGALoader"', 'detect = [["openFPGALoader"]', "E2303"),
        ('name = "ulx3s-85f"', 'name = "../x"', "E2303"),
        ("lut4 = 83640", "lut4 = -1", "E2303"),
        ("[build]", "[[build]]", "E2303"),
        ("seeds = [1, 2, 3, 4, 5]", f"seeds = {'[' * 100_000}", "E2302"),
        ("lut4 = 83640", f"lut4 = {'9' * 5000}", "E2302"),
    ],
)
def test_a_wrong_board_file_is_one_error(tmp_path, old, new, code):
    assert old in GOOD
    (tmp_path / "b.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        board.read_board(tmp_path / "b.toml")
    assert caught.value.code == code
    assert caught.value.where == str(tmp_path / "b.toml")


def test_a_wrong_file_ends_neither_the_list_nor_other_boards(tmp_path, monkeypatch, capsys):
    """Pipes, devices and nonsense beside a good file: each is listed with its error, and only its own name fails."""
    import os

    from onnxhw.cli import main
    from onnxhw.doctor import examine

    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "ulx3s-25f.toml").write_text("[" * 100_000)
    (tmp_path / "mine.toml").write_text(GOOD.replace('name = "ulx3s-85f"', 'name = "mine"').replace('"ulx3s"]', '"m"]'))
    monkeypatch.setenv("ONNXHW_BOARDS", str(tmp_path))
    assert set(board.names()) == {"mine", *NAMES}
    codes = {os.path.basename(path): error.code for path, error in board.wrong_files().items()}
    assert codes == {"pipe.toml": "E2301", "zero.toml": "E2301", "ulx3s-25f.toml": "E2302"}
    assert board.find("m").name == "mine"
    with pytest.raises(UsageError, match="E2302"):  # not the one of that name that lies further back
        board.find("ulx3s-25f")
    with pytest.raises(UsageError, match=r"E2305 .*pipe\.toml"):
        board.find("other")
    assert {check.found[:5] for check in examine() if check.name == "board file"} == {"E2301", "E2302"}
    assert main(["boards"]) == 0
    shown = capsys.readouterr()
    assert "mine" in shown.out
    assert "zero.toml" in shown.err
