"""A network with a state by command: check, compile, simulate, run; and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streaming_models import OLD, STATE, stream, temporal

import onnxhw
from onnxhw.cli import main
from onnxhw.compiler.states import StatePair

from .printed import run_json
from .test_cli_json_page import missing

PRESET = ("-p", "mini+sdram")
PERSIST = ("--persist", f"{STATE}={OLD}")
OLD_VALUE = stream(2, 7).reshape(1, 4, 2, 8)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("states")
    (folder / "model.onnx").write_bytes(temporal().SerializeToString())
    np.save(folder / "frames.npy", stream(5))
    np.save(folder / "old.npy", OLD_VALUE)
    return folder / "model.onnx"


@pytest.fixture(scope="module")
def folder(model: Path) -> Path:
    """It, compiled with an initial value."""
    out = model.parent / "out"
    initial = ("--initial", f"{OLD}={model.parent / 'old.npy'}")
    assert main(["compile", str(model), *PRESET, *PERSIST, *initial, "-o", str(out), "-q"]) == 0
    return out


def expected(initial: Any = None) -> np.ndarray:
    """The golden model's outputs of all frames."""
    pair = StatePair(STATE, OLD, initial)
    with onnxhw.InferenceSession(temporal().SerializeToString(), persist=[pair]) as session:
        return session.run(None, {"x": stream(5)})[0]


def test_check_says_what_stays(model: Path, folder: Path, capsys: Any) -> None:
    """And that it does not travel."""
    record = run_json(capsys, "check", model, *PRESET, *PERSIST)
    assert missing(record, "check") == []
    assert record["states"] == [{"output": STATE, "input": OLD, "bytes": 64}]
    assert record["compiles"]
    assert record["fit"]["segments"] >= 1
    line = [run_json(capsys, *command)["throughput"]["line_ms"]
            for command in (("check", model, *PRESET), ("report", folder))]  # fmt: skip
    assert record["throughput"]["line_ms"] == line[1] < line[0]
    assert main(["check", str(model), *PRESET, *PERSIST]) == 0
    assert "states in external memory: 1 segments" in capsys.readouterr().out


def test_compile_notes_it(folder: Path) -> None:
    assert json.loads((folder / "manifest.json").read_text())["persist"] == [f"{STATE}={OLD}"]


@pytest.mark.parametrize("engine", ["golden", "emulator"])
def test_simulate_of_model_and_directory(model: Path, folder: Path, engine: str, capsys: Any) -> None:
    """All inferences are one stream; the golden model's states are fed back."""
    frames = ("-i", model.parent / "frames.npy", "-e", engine, "--trace")
    for target, options, initial in ((model, (*PRESET, *PERSIST), None), (folder, (), OLD_VALUE)):
        place = model.parent / "found.npz"
        record = run_json(capsys, "simulate", target, *options, *frames, "-o", place)
        assert missing(record, "simulate") == []
        assert (record["equal"], record["inferences"], record["reference"]) == (True, 5, "golden model")
        assert [state["input"] for state in record["states"]] == [OLD]
        assert np.array_equal(np.load(place)["y"], expected(initial))


def test_simulate_of_a_program_alone(folder: Path, tmp_path: Path, capsys: Any) -> None:
    """Its reference is an emulator that keeps the state, too."""
    (tmp_path / "program.ohw").write_bytes((folder / "program.ohw").read_bytes())
    frames = ("-i", folder.parent / "frames.npy", "-e", "emulator")
    record = run_json(capsys, "simulate", tmp_path / "program.ohw", *frames, "-o", tmp_path / "found.npz")
    assert (record["equal"], record["reference"]) == (True, "emulator")
    assert np.array_equal(np.load(tmp_path / "found.npz")["y"], expected(OLD_VALUE))


def test_run_begins_with_the_initial_value_each_time(folder: Path, tmp_path: Path, capsys: Any) -> None:
    frames = ("-d", "emu:", "-i", folder.parent / "frames.npy", "-o", tmp_path / "y.npy")
    record = run_json(capsys, "run", folder, *frames, "--repeat", "3")
    assert missing(record, "run") == []
    assert record["runs"] == 15
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected(OLD_VALUE))


def test_what_is_refused(model: Path, capsys: Any) -> None:
    def code(*options: str) -> str:
        return str(run_json(capsys, "compile", model, *options, status=2)["error"]["code"])

    assert code("-p", "mini", *PERSIST) == "E2571"
    assert code(*PRESET, "--persist", "kept") == "E2531"
    assert code(*PRESET, "--persist", f"{OLD}={STATE}") == "E2570"
    assert code(*PRESET, *PERSIST, "--initial", "x=x.npy") == "E2531"
    assert code(*PRESET, *PERSIST, "--initial", f"{OLD}={model.parent / 'none.npy'}") == "E2905"
    assert code(*PRESET, *PERSIST, "--initial", f"{OLD}={model.parent / 'frames.npy'}") == "E2576"
    for command in ("check", "simulate", "synth"):
        assert run_json(capsys, command, model, "-p", "ulx3s-85f", *PERSIST, status=2)["error"]["code"] == "E2571"
    assert not (model.parent / "build").exists()
