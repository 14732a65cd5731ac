"""``onnxhw bench``: the table, its layers, and its pictures."""

import json

import pytest

from onnxhw.cli import main


def run_json(capsys, *arguments, status=0):
    """The JSON that a command prints, if it ends with `status`."""
    assert main([*map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_bench_predicts(digits, capsys):
    (row,) = run_json(capsys, "bench", "--models", digits, "--preset", "mini", "--no-rtl")
    assert (row["model"], row["preset"], row["macs_nominal"]) == ("digits", "mini", 30_080)
    assert row["cycles_predicted"] > 1000
    assert row["cycles_rtl"] is None
    assert row["utilization"] == round(30_080 / row["run_cycles"] / 16, 4)
    assert {"lut", "ff", "dsp", "ebr", "fmax_mhz", "latency_ms"} <= set(row)
    assert run_json(capsys, "bench", "--models", "kvs", status=2)["error"]["code"] == "E2910"


def test_bench_prints_the_layers_with_their_mode(digits, capsys):
    assert main(["bench", "--models", str(digits), "--preset", "mini", "--no-rtl", "--layers"]) == 0
    text = capsys.readouterr().out
    assert "of mode %" in text
    (row,) = run_json(capsys, "bench", "--models", digits, "--preset", "mini", "--no-rtl")
    for layer in row["layers"]:
        assert layer["mode"] in ("array", "depthwise", "weights", "vector", "moves")
        judged = layer["cycles"] > 0.01 * row["run_cycles"] and layer["of_mode"] < 0.6
        assert bool(layer["reason"]) == judged, layer
        assert (layer["reason"] in text) or not judged
    assert any(layer["reason"] for layer in row["layers"]), "no layer has a reason: this model shows nothing"


def test_bench_draws(digits, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    run_json(capsys, "bench", "--models", digits, "--preset", "mini", "--no-rtl", "--plots", tmp_path / "plots")
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "digits-mini-roofline.png", "digits-mini-timeline.png", "digits-mini.html",
    ]  # fmt: skip
    (tmp_path / "file").touch()
    found = run_json(
        capsys, "bench", "--models", digits, "--no-rtl", "--plots", tmp_path / "file" / "plots", status=2
    )  # fmt: skip
    assert found["error"]["code"] == "E2903"
