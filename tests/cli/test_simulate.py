"""`simulate` on the example network: what it compares, prints, writes and refuses."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from onnxhw import emu
from onnxhw.cli import main
from onnxhw.cli.common import artifacts, simulation
from onnxhw.program import container
from onnxhw.report.profile import profile
from onnxhw.report.trace import trace

from .printed import run_json


def spoil(monkeypatch, change):
    """Have everything compared with changed tensors."""
    right = simulation.reference

    def reference(graph, program):
        run = right(graph, program)
        return lambda inputs: change(dict(run(inputs)))

    monkeypatch.setattr(simulation, "reference", reference)


def test_simulate_a_directory(compiled, digits_test, capsys):
    record = run_json(capsys, "simulate", compiled, "-e", "emulator", "-i", digits_test, "-n", "5")
    assert record["equal"] is True
    assert record["inferences"] == 5
    assert record["cycles"] == record["predicted_cycles"]
    assert record["reference"] == "golden model"
    assert record["top1"] == {"right": 5, "of": 5}
    with np.load(record["outputs"]) as outputs, np.load(digits_test) as data:
        assert outputs["probabilities"].shape == (5, 10)
        assert (outputs["probabilities"].argmax(1) == data["label"][:5]).all()
        assert outputs["int8/dense_q"].dtype == np.int8


def test_the_golden_model_gives_the_same_outputs(compiled, digits_test, tmp_path, capsys):
    files = {}
    for engine in ("golden", "emulator"):
        files[engine] = tmp_path / f"{engine}.npz"
        run_json(capsys, "simulate", compiled, "-e", engine, "-i", digits_test, "-n", "3", "-o", files[engine])
    with np.load(files["golden"]) as golden, np.load(files["emulator"]) as emulator:
        assert sorted(golden.files) == sorted(emulator.files)
        for name in golden.files:
            assert np.array_equal(golden[name], emulator[name])


def test_the_example_network_is_right_on_most_digits(digits, digits_test, tmp_path, capsys):
    options = ("-e", "golden", "-i", digits_test, "-o", tmp_path / "o.npz", "-p", "mini")
    record = run_json(capsys, "simulate", digits, *options)
    assert record["top1"]["of"] == 360
    assert record["top1"]["right"] >= 342  # 95 %


def test_the_report_shows_what_simulate_found(compiled, capsys):
    run_json(capsys, "simulate", compiled, "-e", "emulator", "--random", "2")
    record = run_json(capsys, "report", compiled)
    assert ("emulator", True) in [(one["engine"], one["equal"]) for one in record["simulations"]]
    assert sum(layer["cycles"] for layer in record["layers"]) == record["run_cycles"] < record["predicted_cycles"]
    assert 'class="good">equal' in (compiled / "report.html").read_text()
    manifest = json.loads((compiled / "manifest.json").read_text())
    assert hashlib.sha256((compiled / "report.html").read_bytes()).hexdigest() == manifest["files"]["report.html"]


def test_simulate_shows_its_result_in_the_report(compiled, tmp_path, monkeypatch, capsys):
    """Without `onnxhw report` in between: measured cycles, equality, and the manifest's hash of the new page."""
    folder = tmp_path / "copy"
    shutil.copytree(compiled, folder)
    (folder / "simulations.json").unlink(missing_ok=True)
    run_json(capsys, "report", folder)
    assert "Not simulated yet" in (folder / "report.html").read_text()
    record = run_json(capsys, "simulate", folder, "-e", "emulator", "--random", "3")
    page = (folder / "report.html").read_text()
    row = f"""<tr><td>emulator</td><td>3</td><td class="t">golden model</td>
<td class="t"><b class="good">equal</b></td>
<td>{record["cycles"]:,}</td><td>{record["predicted_cycles"]:,}</td></tr>"""
    assert row in page
    assert "Not simulated yet" not in page
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("report.html", "trace.json"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == manifest["files"][name]
    spoil(monkeypatch, lambda tensors: {name: values ^ 1 for name, values in tensors.items()})
    run_json(capsys, "simulate", folder, "-e", "emulator", status=8)
    assert '<b class="bad">differs</b>' in (folder / "report.html").read_text()
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json", "model.onnx", "outputs.npz", "placement.json", "program.ohw", "report.html",
        "simulations.json", "trace.json",
    ]  # fmt: skip


def test_an_interrupted_refresh_leaves_the_old_report(compiled, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "copy"
    shutil.copytree(compiled, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "outputs.npz"}

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(artifacts, "note_reports", interrupt)
    assert main(["simulate", str(folder), "-e", "emulator", "--random", "7"]) == 130
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "outputs.npz"} == before


def test_the_trace_is_at_the_clock_of_the_bitstream_not_at_what_it_could_do(compiled, tmp_path):
    program = container.load(compiled / "program.ohw").only()
    manifest = {"fmax_mhz": 98.4, "clock_hz": 75_000_000, "resources": {}}
    artifacts.write_report(tmp_path, program, profile(program), manifest)
    assert (tmp_path / "trace.json").read_text() == trace(program, profile(program), 75.0)


def test_random_inputs_depend_on_the_seed_only(compiled, tmp_path, capsys):
    files = []
    for number, seed in enumerate((1, 1, 2)):
        files.append(tmp_path / f"{number}.npz")
        run_json(capsys, "simulate", compiled, "-e", "emulator", "--random", "1", "--seed", seed, "-o", files[-1])
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


def test_a_program_alone_is_compared_with_the_emulator(compiled, tmp_path, capsys):
    shutil.copy(compiled / "program.ohw", tmp_path / "some.ohw")
    record = run_json(capsys, "simulate", tmp_path / "some.ohw", "-e", "emulator", "--trace")
    assert record["reference"] == "emulator"
    error = run_json(capsys, "simulate", tmp_path / "some.ohw", "-e", "golden", status=2)["error"]
    assert error["code"] == "E2909"


def test_a_wrong_value_is_a_mismatch_with_its_place(compiled, monkeypatch, capsys):
    def wrong(tensors):
        tensors["conv2_q"] = tensors["conv2_q"].copy()
        tensors["conv2_q"][0, 3, 2, 1] ^= 1
        return tensors

    spoil(monkeypatch, wrong)
    record = run_json(capsys, "simulate", compiled, "-e", "emulator", "--trace", status=8)
    assert record["error"]["code"] == "E8001"
    assert record["equal"] is False
    first = record["first_difference"]
    assert (first["tensor"], first["element"], first["different"]) == ("conv2_q", [0, 3, 2, 1], 1)
    assert first["layer"] == "conv2_conv"


@pytest.mark.slow
@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
def test_a_mismatch_of_the_rtl_leaves_a_waveform(compiled, monkeypatch, capsys):
    spoil(monkeypatch, lambda tensors: {name: values ^ 1 for name, values in tensors.items()})
    record = run_json(capsys, "simulate", compiled, "-e", "cxxrtl", status=8)
    waves = compiled / "mismatch.vcd"
    assert record["first_difference"]["waveform"] == str(waves)
    assert "$enddefinitions" in waves.read_text()
    assert str(waves) in record["error"]["hint"]


def test_wrong_cycles_are_a_mismatch(compiled, monkeypatch, capsys):
    plain = emu.emulator.Emulator.run

    def slower(self, *arguments, **options):
        result = plain(self, *arguments, **options)
        result.cycles += 1
        return result

    monkeypatch.setattr(emu.emulator.Emulator, "run", slower)
    record = run_json(capsys, "simulate", compiled, "-e", "emulator", status=8)
    assert record["error"]["code"] == "E8002"
    assert record["first_difference"]["cycles"] == record["run_cycles"] + 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--input", "missing.npz"], "E2905"),
        (["--input", "MODEL"], "E2905"),
        (["--input", "NPZ", "--random", "2"], "E2908"),
        (["--count", "2"], "E2908"),
        (["--random", "0"], "E2901"),
        (["--random", "4194305"], "E2901"),
        (["--random", "1", "--seed", "-1"], "E2901"),
        (["--output", "MODEL"], "E2560"),
        (["--engine", "emulater"], "E2901"),
    ],
)
def test_simulate_refuses(options, code, compiled, digits, digits_test, capsys):
    words = [{"MODEL": str(digits), "NPZ": str(digits_test)}.get(word, word) for word in options]
    words += [] if "--engine" in words else ["-e", "emulator"]
    before = digits.read_bytes()
    assert run_json(capsys, "simulate", compiled, *words, status=2)["error"]["code"] == code
    assert digits.read_bytes() == before


def test_inputs_of_another_shape_or_name_are_refused(compiled, tmp_path, capsys):
    for arrays, code in (
        ({"input": np.zeros((1, 1, 9, 9), np.float32)}, "E2905"),
        ({"picture": np.zeros((1, 1, 8, 8), np.float32)}, "E2905"),
        ({"input": np.full((1, 1, 8, 8), np.nan, np.float32)}, "E2202"),
        ({"input": np.zeros((1, 1, 8, 8), np.int64)}, "E2905"),
        ({"input": np.float32(1)}, "E2905"),
    ):
        np.savez(tmp_path / "x.npz", **arrays)
        for more in ([], ["-n", "1"]):
            options = ("-e", "emulator", "-i", tmp_path / "x.npz", *more)
            assert run_json(capsys, "simulate", compiled, *options, status=2)["error"]["code"] == code


def test_simulate_does_not_overwrite_its_inputs(compiled, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", input=np.zeros((1, 1, 8, 8), np.float32))
    before = (tmp_path / "x.npz").read_bytes()
    again = tmp_path / "." / "x.npz"
    arguments = ["simulate", compiled, "-e", "golden", "-i", tmp_path / "x.npz", "-o", again]
    assert run_json(capsys, *arguments, status=2)["error"]["code"] == "E2561"
    assert (tmp_path / "x.npz").read_bytes() == before
