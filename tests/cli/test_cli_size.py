"""Models that are too large for a preset: exit status 5, the numbers, and where they may fit; `check` says the same."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.cli import main


def run(capsys, *arguments):
    """Exit status and JSON of a command."""
    status = main([*map(str, arguments), "--preset", "mini", "--json", "-q"])
    return status, json.loads(capsys.readouterr().out)


def qdq(path, op_type, shape, weights=None, before=(), dims=None):
    """One operator between quantizers, after operators without attributes; written to `path`."""
    constants = [("s", np.float32(0.125)), ("z", np.int8(0))] + ([] if weights is None else [("w", weights)])
    nodes, x = [], "x"

    def node(kind, *inputs):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], name=f"{kind}_{len(nodes)}"))
        return nodes[-1].output[0]

    def grid(value):
        return node("DequantizeLinear", node("QuantizeLinear", value, "s", "z"), "s", "z")

    x = grid("x")
    for kind in before:
        x = grid(node(kind, x))
    operands = [] if weights is None else [node("DequantizeLinear", "w", "s", "z")]
    y = grid(node(op_type, x, *operands))
    graph = helper.make_graph(
        nodes, "large", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims or shape)],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def some(*shape):
    """Small weights, no two channels alike."""
    return np.random.default_rng(5).integers(-8, 8, shape).astype(np.int8)


def full(*shape):
    return np.full(shape, -127, np.int8)


CASES = {
    "weights": (("Gemm", [1, 4097], some(4097, 3)), "E5102", ["4100", "4096", "preset ulx3s-85f-dense on"]),
    "weights of a convolution": (("Conv", [1, 64, 8, 8], some(512, 64, 5, 5)), "E5102", ["mini", "no preset"]),
    "activations": (("Conv", [1, 16, 256, 256], some(16, 16, 3, 3)), "E5101", ["no preset of any board"]),
    "activations at once": (("Conv", [1, 16, 32, 32], some(16, 16, 3, 3)), "E5101", ["at once", "preset ulx3s-25f on"]),
    "accumulators": (("Gemm", [1, 2000], full(2000, 2)), "E5106", ["32512000", "24 bits", "preset ulx3s-85f on"]),
    "accumulators and weights": (("Gemm", [1, 9000], full(9000, 2) + np.int8([0, 1])), "E5102", ["18000", "24 bits"]),
    "fields": (("Conv", [1, 4, 300, 2], some(4, 4, 260, 1)), "E5107", ["kernel rows is 260", "8 bits"]),
}  # fmt: skip
"""What is too little: the model, its code, and words of the message or hint."""


@pytest.mark.parametrize("name", CASES)
def test_what_is_too_large_does_not_fit(name, tmp_path, capsys):
    model, code, words = CASES[name]
    path = qdq(tmp_path / "m.onnx", *model)
    for command in (["check"], ["compile", "-o", tmp_path / "out"]):
        status, record = run(capsys, command[0], path, *command[1:])
        error = record["error"]
        assert (status, error["code"], error["exit_status"]) == (5, code, 5), error
        assert command[0] == "compile" or record["runs"] is False
        for word in words if command[0] == "compile" else words[-1:]:
            assert word in error["what"] + error["hint"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_presets_in_the_hint_fit(tmp_path, capsys):
    path = qdq(tmp_path / "m.onnx", *CASES["accumulators"][0])
    assert main(["boards", str(path), "--json", "-q"]) == 0
    record = json.loads(capsys.readouterr().out)
    fits = {row["preset"] for row in record["presets"] if row["fits"]}
    _, refused = run(capsys, "check", path)
    for name in ("mini", "ulx3s-25f", "ulx3s-85f-dense", "ulx3s-85f"):
        assert (f"preset {name} on" in refused["error"]["hint"]) == (name in fits)


def test_an_operation_that_is_too_large_goes_to_the_host_beside_others(tmp_path, capsys):
    path = qdq(tmp_path / "m.onnx", "Gemm", [1, 2000], full(2000, 2), before=["Relu"])
    status, record = run(capsys, "check", path)
    where = {row["op_type"]: row for row in record["placement"]}
    assert (status, record["runs"]) == (0, True)
    assert where["Relu"]["where"] == "hardware"
    assert where["Gemm"]["where"] == "host"
    assert "24 bits" in where["Gemm"]["reason"]
    status, compiled = run(capsys, "compile", path, "-o", tmp_path / "out")
    assert status == 0
    assert compiled["placement"] == record["nodes"]


def test_open_dimensions_come_with_the_flags_that_set_them(tmp_path, capsys):
    path = qdq(tmp_path / "m.onnx", "Gemm", [1, 64], some(64, 3), dims=["batch", "features"])
    status, record = run(capsys, "compile", path, "-o", tmp_path / "out")
    assert (status, record["error"]["code"]) == (4, "E4003")
    assert record["error"]["hint"].endswith("--shape features=1")
    assert run(capsys, "compile", path, "-o", tmp_path / "out", "--shape", "features=64")[0] == 0
    assert main(["check", str(path)]) == 0
    assert "--shape features=1" in capsys.readouterr().out
