"""Board files: what they say is true, and what is wrong with a file is said."""

from dataclasses import replace
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
