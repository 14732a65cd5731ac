"""The arrays of a file as the inputs of a model of two inputs."""

import numpy as np
import pytest

from onnxhw.cli.common.inputs import file_inputs
from onnxhw.errors import UsageError
from onnxhw.ir.parts import ValueInfo

SHAPE = (1, 2, 1, 1)
VALUES = [ValueInfo(name, SHAPE, "float32") for name in ("a", "b")]


def images(count):
    return np.arange(2 * count, dtype=np.float32).reshape(count, 2, 1, 1)


def test_arrays_and_labels_are_counted_together(tmp_path):
    np.savez(tmp_path / "x.npz", a=images(3), b=-images(3), label=np.arange(5))
    found = file_inputs(VALUES, tmp_path / "x.npz", 2)
    assert found.count == 2
    assert found.labels.tolist() == [0, 1]
    assert [{name: values.ravel().tolist() for name, values in found.one(i).items()} for i in range(2)] == [
        {"a": [0, 1], "b": [0, -1]},
        {"a": [2, 3], "b": [-2, -3]},
    ]


def test_different_numbers_of_inferences_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=images(3), b=images(2))
    with pytest.raises(UsageError, match=r"E2905 .*different numbers of inferences: a 3, b 2"):
        file_inputs(VALUES, tmp_path / "x.npz", None)
    assert file_inputs(VALUES, tmp_path / "x.npz", 2).count == 2


def test_one_array_for_two_inputs_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", images(3))
    with pytest.raises(UsageError, match=r"E2905 .*one array, the model has 2 inputs.*a, b"):
        file_inputs(VALUES, tmp_path / "x.npy", None)
    np.savez(tmp_path / "x.npz", a=images(3))
    with pytest.raises(UsageError, match=r"E2905 .*no array for input 'b'"):
        file_inputs(VALUES, tmp_path / "x.npz", None)
