"""``onnxhw explore``: a front, files that other commands take as presets, a study that goes on, errors."""

import json
import os
import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.cli import main
from onnxhw.config import HwConfig
from onnxhw.errors import InternalError
from onnxhw.explore.front import dominates
from onnxhw.presets import PRESETS, preset
from onnxhw.sched import scheduler

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def folder(digits, tmp_path_factory):
    """The results of a small search."""
    out = tmp_path_factory.mktemp("explored") / "out"
    words = ["explore", str(digits), "--board", "ulx3s-25f", "--points", "5", "--workers", "0", "-o", str(out), "-q"]
    assert main(words) == 0
    return out


def test_the_front_is_a_front_and_its_files_are_presets(folder, digits, capsys, tmp_path):
    record = json.loads((folder / "front.json").read_text())
    rows = record["front"]
    assert record["points"] == 5
    assert {row["preset"] for row in record["presets"]} == {"ulx3s-25f", "ulx3s-25f-dense", "mini"}
    values = [(row["latency_us"], row["lut"], row["ebr"]) for row in rows]
    assert not any(dominates(one, other) for one in values for other in values)
    for row in rows:
        config = preset(row["preset"])
        assert (config.name, json.loads(config.to_json())) == (row["config"]["name"], row["config"])
        assert main(["compile", str(digits), "--board", "ulx3s-25f", "--preset", row["preset"], "--json", "-o",
                     str(tmp_path / config.name)]) == 0  # fmt: skip
        assert json.loads(capsys.readouterr().out)["predicted_cycles"] == row["cycles"]


def test_no_point_of_the_front_is_worse_than_the_hand_made_preset(folder):
    """It is asked first, so the front has it or what is better."""
    record = json.loads((folder / "front.json").read_text())
    (hand,) = [row for row in record["presets"] if row["preset"] == "ulx3s-25f"]
    assert min(row["cycles"] for row in record["front"]) <= hand["cycles"]


def test_it_goes_on_and_says_the_same(folder, digits, capsys):
    before = json.loads((folder / "front.json").read_text())
    lines = (folder / "study.jsonl").read_text()
    words = ["explore", str(digits), "--board", "ulx3s-25f", "--points", "5", "--workers", "0", "-o", str(folder)]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == before
    assert "5 of earlier runs" in said.err
    assert (folder / "study.jsonl").read_text() == lines


def test_presets_of_an_earlier_front_go(folder, digits, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("front-99.json", "failed-1.json", "front-mine.json", "front-1.json.old"):
        (out / name).write_text("earlier")
    shutil.copy(folder / "study.jsonl", out)
    words = ["explore", str(digits), "--board", "ulx3s-25f", "--points", "5", "--workers", "0", "-o", str(out), "-q"]
    assert main(words) == 0
    rows = json.loads((out / "front.json").read_text())["front"]
    left = {"front-mine.json", "front-1.json.old", *(f"front-{number}.json" for number in range(1, len(rows) + 1))}
    assert {path.name for path in out.glob("f*-*")} == left


def test_an_objective_counts_once_and_nothing_is_said_of_tools_that_do_not_run(folder, digits, tmp_path, capsys):
    words = ["--objective", "cycles", "--objective", "cycles", "--workers", "0", "--points", "5"]
    study = ["--study", str(folder / "study.jsonl"), "-o", str(tmp_path / "out")]
    assert main(["explore", str(digits), "--board", "ulx3s-25f", *words, *study, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["objectives"] == ["cycles"]
    assert "3 of 3 presets of the board scheduled" in said.err
    assert "routed" not in said.err


def _matrix(path, size):
    """A matrix of size x size int8 weights, as a model in QDQ form."""
    rng = np.random.default_rng(1)
    constants = {
        "scale": np.float32(0.05), "zero": np.int8(0), "out_scale": np.float32(4.0),
        "weights": rng.integers(-100, 100, (size, size)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["weights", "scale", "zero"], ["w"]),
        helper.make_node("MatMul", ["d", "w"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "out_scale", "zero"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "out_scale", "zero"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "matrix", values[:1], values[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


def test_what_no_block_rams_hold_is_searched_with_external_memory(tmp_path, capsys):
    model = _matrix(tmp_path / "matrix.onnx", 400)
    words = ["explore", model, "--board", "ulx3s-25f", "--points", "2", "--workers", "0", "-o", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert "160,000 bytes of weights, 129,024 of block RAM" in said.err
    record = json.loads(said.out)
    assert all(row["config"]["external"] and row["moved"] > 160_000 for row in record["front"])
    assert {row["preset"] for row in record["presets"]} == {"ulx3s-25f+sdram", "ulx3s-25f-dense+sdram", "mini+sdram"}
    best = record["front"][0]
    assert main(["compile", model, "--board", "ulx3s-25f", "--preset", best["preset"], "--json", "-o",
                 str(tmp_path / "made")]) == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out)["predicted_cycles"] == best["cycles"], "exact, not the search's forecast"


def test_a_search_without_any_solution_says_so(tmp_path, capsys):
    model = _matrix(tmp_path / "matrix.onnx", 1500)
    words = ["explore", model, "--board", "orangecrab-25f", "--points", "1", "--workers", "0"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 5
    said = capsys.readouterr().err
    assert "E5108" in said
    assert "too many block RAMs" in said
    assert "--sdram" not in said, "the board has none"


@pytest.mark.parametrize(("words", "status", "code"), [
    (["absent.onnx"], 3, "E3"), (["MODEL", "MODEL"], 2, "E2805"), (["MODEL", "--objective", "moved"], 2, "E2806"),
    (["MODEL", "--sdram", "--objective", "traffic"], 2, "E2806"), (["MODEL", "--board", "none"], 2, "E2"),
    (["MODEL", "--study", "STUDY"], 2, "E2802"), (["MODEL", "--seed", "-1"], 2, "--seed"),
    (["MODEL", "-o", "out", "--study", "out/front.json"], 2, "E2561"), (["MODEL", "--dashboard"], 2, "E2193"),
    (["MODEL", "-o", ".", "--study", "front-12.json"], 2, "E2561"), (["MODEL", "--study", os.devnull], 2, "E2803"),
    (["MODEL", "--scheduler", "nonsense://"], 7, "E7110"),
])  # fmt: skip
def test_errors(words, status, code, digits, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.jsonl").write_text("no study\n")
    names = {"MODEL": str(digits), "STUDY": "wrong.jsonl"}
    workers = [] if "--scheduler" in words else ["--workers", "0"]
    assert main(["explore", *(names.get(word, word) for word in words), "--points", "1", *workers]) == status
    assert code in capsys.readouterr().err
    assert not (tmp_path / "build").exists() or not list((tmp_path / "build").rglob("front.json"))


def test_a_file_with_a_configuration_is_a_preset(tmp_path):
    path = tmp_path / "own.json"
    path.write_text(PRESETS["mini"].to_json())
    found = preset(str(path))
    assert (found.name, found.fingerprint) == ("own", PRESETS["mini"].fingerprint)
    assert isinstance(found, HwConfig)


@pytest.mark.parametrize(("text", "code"), [(None, "E2105"), ("{}", "E2103"), ('{"format": 1}', "E2102")])
def test_a_file_without_one_is_an_error(text, code, digits, tmp_path, capsys):
    path = tmp_path / "own.json"
    if text is not None:
        path.write_text(text)
    assert main(["compile", str(digits), "--preset", str(path), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert code in said
    assert "own.json" in said


def test_a_program_that_cannot_be_proved_takes_its_point_away_and_is_told(digits, capsys, tmp_path, monkeypatch):
    calls, checked = [], scheduler.check

    def fails_once(program):
        calls.append(program)
        if len(calls) == 1:
            raise InternalError("E1206", "reads a word too soon")
        return checked(program)

    monkeypatch.setattr(scheduler, "check", fails_once)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where nothing is proved yet
    out = tmp_path / "out"
    words = ["explore", str(digits), "--board", "ulx3s-25f", "--points", "5", "--workers", "0", "-o", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "failed-1.json: E1206 reads a word too soon; this is a bug of ours" in " ".join(said.split())
    record = json.loads((out / "front.json").read_text())
    (failed,) = record["failed"]
    assert preset(failed["preset"]).fingerprint not in {preset(row["preset"]).fingerprint for row in record["front"]}
    assert "E1206" in (out / "report.html").read_text()
