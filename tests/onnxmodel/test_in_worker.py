"""onnx's own code in a worker: its results and errors are onnx's, its crashes and endless loops are errors of ours."""

import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw import worker
from onnxhw.onnxmodel import in_worker

pytestmark = pytest.mark.skipif(not worker.FORKS, reason="this system has no worker for it")


def model(*nodes, shape=(2, 3, 4), opset=18):
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, shape), info("i", TensorProto.INT64, (2, 1))]
    outputs = [onnx.ValueInfoProto(name=nodes[-1].output[0])]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@pytest.fixture(autouse=True)
def own_child():
    """A worker that knows what a test has changed, and that no other test meets."""
    worker._current().close()
    yield
    worker._current().close()


GOOD = helper.make_node("Relu", ["x"], ["r"])
CRASH = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-(1 << 28), name="the_one")
"""It reads 2 GiB below an array: what lies just below one can be read, and then the process goes on."""
MANY = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=(1 << 31) - 1)


def test_the_results_are_those_of_onnx():
    asked = model(GOOD, helper.make_node("Flatten", ["r"], ["y"]))
    assert in_worker.infer_shapes(asked) == onnx.shape_inference.infer_shapes(asked)
    raised = in_worker.convert_version(asked, 21)
    assert raised == onnx.version_converter.convert_version(asked, 21)


def test_errors_are_those_of_onnx():
    wrong = model(helper.make_node("MatMul", ["x", "i"], ["y"]))
    with pytest.raises(onnx.shape_inference.InferenceError):
        in_worker.infer_shapes(wrong, strict_mode=True)
    with pytest.raises(RuntimeError):
        in_worker.convert_version(model(helper.make_node("Nothing", ["x"], ["y"])), 7)


@pytest.mark.parametrize("before", [0, 1, 2, 50])
def test_a_crash_names_its_node(before):
    nodes = [helper.make_node("Relu", ["x"], [f"r{index}"]) for index in range(before)]
    after = [helper.make_node("Relu", ["y"], [f"s{index}"]) for index in range(3)]
    with pytest.raises(in_worker.CrashError, match=r"E3450.*node 'the_one' \(GatherND\).*SIG"):
        in_worker.infer_shapes(model(*nodes, CRASH, *after))


def test_what_takes_too_much_memory_ends():
    with pytest.raises(in_worker.CrashError, match="E3451"):
        in_worker.infer_shapes(model(MANY))
