"""A network larger than the chip by command: check, compile, simulate, report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from large_graphs import network

from onnxhw import emu
from onnxhw.cli import main
from onnxhw.cli.common.simulation import difference
from onnxhw.program.container import load

from .printed import run_json
from .test_cli_json_page import missing

PRESET = ("-p", "mini+sdram")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.onnx"
    path.write_bytes(network(width=24, size=12))
    return path


@pytest.fixture(scope="module")
def folder(model: Path) -> Path:
    """It, compiled."""
    out = model.parent / "out"
    assert main(["compile", str(model), *PRESET, "-o", str(out), "-q"]) == 0
    return out


def test_check_tells_what_compile_makes(model: Path, folder: Path, capsys: Any) -> None:
    record = run_json(capsys, "check", model, *PRESET)
    program = load(folder / "program.ohw").only()
    assert missing(record, "check") == []
    assert record["compiles"]
    assert (record["fit"]["fits"], record["fit"]["exact"], record["fit"]["about"]) == (True, False, True)
    assert record["fit"]["segments"] == record["parts"][0]["segments"] == program.segments > 1
    assert abs(record["fit"]["cycles"] - program.cycles) <= program.cycles / 5
    assert 0 < record["fit"]["external_bytes"] < record["fit"]["external_bytes_available"] == 1 << 25
    assert main(["check", str(model), *PRESET]) == 0
    assert f"larger than the chip: {program.segments} segments" in capsys.readouterr().out


def test_an_input_that_comes_in_stripes_is_not_said_to_be_unpacked(tmp_path: Path, capsys: Any) -> None:
    """It has 4,800 bytes, and the first bank of `mini`, from which any byte can be read, 4,096."""
    (tmp_path / "wide.onnx").write_bytes(network(width=24, size=40))
    record = run_json(capsys, "check", tmp_path / "wide.onnx", *PRESET)
    assert record["fit"]["segments"] > 1
    assert record["unpacked"] == []


def test_compile_says_what_moves(model: Path, folder: Path, capsys: Any) -> None:
    record = run_json(capsys, "compile", model, *PRESET, "-o", folder)
    assert missing(record, "compile") == []
    assert record["external"] == record["parts"][0]["external"]
    assert record["external"]["segments"] > 1
    assert main(["compile", str(model), *PRESET, "-o", str(folder)]) == 0
    assert f"{record['external']['moved_bytes']:,} bytes moved in a run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "engine",
    ["emulator", pytest.param("cxxrtl", marks=[pytest.mark.slow, pytest.mark.rtl])],
)
def test_every_part_of_every_tensor_is_compared(
    engine: str, folder: Path, capsys: Any, request: pytest.FixtureRequest
) -> None:
    """Twice, for the second run finds what the first has left."""
    request.getfixturevalue({"cxxrtl": "compiler"}.get(engine, "folder"))
    record = run_json(capsys, "simulate", folder, "-e", engine, "--trace", "-r", "2")
    parts = [entry for entry in load(folder / "program.ohw").only().tensors.values() if entry.part]
    assert record["equal"]
    assert record["reference"] == "golden model"
    assert record["tensors_compared"] == 2 * (len(parts) + 1)
    assert record["cycles"] == record["predicted_cycles"] >= record["run_cycles"]


def test_cocotb_is_refused_before_it_is_prepared(folder: Path, capsys: Any) -> None:
    assert main(["simulate", str(folder), "-e", "cocotb", "--json", "-q"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "E2404"
    assert "--engine cxxrtl" in error["hint"]


def test_a_part_that_differs_is_named(folder: Path) -> None:
    program = load(folder / "program.ohw").only()
    inputs = {port.tensor: np.zeros(program.tensors[port.tensor].shape, np.int8) for port in program.inputs}
    right = emu.run(program, inputs, trace=True).tensors
    assert difference(program, right, right) is None
    name, part = next((e.name, e.part) for e in reversed(program.tensors.values()) if e.part)
    whole = np.zeros((1, *(high for _, high in part.box.spans)), np.int8)
    whole[part.box.slices] = right[name] ^ 1
    found = difference(program, {name: right[name]}, {part.tensor: whole})
    assert found is not None
    assert (found["tensor"], found["different"]) == (name, right[name].size)


def test_the_report_adds_up(folder: Path, capsys: Any) -> None:
    record = run_json(capsys, "report", folder)
    assert sum(row["cycles"] for row in record["layers"]) == record["run_cycles"]
    assert all(row["macs_executed"] >= row["macs_nominal"] > 0 for row in record["layers"] if row["kind"] == "Conv")
    units = {row["unit"]: row for row in record["units"]}
    assert units["move"]["instructions"] > 0
    assert "external memory" in (folder / "report.html").read_text()
