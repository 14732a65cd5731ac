"""The preset `virtual`: programs for it can be compiled, checked and simulated with any board, bitstreams not made."""

import json
from pathlib import Path

import pytest

from onnxhw.board import boards
from onnxhw.cli import main
from onnxhw.presets import PRESETS, SIMULATED


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> dict[str, object]:
    assert main([*map(str, arguments), "--json", "-q"]) == status
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_simulated_presets_are_of_no_board() -> None:
    assert {"virtual", "ulx3s-45f"} == set(SIMULATED) <= set(PRESETS)
    assert not any(set(SIMULATED) & set(board.presets) for board in boards().values())
    assert all(board.offers(board.preset) for board in boards().values())
    assert not any(board.offers(name) for board in boards().values() for name in SIMULATED)


@pytest.mark.parametrize("board", ["ulx3s", "ulx3s-12f"])
def test_every_board_compiles_and_simulates_for_it(
    board: str, digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--board", board, "--preset", "virtual")
    record = run_json(capsys, "compile", digits, *words, "-o", tmp_path / "out")
    assert record["config"] == PRESETS["virtual"].fingerprint
    assert run_json(capsys, "simulate", tmp_path / "out", "-e", "emulator", "--random", "1")["equal"] is True
    assert run_json(capsys, "check", digits, *words)["preset"] == "virtual"


def test_synth_says_that_it_is_for_simulation_only(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--board", "ulx3s-25f", "--preset", "virtual", "-o", tmp_path / "out")
    error = run_json(capsys, "synth", digits, *words, status=2)["error"]
    assert isinstance(error, dict)
    assert error["code"] == "E2913"
    assert "simulation only" in error["what"]
    assert "ulx3s-25f, ulx3s-25f-dense, mini" in error["hint"]
    assert not (tmp_path / "out").exists()


def test_boards_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for name, why in SIMULATED.items():
        assert any(line.startswith(name) and line.endswith("none: simulation only") for line in lines)
        assert f"{name} is for simulation only: {why}" in lines
