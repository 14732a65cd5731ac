"""Large external constants stay outside the protobuf message: the same results, one copy of the data."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from onnx import TensorProto, helper, numpy_helper

from onnxhw.errors import InvalidModelError, UnsupportedError
from onnxhw.onnxfile.limits import LimitError, Limits
from onnxhw.onnxmodel.read import read as load
from onnxhw.partition import read
from onnxhw.partition.host_parts import serialized
from onnxhw.runtime.session import InferenceSession

F = np.float32
SMALL, LARGE = (500, 500), (512, 1025)
"""Of float32, below and beyond 1 MiB."""


def model(folder: Path, weights: np.ndarray[Any, Any], nodes: list[onnx.NodeProto], more: dict[str, Any]) -> Path:
    """``x -> nodes -> y`` with the initializer w in a file of its own."""
    constants = [numpy_helper.from_array(weights, "w"), *(numpy_helper.from_array(v, k) for k, v in more.items())]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, weights.shape[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "large", [x], [y], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "whole.onnx")
    onnx.save(made, folder / "model.onnx", save_as_external_data=True, size_threshold=1024, location="w.bin")
    return folder / "model.onnx"


@pytest.mark.parametrize("shape", [SMALL, LARGE])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64, np.int32, np.int64])
def test_results_are_those_of_the_model_in_one_file(shape: tuple[int, int], kind: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)]
    nodes.append(helper.make_node("MatMul", ["x", "f"], ["y"]))
    path = model(tmp_path, rng.integers(-99, 99, shape).astype(kind), nodes, {})
    large = load(path, separate_large=True).large_constants
    assert list(large.data) == (["w"] if np.dtype(kind).itemsize * shape[0] * shape[1] >= 1 << 20 else [])
    x = {"x": rng.standard_normal((1, shape[0])).astype(F)}
    (ours,), (wanted,) = (InferenceSession(one).run(None, x) for one in (path, tmp_path / "whole.onnx"))
    np.testing.assert_array_equal(ours, wanted)
    assert read(path, runnable=False).placement == read(tmp_path / "whole.onnx").placement


def test_weights_of_the_hardware_and_constant_outputs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    grid = {"s": F(0.125), "z": np.int8(0)}
    nodes = [
        helper.make_node(op, [*inputs, "s", "z"], [output])
        for op, inputs, output in [("QuantizeLinear", ["x"], "q"), ("DequantizeLinear", ["q"], "a"),
                                   ("DequantizeLinear", ["w"], "b")]
    ]  # fmt: skip
    nodes += [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("QuantizeLinear", ["m", "t", "z"], ["r"]),
              helper.make_node("DequantizeLinear", ["r", "t", "z"], ["y"])]  # fmt: skip
    path = model(tmp_path, rng.integers(-9, 9, (1024, 1100)).astype(np.int8), nodes, {**grid, "t": F(8)})
    x = {"x": rng.standard_normal((1, 1024)).astype(F) * 8}
    assert read(path).hardware
    (ours,), (wanted,) = (InferenceSession(one).run(None, x) for one in (path, tmp_path / "whole.onnx"))
    np.testing.assert_array_equal(ours, wanted)
    made = onnx.load(path, load_external_data=False)
    made.graph.output.append(helper.make_tensor_value_info("w", TensorProto.INT8, [1024, 1100]))
    onnx.save(made, path)
    np.testing.assert_array_equal(InferenceSession(path).run(["w"], x)[0], onnx.numpy_helper.to_array(
        onnx.load(tmp_path / "whole.onnx").graph.initializer[0]))  # fmt: skip


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_the_last_element_is_looked_at(value: float, tmp_path: Path) -> None:
    weights = np.zeros(LARGE, F)
    weights[-1, -1] = value
    path = model(tmp_path, weights, [helper.make_node("MatMul", ["x", "w"], ["y"])], {})
    assert [one.code for one in load(path, separate_large=True).warnings] == ["W3150"]


def test_a_boolean_is_0_or_1(tmp_path: Path) -> None:
    weights = np.zeros((1024, 1025), np.uint8)
    weights[-1, -1] = 2
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)]
    nodes.append(helper.make_node("MatMul", ["x", "f"], ["y"]))
    path = model(tmp_path, weights, nodes, {})
    made = onnx.load(path, load_external_data=False)
    made.graph.initializer[0].data_type = TensorProto.BOOL
    onnx.save(made, path)
    with pytest.raises(InvalidModelError, match="E3157"):
        load(path, separate_large=True)


SCRIPT = """
import sys
from onnxhw.partition import read
def most():  # what getrusage says may be of the process before exec
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
read(sys.argv[2], runnable=False)
before = most()
mixed = read(sys.argv[1], runnable=False)
print(len(mixed.placement), most() - before)
"""
LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@LINUX
def test_a_check_takes_the_data_once(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    paths = model(large, np.ones((4096, 8192), F), nodes, {}), model(small, np.ones(SMALL, F), nodes, {})
    found = subprocess.run([sys.executable, "-c", SCRIPT, *paths], capture_output=True, text=True, check=True).stdout
    nodes_found, kibibytes = map(int, found.split())
    assert nodes_found == 1
    assert kibibytes < 1.25 * 128 * 1024


def test_a_quantized_constant_that_fits_nothing_stays_on_the_host(tmp_path: Path) -> None:
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["b"])]
    nodes.append(helper.make_node("MatMul", ["x", "b"], ["y"]))
    path = model(tmp_path, np.zeros((1, (1 << 24) + 1), np.int8), nodes, {"s": F(0.125), "z": np.int8(0)})
    rows = {row.op_type: row for row in read(path, runnable=False).placement}
    assert rows["DequantizeLinear"].where == "host"
    assert "16,777,217 elements" in rows["DequantizeLinear"].reason


def renamed(folder: Path, weights: np.ndarray[Any, Any]) -> Path:
    """The constant w is given other names: outputs, and an operand of the host."""
    nodes = [helper.make_node("Identity", ["w"], ["a"]), helper.make_node("Dropout", ["a"], ["b"]),
             helper.make_node("Identity", ["b"], ["c"]), helper.make_node("MatMul", ["x", "c"], ["y"])]  # fmt: skip
    path = model(folder, weights, nodes, {})
    made = onnx.load(path, load_external_data=False)
    made.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "awb")
    onnx.save(made, path)
    return path


@LINUX
def test_other_names_of_a_constant_take_no_memory(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    paths = renamed(tmp_path, np.ones((4096, 8192), F)), renamed(small, np.ones(SMALL, F))
    found = subprocess.run([sys.executable, "-c", SCRIPT, *paths], capture_output=True, text=True, check=True).stdout
    nodes_found, kibibytes = map(int, found.split())
    assert nodes_found == 4
    assert kibibytes < 1.25 * 128 * 1024


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_a_part_has_a_large_constant_once_whatever_its_names(shape: tuple[int, int], tmp_path: Path) -> None:
    weights = np.random.default_rng(0).integers(-99, 100, shape).astype(F)  # whose sums are exact in any order
    path = renamed(tmp_path, weights)
    (part,) = read(path).host
    assert part.model.count(weights.tobytes()[:1000]) == (1 if shape == LARGE else 4)
    x = np.ones((1, shape[0]), F)
    y, *others = InferenceSession(path).run(None, {"x": x})
    np.testing.assert_array_equal(y, x @ weights)
    for other in others:
        np.testing.assert_array_equal(other, weights)


def test_copies_in_several_host_parts_have_a_limit(tmp_path: Path) -> None:
    """Host, hardware, host; both hosts read w."""
    grid = ["s", "z"]
    nodes = [
        helper.make_node("Add", ["w", "x"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", *grid], ["q"]),
        helper.make_node("MaxPool", ["q"], ["p"], kernel_shape=[1, 1]),
        helper.make_node("DequantizeLinear", ["p", *grid], ["d"]),
        helper.make_node("Pow", ["w", "d"], ["y"]),
    ]
    weights = np.ones((1, 4, 256, 257), F)
    path = model(tmp_path, weights, nodes, {"s": F(0.125), "z": np.int8(0)})
    assert len(read(path).host) == 2
    for runnable in (True, False):
        read(path, limits=Limits(total_bytes=2 * weights.nbytes), runnable=runnable)
        with pytest.raises(LimitError, match=f"E3116 .*{2 * weights.nbytes}"):
            read(path, limits=Limits(total_bytes=2 * weights.nbytes - 1), runnable=runnable)


def test_a_part_beyond_a_protobuf_message_is_refused() -> None:
    class Huge(SimpleNamespace):
        def SerializeToString(self, deterministic: bool) -> bytes:
            raise EncodeError("Failed to serialize proto")

    with pytest.raises(UnsupportedError, match=r"E4402 .*2 GiB"):
        serialized(Huge(graph=SimpleNamespace(name="net")))  # type: ignore[arg-type]
