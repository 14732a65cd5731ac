"""Labels that are none: refused, not left out."""

import numpy as np
import pytest

from onnxhw.cli import main
from onnxhw.cli.common.inputs import file_inputs
from onnxhw.errors import UsageError
from onnxhw.partition import read
from onnxhw.preprocess import open_samples
from onnxhw.preprocess.formula import Input

WRONG = [np.zeros(2), np.zeros((2, 1), int), np.zeros(1, int), np.array(["a", "b"]), np.array(3)]


@pytest.fixture(scope="module")
def values(digits):
    return read(digits).inputs


@pytest.mark.parametrize("name", ["label", "labels"])
@pytest.mark.parametrize("labels", WRONG, ids=str)
def test_labels_of_another_kind_are_refused(name, labels, values, tmp_path):
    (value,), path = [one for one in values if not one.optional], tmp_path / "x.npz"
    x = np.zeros((2, *value.shape[1:]), value.dtype)
    np.savez(path, **{value.name: x, name: labels})
    with pytest.raises(UsageError, match="E2980"):
        file_inputs(values, path, None)
    np.savez(path, **{value.name: x, name: np.array([3, 4], np.uint8)})
    assert file_inputs(values, path, None).labels.tolist() == [3, 4]


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
