"""onnx's own code in a child: its results and errors are onnx's, its crashes and endless loops are errors of ours."""

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw import child as process
from onnxhw.frontend import hostconfined
from onnxhw.onnxmodel import confined

pytestmark = pytest.mark.skipif(not process.FORKS, reason="this system has no child for it")


def model(*nodes, shape=(2, 3, 4), opset=18):
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, shape), info("i", TensorProto.INT64, (2, 1))]
    outputs = [onnx.ValueInfoProto(name=nodes[-1].output[0])]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@pytest.fixture(autouse=True)
def own_child():
    """A child that knows what a test has changed, and that no other test meets."""
    process._current().close()
    yield
    process._current().close()


GOOD = helper.make_node("Relu", ["x"], ["r"])
CRASH = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-(1 << 28), name="the_one")
"""It reads 2 GiB below an array: what lies just below one can be read, and then the process goes on."""
MANY = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=(1 << 31) - 1)


def child():
    return process._current().pid


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_results_are_those_of_onnx():
    asked = model(GOOD, helper.make_node("Flatten", ["r"], ["y"]))
    assert confined.infer_shapes(asked) == onnx.shape_inference.infer_shapes(asked)
    raised = confined.convert_version(asked, 21)
    assert raised == onnx.version_converter.convert_version(asked, 21)


def test_errors_are_those_of_onnx():
    wrong = model(helper.make_node("MatMul", ["x", "i"], ["y"]))
    with pytest.raises(onnx.shape_inference.InferenceError):
        confined.infer_shapes(wrong, strict_mode=True)
    with pytest.raises(RuntimeError):
        confined.convert_version(model(helper.make_node("Nothing", ["x"], ["y"])), 7)


@pytest.mark.parametrize("before", [0, 1, 2, 50])
def test_a_crash_names_its_node(before):
    nodes = [helper.make_node("Relu", ["x"], [f"r{index}"]) for index in range(before)]
    after = [helper.make_node("Relu", ["y"], [f"s{index}"]) for index in range(3)]
    with pytest.raises(confined.CrashError, match=r"E3450.*node 'the_one' \(GatherND\).*SIG"):
        confined.infer_shapes(model(*nodes, CRASH, *after))


def test_what_takes_too_much_memory_ends():
    with pytest.raises(confined.CrashError, match="E3451"):
        confined.infer_shapes(model(MANY))


def test_what_does_not_end_is_ended(monkeypatch):
    def endless(task, question):
        while True:
            pass

    monkeypatch.setattr(process, "_answer", endless)
    with pytest.raises(confined.CrashError, match=r"E3450.*takes too long"):
        confined.infer_shapes(model(GOOD))


def test_one_child_serves_all_calls_and_is_replaced_when_it_dies(monkeypatch):
    monkeypatch.setattr(process, "LARGE", 1 << 50)  # however large the process of the tests is by now
    confined.infer_shapes(model(GOOD))
    first = child()
    with process.guarded():
        confined.infer_shapes(model(GOOD))
        assert child() == first != 0
        with pytest.raises(confined.CrashError):
            confined.infer_shapes(model(CRASH))
        assert confined.infer_shapes(model(GOOD)).graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
        assert child() != first
    assert child() != 0


@pytest.mark.parametrize(("name", "value"), [("LARGE", 0), ("CALLS", 2)])
def test_the_child_of_a_large_process_or_of_many_calls_is_gone_behind_a_block(monkeypatch, name, value):
    monkeypatch.setattr(process, name, value)
    with process.guarded():
        confined.infer_shapes(model(GOOD))
        last = child()
        confined.infer_shapes(model(GOOD))
        assert child() == last
    assert child() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


def test_the_child_ends_with_its_parent(tmp_path):
    pid = os.fork()
    if not pid:
        confined.infer_shapes(model(GOOD))
        (tmp_path / "pid").write_text(str(child()))
        os._exit(0)
    os.waitpid(pid, 0)
    orphan = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running(orphan):
        time.sleep(0.01)
    assert not running(orphan)


def test_an_interrupted_question_is_not_answered_later(monkeypatch):
    """The answer to it must not be taken for that to the next."""
    with process.guarded():
        original = process._receive

        def interrupted(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(process, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            confined.infer_shapes(model(GOOD))
        monkeypatch.setattr(process, "_receive", original)
        asked = model(helper.make_node("Flatten", ["x"], ["y"]))
        assert confined.infer_shapes(asked) == onnx.shape_inference.infer_shapes(asked)


def test_a_process_does_not_use_its_parents_child():
    with process.guarded():
        confined.infer_shapes(model(GOOD))
        mine = child()
        pid = os.fork()
        if not pid:
            found = confined.infer_shapes(model(GOOD)).graph.output[0].name
            os._exit(0 if found == "r" and child() != mine else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert confined.infer_shapes(model(GOOD)).graph.output[0].name == "r"


def test_the_child_has_none_of_the_parents_files(tmp_path):
    """A socket or a serial line must not stay open for its sake."""
    with (tmp_path / "file").open("w"), process.guarded():
        confined.infer_shapes(model(GOOD))
        opened = {os.readlink(f"/proc/{child()}/fd/{name}") for name in os.listdir(f"/proc/{child()}/fd")}
    assert not any(str(tmp_path) in name for name in opened)


def test_constants_are_computed_in_the_child(monkeypatch):
    node = helper.make_node("Relu", ["x"], ["y"])
    monkeypatch.setattr(hostconfined, "_computed", lambda *question: [os.getpid()])
    with process.guarded():
        assert hostconfined.computed(node, 18, [np.ones(1, np.float32)]) == [child()] != [os.getpid()]
    monkeypatch.setattr(hostconfined, "_computed", lambda *question: os.abort())
    process._current().close()  # the next child knows of it
    with pytest.raises(RuntimeError, match=r"its computation crashes \(SIGABRT\)"):
        hostconfined.computed(node, 18, [np.ones(1, np.float32)])


def test_constants_are_computed_there():
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(hostconfined.computed(node, 18, [x, np.array([2, 0])])[0], x[:, [2, 0]])
    with pytest.raises(hostconfined.RefusedError):
        hostconfined.computed(node, 18, [x, np.array([9])])
