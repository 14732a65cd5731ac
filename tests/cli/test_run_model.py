"""``onnxhw run`` of an .onnx file: computed on the host if nothing of it runs on the hardware."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A float model of an open batch: class scores."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    graph = helper.make_graph(
        nodes, "scores", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1, 0, 0, 1, -1, 1])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=np.arange(12, dtype=np.float32).reshape(4, 3) % 5)
    return tmp_path / "m.onnx"


def scores() -> Any:
    x = np.arange(12, dtype=np.float32).reshape(4, 3) % 5
    powers = np.exp(x @ np.array([[1, 0], [0, 1], [-1, 1]], np.float32))
    return powers / powers.sum(1, keepdims=True)


def test_what_check_says_run_does(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(model)]) == 0
    assert "onnxhw run MODEL -i FILE computes it on the host" in capsys.readouterr().out
    folder, target = model.parent, model.parent / "y.npy"
    assert main(["run", str(model), "-i", str(folder / "x.npz"), "-o", str(target), "--json", "-r", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(np.load(target), scores(), rtol=1e-5)
    assert record["classes"] == scores().argmax(1).tolist()
    assert (record["device"], record["inferences"], record["runs"], record["cycles"]) == ("host", 4, 8, 0)
    assert main(["run", str(model), "-i", str(folder / "x.npz"), "-n", "1"]) == 0
    assert "nothing of it runs on the hardware, the host computed 1 inference of" in capsys.readouterr().out


def test_missing_folders_of_the_output_are_made(model: Path) -> None:
    """As `compile` makes those of its output directory."""
    target = model.parent / "a" / "b" / "y.npz"
    assert main(["run", str(model), "-i", str(model.parent / "x.npz"), "-o", str(target)]) == 0
    assert target.is_file()


def test_what_cannot_be_meant_is_refused(model: Path, digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["-i", str(model.parent / "x.npz")]
    assert main(["run", str(model), *given, "--profile"]) == 2
    assert "E2163" in capsys.readouterr().err
    assert main(["run", str(model), "-i", str(model)]) == 2
    assert main(["run", str(model), *given, "-o", "y.txt"]) == 2
    assert "E2560" in capsys.readouterr().err
    assert main(["run", str(digits), *given]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "E2162" in said
    assert "onnxhw compile" in said
    assert "onnxhw simulate" in said
