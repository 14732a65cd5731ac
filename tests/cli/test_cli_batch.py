"""Batches on the command line: what `check` says, and what `simulate` and `run` take for several inferences."""

import json

import numpy as np
import onnx
import pytest

from onnxhw.cli import main

HEAD = '<ir_version: 9, opset_import: ["" : 19]>'
CONSTANTS = "float s = {0.125}, int8 z = {0}, int64[1] zero = {0}, int64[2] flat = {3, 4}"
GRID = "{0}q = QuantizeLinear({0}, s, z) {0}d = DequantizeLinear({0}q, s, z)"


def written(path, body, inputs="float[N, 4] x"):
    """A model whose first node is a Relu on the hardware; `body` makes y of its result `d`."""
    start = f"{GRID.format('x')} r = Relu(xd) {GRID.format('r')} d = Identity(rd)"
    text = f"{HEAD} g ({inputs}) => (float[a, b] y) <{CONSTANTS}> {{ {start} {body} }}"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


APART = f"{GRID.format('m')} y = Identity(md)"
KEEPS = f"m = Neg(d) {APART}"
MEETS = f"m = ReduceMax<keepdims = 1>(d, zero) {APART}"
MEETS_ON_THE_HOST = f"m = Hardmax<axis = 0>(d) {APART}"
KEEPS_ON_THE_HOST = f"m = Hardmax<axis = 1>(d) {APART}"
RESHAPED = f"m = Reshape(d, flat) {APART}"


def run_json(capsys, *arguments, status=0):
    assert main([*map(str, arguments), "--json", "-q"]) == status
    return json.loads(capsys.readouterr().out)


def images(count):
    return (np.arange(4 * count, dtype=np.float32).reshape(count, 4) - 5) / 8


@pytest.mark.parametrize(
    ("body", "batch", "code"),
    [(KEEPS, "N", "W3400"), (MEETS, "N", "W3401"), (RESHAPED, 3, "W3402"), (MEETS, 3, "W3401"), (KEEPS, 1, "")],
)
def test_check_says_what_becomes_of_the_batch(body, batch, code, tmp_path, capsys):
    record = run_json(capsys, "check", written(tmp_path / "m.onnx", body, f"float[{batch}, 4] x"), "-p", "mini")
    codes = [found["code"] for found in record["diagnostics"] if found["code"].startswith("W34")]
    assert codes[-1:] == ([code] if code else [])
    where = {row["op_type"]: row["where"] for row in record["placement"]}
    assert where["Relu"] == "hardware"
    assert where.get("ReduceMax", "hardware") == ("host" if (body, batch) == (MEETS, 3) else "hardware")
    if code == "W3401":
        (what,) = [found["what"] for found in record["diagnostics"] if found["code"] == code]
        assert "it reduces axis 0" in what


@pytest.mark.parametrize("body", [KEEPS, KEEPS_ON_THE_HOST])
@pytest.mark.parametrize("batch", ["N", 3])
def test_samples_that_stay_apart_are_inferences(body, batch, tmp_path, capsys):
    model = written(tmp_path / "m.onnx", body, f"float[{batch}, 4] x")
    np.savez(tmp_path / "x.npz", x=images(3))
    arguments = ("simulate", model, "-p", "mini", "-e", "emulator", "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz")
    record = run_json(capsys, *arguments)
    assert (record["inferences"], record["equal"]) == (3, True)
    (wanted,) = onnx.reference.ReferenceEvaluator(onnx.load(model)).run(None, {"x": images(3)})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], wanted)


@pytest.mark.parametrize("body", [MEETS, MEETS_ON_THE_HOST])
def test_samples_that_may_meet_are_refused(body, tmp_path, capsys):
    model = written(tmp_path / "m.onnx", body)
    np.savez(tmp_path / "x.npz", x=images(3))
    flags = ("-e", "golden", "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz")
    run_json(capsys, "compile", model, "-p", "mini", "-o", tmp_path / "out")
    for target in (model, tmp_path / "out", tmp_path / "out" / "program.ohw"):
        more = ("-p", "mini") if target == model else ()
        error = run_json(capsys, "simulate", target, *flags, *more, status=2)["error"]
        assert error["code"] == "E2915"
        assert "3 samples are not 3 inferences" in error["what"]
        assert run_json(capsys, "simulate", target, *flags, "-n", 1, *more)["inferences"] == 1
    if body == MEETS:
        arguments = ("run", tmp_path / "out", "-d", "emu:", "-i", tmp_path / "x.npz")
        assert run_json(capsys, *arguments, status=2)["error"]["code"] == "E2915"
        assert run_json(capsys, *arguments, "-n", 1)["inferences"] == 1


@pytest.mark.parametrize("body", ["m = Add(d, v)", "t = Hardmax(d) m = Add(t, v)"])
def test_an_input_without_a_batch_goes_with_every_inference(body, tmp_path, capsys):
    body = f"{GRID.format('w')} v = Identity(wd) {body} {APART}"
    model = written(tmp_path / "m.onnx", body, "float[N, 4] x, float[4] w")
    arguments = ("simulate", model, "-p", "mini", "-e", "golden", "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz")
    feeds = {"x": images(3), "w": images(1)[0]}
    np.savez(tmp_path / "x.npz", **feeds)
    assert run_json(capsys, *arguments)["inferences"] == 3
    (wanted,) = onnx.reference.ReferenceEvaluator(onnx.load(model)).run(None, feeds)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], wanted)
    assert run_json(capsys, *arguments, "-n", 2)["inferences"] == 2


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": images(3), "w": images(2)}, "different numbers of inferences: x 3, w 2"),
        ({"x": images(3)[:, :3], "w": images(3)}, "input 'x' must have shape [N, 4], not [3, 3]"),
        ({"x": images(3)[0], "w": images(3)}, "input 'x' must have shape [N, 4], not [4]"),
        ({"x": images(0), "w": images(0)}, "holds no inference: the array for input 'x' has the shape [0, 4]"),
    ],
)
def test_feeds_that_do_not_go_together_are_refused(feeds, words, tmp_path, capsys):
    model = written(tmp_path / "m.onnx", f"t = Hardmax(d) m = Add(t, w) {APART}", "float[N, 4] x, float[N, 4] w")
    path = tmp_path / "x.npz"
    np.savez(path, **feeds)
    error = run_json(capsys, "simulate", model, "-p", "mini", "-e", "golden", "-i", path, status=2)["error"]
    assert error["code"] == "E2905"
    assert words in error["what"]
