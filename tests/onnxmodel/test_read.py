"""Files that are not models: one message each, with the right code; never a traceback of another kind."""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxhw.errors import InvalidModelError, UnsupportedError
from onnxhw.partition import load


@pytest.fixture
def data(model: Any) -> bytes:
    """A small valid model."""
    x = model.input([1, 3, 4, 4], 0.125)
    y = model.node("Conv", x, model.constant(np.ones((2, 3, 1, 1), np.int8), 0.5))
    found: bytes = model.output(model.requantize(y, 0.25)).bytes()
    return found


def refused(source: Any, code: str) -> InvalidModelError:
    with pytest.raises(InvalidModelError) as caught:
        load(source)
    assert caught.value.code == code
    assert caught.value.exit_status == 3
    return caught.value


def test_path_and_bytes_give_the_same_graph(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (path, str(path)):
        assert np.array_equal(load(source).ops[0].weight, load(data).ops[0].weight)


def test_missing_file(tmp_path: Path) -> None:
    assert "No such file" in str(refused(tmp_path / "none.onnx", "E3001"))


def test_name_with_a_nul() -> None:
    refused("model\0.onnx", "E3001")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    path.chmod(0)
    assert "Permission denied" in str(refused(path, "E3001"))


def test_directory(tmp_path: Path) -> None:
    assert "is a directory" in str(refused(tmp_path, "E3002"))


def test_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(refused(tmp_path / "pipe", "E3003"))


def test_larger_than_protobuf_can_be(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 31)
    assert "external data" in refused(path, "E3004").hint


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    refused(path, "E3005")
    refused(b"", "E3005")


def test_not_onnx() -> None:
    refused(b"\x89PNG\r\n\x1a\n" + bytes(100), "E3006")
    refused(b"This is a text file and no model at all.", "E3006")


def test_no_graph(data: bytes) -> None:
    model = onnx.load_from_string(data)
    model.ClearField("graph")
    refused(model.SerializeToString(), "E3007")


def test_every_truncation_is_refused(data: bytes) -> None:
    """Cut anywhere, the file is invalid (one that ends after the graph may lack its operator sets)."""
    for size in range(0, len(data), 7):
        with pytest.raises((InvalidModelError, UnsupportedError)):
            load(data[:size])


def test_shapes_that_contradict(data: bytes) -> None:
    model = onnx.load_from_string(data)
    wanted = load(data)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 99  # what nodes give counts
    assert load(model.SerializeToString()).tensors == wanted.tensors
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    refused(model.SerializeToString(), "E3010")


def test_external_data_missing(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.load_from_string(data), path, save_as_external_data=True, size_threshold=0, location="w.bin")
    (tmp_path / "w.bin").unlink()
    assert "external data" in str(refused(path, "E3008"))
    assert "given as bytes" in str(refused(path.read_bytes(), "E3008"))


def test_external_data_outside_the_folder(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    folder = tmp_path / "model"
    folder.mkdir()
    model = onnx.load_from_string(data)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    refused(folder / "model.onnx", "E3127")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_bytes_never_escape(data: bytes, draw: st.DataObject) -> None:
    """Any byte changed: a graph, or an error of ours that is not an internal one."""
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        damaged[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidModelError, UnsupportedError):
        load(bytes(damaged))


def test_tensor_whose_data_does_not_fit_its_shape(data: bytes) -> None:
    model = onnx.load_from_string(data)
    tensor = next(tensor for tensor in model.graph.initializer if len(tensor.dims) == 4)
    tensor.raw_data = tensor.raw_data[:-1] + b"\1\1\1"
    with pytest.raises(InvalidModelError, match=f"E3154 .*{tensor.name}"):
        load(model.SerializeToString())
