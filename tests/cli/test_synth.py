"""`synth` around the bitstream flow: what it asks for, writes and refuses. The flow itself is tested in tests/build."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw import board
from onnxhw.build import flow
from onnxhw.build.built import Built
from onnxhw.build.cache import Cache
from onnxhw.build.report import Clock, RouteReport
from onnxhw.cli import main, synthesis
from onnxhw.config import preset
from onnxhw.errors import DoesNotFitError, TimingError, ToolError


@pytest.fixture
def built(monkeypatch):
    """Replaces the flow; the options it was called with, and what it shall do."""
    calls = []
    report = RouteReport(
        {"lut": (11203, 83640), "ff": (9053, 83640), "dsp": (16, 156), "ebr": (32, 208)}, {"clk": Clock(101.25, 100.0)}
    )

    def build(design, board, *, clock_hz, options, progress, use_cache, label, recipe):
        calls.append({"design": design, "clock_hz": clock_hz, "options": options, "use_cache": use_cache})
        progress(flow.Event("yosys", 1.5, True))
        if calls[0].get("raises"):
            raise calls[0]["raises"]
        return Built(b"bits", "config", report, 3, "ab" * 20, clock_hz, board, {"yosys": "1"}, [], True)

    monkeypatch.setattr(flow, "build", build)
    monkeypatch.setattr(synthesis, "top", lambda board, config, clock_hz: (board.name, config.name, clock_hz))
    return calls


def run(capsys, *arguments, status=0):
    assert main(["synth", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_synth_writes_everything(built, digits, tmp_path, capsys):
    record = run(capsys, digits, "--preset", "mini", "--freq", "100", "-o", tmp_path / "out")
    assert built[0]["design"] == ("ulx3s-85f", "mini", 100_000_000)
    assert built[0]["options"].seeds == (1,)
    assert (record["cached"], record["timing_met"], record["fmax_mhz"], record["seed"]) == (True, True, 101.25, 3)
    assert record["resources"]["lut"] == {"used": 11203, "available": 83640}
    names = ["manifest.json", "program.ohw", "report.html", "top.bit", "trace.json"]
    assert sorted(record["artifacts"]) == names
    assert (tmp_path / "out" / "top.bit").read_bytes() == b"bits"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(names) - {"manifest.json"} <= set(manifest["files"])
    assert manifest["tools"]["yosys"] == "1"
    assert "101.25 MHz" in (tmp_path / "out" / "report.html").read_text()


def test_the_recipe_names_everything_that_decides_over_the_design(monkeypatch, tmp_path):
    """By it a bitstream is found without elaborating the design."""
    mini = synthesis.recipe(preset("mini"), 1)
    assert mini == synthesis.recipe(preset("mini"), 1)
    assert synthesis.recipe(preset("ulx3s-25f"), 1) != mini != synthesis.recipe(preset("mini"), 2)
    read = Path.read_bytes
    for path in ("rtl/fetch.py", "rtl/uart.py", "rtl/pll.py", "isa/instructions.py", "config.py", "isa/link.py"):
        with monkeypatch.context() as change:
            end = f"onnxhw/{path}"
            change.setattr(Path, "read_bytes", lambda self, end=end: read(self) + b"#" * self.as_posix().endswith(end))
            assert synthesis.recipe(preset("mini"), 1) != mini, path


def test_the_board_says_the_clock(built, digits, tmp_path, capsys):
    run(capsys, digits, "--preset", "mini", "--board", "ulx3s-25f", "-o", tmp_path / "out")
    assert built[0]["clock_hz"] == board.find("ulx3s-25f").core_hz


def test_options_reach_the_flow(built, digits, tmp_path, capsys):
    run(capsys, digits, "--preset", "mini", "--seeds", "7", "--freq", "62.5", "--no-cache", "-o", tmp_path / "out")
    assert built[0]["clock_hz"] == 62_500_000
    assert built[0]["options"].seeds == (1, 2, 3, 4, 5, 6, 7)
    assert built[0]["use_cache"] is False


@pytest.mark.parametrize(
    "error",
    [
        TimingError("E6101", "reaches 80 MHz, not 100 MHz"),
        DoesNotFitError("E5201", "needs 300 block RAMs"),
        ToolError("E7101", "nextpnr-ecp5 is not installed"),
        KeyboardInterrupt(),
    ],
)
def test_a_flow_that_fails_leaves_nothing(error, built, digits, tmp_path):
    built.append({"raises": error})
    status = getattr(error, "exit_status", 130)
    assert main(["synth", str(digits), "--preset", "mini", "-o", str(tmp_path / "out"), "-q"]) == status
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_does_not_fit_is_refused_before_the_flow(built, tmp_path, capsys):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 512, 4, 4])
    weights = np.random.default_rng(5).integers(-8, 8, (512, 64, 1, 1)).astype(np.int8)
    constants = {"s": np.float32(0.125), "z": np.int8(0), "w": weights}
    nodes = [
        helper.make_node(kind, [*inputs.split()], [output])
        for kind, inputs, output in (
            ("QuantizeLinear", "x s z", "xq"), ("DequantizeLinear", "xq s z", "xd"),
            ("DequantizeLinear", "w s z", "wd"), ("Conv", "xd wd", "c"),
            ("QuantizeLinear", "c s z", "cq"), ("DequantizeLinear", "cq s z", "y"),
        )
    ]  # fmt: skip
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    proto = helper.make_model(
        helper.make_graph(nodes, "large", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    model = tmp_path / "large.onnx"
    onnx.save(proto, model)
    record = run(capsys, model, "--preset", "mini", "-o", tmp_path / "out", status=5)
    assert record["error"]["code"] == "E5102"
    assert built == []


def test_progress_goes_to_stderr(built, digits, tmp_path, capsys):
    assert main(["synth", str(digits), "--preset", "mini", "--freq", "100", "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert "yosys" in captured.err
    assert "yosys" not in captured.out
    assert "clock 100.00 MHz met (Fmax 101.25 MHz)" in captured.out
    assert ", cached bitstream" in captured.out


def test_a_route_is_looked_up_only_where_a_bitstream_of_the_preset_is_kept(monkeypatch, tmp_path):
    """Looking it up may mean to elaborate the design; labels of others name the board, and presets begin alike."""
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))
    looked = []
    monkeypatch.setattr(synthesis, "top", lambda board, config, clock_hz: looked.append((board.name, config.name)))
    monkeypatch.setattr(flow, "cached", lambda design, board, *, clock_hz, recipe: None)
    for label in ("mini on ulx3s-85f at 75 MHz", "ulx3s-85f-dense on ulx3s-85f at 60 MHz"):
        Cache("bitstream").store(label.encode().hex(), {"top.bit": b""}, label=label)
    for name in ("ulx3s-85f", "mini", "ulx3s-45f"):
        assert synthesis.cached_route(preset(name)) is None
    assert looked == [("ulx3s-85f", "mini")]
