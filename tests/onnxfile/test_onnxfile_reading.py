"""What the specification allows is read, with a word where it is odd; external data arrives as it was written."""

import hashlib
import json
import logging
import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from hostile_base import DATA, attribute_tensor, base, subgraph_tensor
from hostile_models import sparse
from onnx import TensorProto, helper, numpy_helper

from onnxhw.diagnostics import Diagnostic
from onnxhw.errors import UsageError
from onnxhw.onnxfile.limits import Limits
from onnxhw.onnxmodel.read import read


def codes(model: onnx.ModelProto) -> list[str]:
    return [warning.code for warning in read(model.SerializeToString()).warnings]


def test_weights_that_are_not_finite_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    model = base()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full_like(DATA, np.nan), "w"))
    with caplog.at_level(logging.WARNING):
        assert codes(model) == ["W3150"]
    assert "W3150" in caplog.text
    assert "'w'" in caplog.text


def test_fields_of_a_newer_release_are_ignored_with_a_warning() -> None:
    model = base()
    data = model.SerializeToString().replace(model.graph.node[0].SerializeToString(), b"", 1)
    node = model.graph.node[0].SerializeToString() + b"\xfa\x3f\x03abc"
    model = onnx.ModelProto.FromString(data[:2])
    model.CopyFrom(base())
    model.graph.node[0].CopyFrom(onnx.NodeProto.FromString(node))
    reading = read(model.SerializeToString())
    assert [warning.code for warning in reading.warnings] == ["W3101"]
    assert reading.model == base()


def test_location_of_data_that_is_inside_is_a_warning() -> None:
    model = base()
    model.graph.initializer[0].external_data.add(key="location", value="../elsewhere")
    assert codes(model) == ["W3103"]


def test_sparse_initializers_become_dense(tmp_path: Path) -> None:
    made = sparse([0, 1, 5])(tmp_path)
    assert isinstance(made, bytes)
    reading = read(made)
    assert reading.warnings == ()
    assert not reading.model.graph.sparse_initializer
    filled = reading.model.graph.initializer[-1]
    assert filled.name == "s"
    assert numpy_helper.to_array(filled).tolist() == [[1, 1, 0], [0, 0, 1]]


def test_a_model_without_nodes_but_with_outputs_is_read() -> None:
    model = base()
    del model.graph.node[:]
    assert codes(model) == []


def stored(folder: Path, tensor: TensorProto, **entries: str) -> None:
    """Move the tensor's bytes to `data/w.bin`, after 16 other bytes."""
    (folder / "data").mkdir(exist_ok=True)
    with (folder / "data" / "w.bin").open("wb") as file:
        file.write(bytes(16) + tensor.raw_data + bytes(5))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in ({"location": "./data/w.bin", "offset": "16"} | entries).items():
        tensor.external_data.add(key=key, value=value)


@pytest.mark.parametrize("entries", [{}, {"length": "24"}, {"prepacked_0": "x"}, {"checksum": ""}], ids=str)
@pytest.mark.parametrize("finder", [lambda m: m.graph.initializer[0], attribute_tensor, subgraph_tensor])
def test_external_data_of_weights_attributes_and_subgraphs(tmp_path: Path, finder, entries: dict[str, str]) -> None:
    model = base()
    stored(tmp_path, finder(model), **entries)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    reading = read(tmp_path / "model.onnx")
    assert reading.model == base()
    assert [warning.code for warning in reading.warnings] == (["W3102"] if "prepacked_0" in entries else [])


@pytest.mark.parametrize("spelled", [str.lower, str.upper])
def test_checksum_is_the_sha1_of_the_whole_file(tmp_path: Path, spelled) -> None:
    model = base()
    digest = hashlib.sha1(bytes(16) + DATA.tobytes() + bytes(5)).hexdigest()
    stored(tmp_path, model.graph.initializer[0], checksum=spelled(digest))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert read(tmp_path / "model.onnx").model == base()


def test_the_model_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(base().SerializeToString())
    (tmp_path / "link.onnx").symlink_to(tmp_path / "model.onnx")
    assert read(tmp_path / "link.onnx").model == base()


def test_external_data_as_onnx_writes_it(tmp_path: Path) -> None:
    onnx.save(base(), tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
    assert "w.bin" in (tmp_path / "model.onnx").read_bytes().decode(errors="replace")
    assert read(tmp_path / "model.onnx").model == base()


def test_no_file_stays_open(tmp_path: Path) -> None:
    model = base()
    stored(tmp_path, model.graph.initializer[0])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "broken").mkdir()
    stored(tmp_path / "broken", attribute_tensor(model), location="data/none")
    (tmp_path / "broken" / "model.onnx").write_bytes(model.SerializeToString())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        read(tmp_path / "model.onnx")
        with pytest.raises(Exception, match="E3008"):
            read(tmp_path / "broken" / "model.onnx")
    assert len(os.listdir("/proc/self/fd")) == before


def test_limits_from_flags() -> None:
    assert Limits.from_flags([]) == Limits()
    assert Limits.from_flags(["nodes=200000", "name-length=7"]) == Limits(nodes=200_000, name_length=7)
    for flag in ("node=3", "nodes", "nodes=", "nodes=-1", "nodes=1e3", "nodes=\u0663", "=3"):
        with pytest.raises(UsageError, match="E2160"):
            Limits.from_flags([flag])


def test_a_diagnostic_survives_json() -> None:
    found = Diagnostic("W3150", "warning", "here", "what", "hint")
    assert Diagnostic.of(json.loads(json.dumps(found.record()))) == found
    assert found.text() == "W3150 warning: here: what Hint: hint"


def test_ten_thousand_nodes_are_read_in_well_below_a_second() -> None:
    count = 10_000
    nodes = [helper.make_node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ("v0", f"v{count}")]
    weights = [numpy_helper.from_array(np.ones(8, np.float32), f"w{i}") for i in range(count)]
    graph = helper.make_graph(nodes, "large", values[:1], values[1:], weights)
    data = helper.make_model(graph).SerializeToString()
    spent = []
    for _ in range(3):
        start = time.process_time()
        read(data)
        spent.append(time.process_time() - start)
    assert min(spent) < 8
