"""The table ``boot`` of a board file: the SPI flash that designs load programs from."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from onnxhw import board
from onnxhw.board_boot import BootFlash
from onnxhw.build.device import platform_of, require_flash
from onnxhw.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[2]
TABLE = """[boot]
bytes = 4_194_304
offset = 0x100000
program = ["openFPGALoader", "--offset", "{offset}", "{image}"]

[pins]
flash_cs_n = "R2"
flash_copi = "W2"
flash_cipo = "V2"
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A board file of its own pins, with such a table."""
    path = tmp_path / "mine.toml"
    path.write_text((REPOSITORY / "boards" / "colorlight-i5.toml").read_text().replace("[pins]\n", TABLE))
    return path


@pytest.mark.parametrize("name", ["ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f"])
def test_of_the_ulx3s(name: str) -> None:
    """Behind the largest bitstream, 16 MB in all; the command writes the image there."""
    pytest.importorskip("amaranth_boards")
    found = board.find(name)
    assert found.boot is not None
    assert (found.boot.offset, found.boot.room) == (0x200000, 0xE00000)
    words = found.boot.command("a/flash.bin")
    assert words[words.index("--offset") + 1] == "2097152"
    assert words[-1] == "a/flash.bin"
    assert require_flash(found, "why") is found.boot


def test_pins_of_a_file_of_its_own(mine: Path) -> None:
    pytest.importorskip("amaranth")
    found = board.read_board(mine)
    assert found.boot == BootFlash(
        "spi_flash", 1 << 22, 1 << 20, ("openFPGALoader", "--offset", "{offset}", "{image}")
    )
    pins = {each.name: each.ios[0] for each in platform_of(found).lookup("spi_flash", 0).ios}
    assert {name: (pin.names, pin.invert) for name, pin in pins.items()} == {
        "cs": (["R2"], True), "copi": (["W2"], False), "cipo": (["V2"], False)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("4_194_304", "33_554_432", r"boot.bytes must be above 0 and at most 16,777,216, not 33,554,432"),
        ("4_194_304", "0", r"boot.bytes must be above 0"),
        ("0x100000", "0x100001", r"boot.offset must be a multiple of 65,536 above 0 and below boot.bytes"),
        ("0x100000", "0", r"boot.offset must be a multiple of 65,536 above 0"),
        ("0x100000", "0x400000", r"boot.offset must be .* below boot.bytes"),
        ('"{image}"', '"image"', r'boot.program must have a word "\{image\}"'),
        ('"{offset}"', '"0"', r'boot.program must have a word "\{offset\}"'),
        ('"--offset"', '""', r"boot.program: the words of a command must be printable"),
        ('flash_cipo = "V2"\n', "", r"pins.flash_cipo is missing: .*the file has a table boot"),
        ("offset = 0x100000\n", "", r"boot.offset is missing: "),
        ("bytes = 4", "resource = 'x'\nbytes = 4", r"boot.resource goes with a platform's class"),
    ],
)
def test_what_is_wrong_is_said(mine: Path, old: str, new: str, says: str) -> None:
    text = mine.read_text()
    assert text.count(old) == 1
    mine.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=f"E2303.*{says}"):
        board.read_board(mine)


def test_pins_without_the_table(mine: Path) -> None:
    mine.write_text(re.sub(r"\[boot\]\n(.*\n)+?\n", "", mine.read_text()))
    with pytest.raises(UsageError, match=r"E2303.*pins.flash_cs_n needs the table boot"):
        board.read_board(mine)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"boot": None}, "its file has no table boot"),
        ({"family": "gowin"}, "no design for family gowin clocks the flash memory"),
        ({"boot": BootFlash("flash", 1 << 22, 1 << 20, ())}, "ULX3S_85F_Platform of amaranth_boards.* has no 'flash'"),
    ],
)
def test_a_board_that_loads_none_is_refused(change: dict[str, object], says: str) -> None:
    pytest.importorskip("amaranth_boards")
    with pytest.raises(UsageError, match=f"E2384.*a reason, and the board loads none from flash: {says}"):
        require_flash(replace(board.find("ulx3s-85f"), **change), "a reason")  # type: ignore[arg-type]
