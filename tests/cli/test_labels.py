"""Labels that are none: refused, not left out."""

import numpy as np
import pytest

from onnxhw.cli import main
from onnxhw.cli.inputs import file_inputs
from onnxhw.errors import UsageError
from onnxhw.frontend import read
from onnxhw.preprocess import open_samples
from onnxhw.preprocess.formula import Input

WRONG = [np.zeros(2), np.zeros((2, 1), int), np.zeros(1, int), np.array(["a", "b"]), np.array(3)]


@pytest.fixture(scope="module")
def graph(digits):
    return read(digits).hardware[0].graph


@pytest.mark.parametrize("name", ["label", "labels"])
@pytest.mark.parametrize("labels", WRONG, ids=str)
def test_labels_of_another_kind_are_refused(name, labels, graph, tmp_path):
    (port,), path = graph.inputs, tmp_path / "x.npz"
    x = np.zeros((2, *port.shape[1:]), port.dtype)
    np.savez(path, **{port.name: x, name: labels})
    with pytest.raises(UsageError, match="E2980"):
        file_inputs(graph, path, None)
    np.savez(path, **{port.name: x, name: np.array([3, 4], np.uint8)})
    assert file_inputs(graph, path, None).labels.tolist() == [3, 4]


def test_a_file_of_labels_without_any_is_named(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 3), np.float32))
    np.savez(tmp_path / "l.npz", other=np.zeros(2, int))
    with pytest.raises(UsageError, match=r"E2605 .*l.npz: it has no array label, labels, y"):
        open_samples(tmp_path / "x.npz", [Input("x", (1, 3))], labels=tmp_path / "l.npz")


def test_the_hint_names_the_dimensions_as_they_are_written(digits, capsys):
    assert main(["check", str(digits), "--shape", "z" * 500 + "=1"]) == 2
    message = capsys.readouterr().err
    assert "E2540" in message
    assert "input:axis" not in message
    assert len(message) < 400
