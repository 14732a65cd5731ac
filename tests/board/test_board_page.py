"""The boards beside the ULX3S: their memories, what is said of them, and that docs/boards.md is true."""

import json
import re
from pathlib import Path

import pytest

from onnxhw import board
from onnxhw.cli import main
from onnxhw.cli.common.pipeline import target
from onnxhw.compiler import compile
from onnxhw.devices import family_of
from onnxhw.presets import preset

DIGITS = Path(__file__).parents[2] / "examples" / "digits.onnx"


@pytest.mark.parametrize(
    ("name", "size", "bits"), [("colorlight-i5", 8, 32), ("colorlight-i9", 8, 32), ("icepi-zero", 32, 16)]
)
def test_external_memory_of_the_other_boards(name, size, bits):
    """Every SDR SDRAM has its pins, and its times at the board's clock."""
    pytest.importorskip("amaranth_boards")
    from onnxhw.build.device import require
    from onnxhw.cli.common.pipeline import target

    chosen = target(name, "mini+sdram")
    assert (chosen.config.external.size, chosen.config.external.data_bits) == (size << 20, bits)
    require(chosen.board, external=chosen.config.external)


def test_refreshes_are_as_many_as_data_sheets_ask_for():
    """Within 64 ms 8192 of the 256 Mbit chips, and 4096 of those of 64 Mbit and 32 bits, which have 2048 rows."""
    for name, count in (("ulx3s-85f", 8192), ("icepi-zero", 8192), ("colorlight-i5", 4096), ("colorlight-i9", 4096)):
        assert 0.064 * 100e6 / board.find(name).external.external(100_000_000).refresh >= count


@pytest.mark.parametrize("name", ["orangecrab-25f", "orangecrab-85f", "ecpix5-85f"])
def test_memory_without_a_controller_is_said(name, capsys):
    assert main(["check", str(DIGITS), "--board", name]) == 0
    memory = board.find(name).unused_memory
    assert "DDR3" in memory
    assert f"{name} has {memory}, for which there is no controller: programs run from" in capsys.readouterr().out
    assert main(["check", str(DIGITS), "--board", name, "--preset", "mini+sdram"]) == 2
    assert f"no external memory: for its {memory} there is no controller" in capsys.readouterr().err


def test_every_memory_has_a_preset_that_the_device_has_room_for():
    """Of the LUT4 that are estimated nextpnr makes 9 % more at most (of `ulx3s-25f` and `ulx3s-85f`)."""
    for entry in board.boards().values():
        assert bool(entry.external) == bool(entry.external_preset)
        if entry.external:
            guess = family_of(entry).estimate(target(entry.name, f"{entry.external_preset}+sdram").config)
            assert guess.lut * 1.09 <= entry.resources.lut4
            assert guess.ebr <= entry.resources.ebr
            assert guess.dsp <= entry.resources.dsp


def test_figures_without_a_board_are_of_the_usual_ones():
    """Boards with other lines that offer the same presets change none of them."""
    from onnxhw.compiler.cost import board_rates

    for name in ("mini", "ulx3s-25f", "ulx3s-85f", "ulx3s-85f+sdram", "mini+sdram"):
        assert board_rates(preset(name)).baud == 3_000_000


def test_the_page_of_boards_is_true():
    """Its table has every board with its device and presets, and what was routed is what the records say."""
    root = Path(__file__).parents[2]
    text = (root / "docs" / "boards.md").read_text(encoding="utf-8")
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line] for line in lines]
    listed = {row[0].strip("`"): row for row in rows if len(row) == 5}
    assert set(listed) >= set(board.names())
    for entry in board.boards().values():
        row, memory = listed[entry.name], entry.external
        grade = f"-{entry.speed}" if entry.speed.isdigit() else entry.speed
        assert row[1] == f"{entry.device}, {entry.package}, {grade}"
        assert (f"{memory.size >> 20} MB SDRAM, {memory.data_bits} bits" if memory else "not used") in row[2]
        presets = [entry.preset, *(name for name in entry.presets if name != entry.preset)]
        assert re.findall(r"`(.+?)`", row[4]) == presets
    loaded = {row[0].strip("`"): row[1:] for row in rows if len(row) == 3}
    for entry in board.boards().values():
        commands = [f"`{' '.join(words)}`" if words else "none" for words in (entry.program, entry.flash)]
        assert loaded[entry.name] == commands
    routed = {(row[0].strip("`"), row[1].strip("`")): row for row in rows if len(row) == 8}
    (missing,) = re.findall(r"^Not placed and routed yet: (.*)\.$", text, re.M) or [""]
    assert sorted({name for name, _ in routed} | set(re.findall(r"`(.+?)`", missing))) == board.names()
    for (name, preset_name), row in routed.items():
        own = f"{preset_name}.json" if preset_name.startswith(name) else f"{preset_name}-on-{name}.json"
        result = json.loads((root / "bench" / "routed" / own).read_text(encoding="utf-8"))["result"]
        used = [f"{result[kind]:,}" for kind in ("lut", "ff", "dsp", "ebr")]
        latency = compile(str(DIGITS), preset(preset_name)).latency
        assert row[2:] == [*used, f"{result['fmax_mhz']} MHz", f"{latency:,}"]
        assert result["timing_met"]
