"""Loops on the host: what they stack, and that a long one ends when it is interrupted."""

import os
import signal
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxhw.hostops.evaluator import evaluate
from onnxhw.partition import read

F = np.float32


def _loop(trips: int) -> onnx.ModelProto:
    """``y = trips iterations of v + 1``, and each iteration's number."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["v", "one"], ["w"]), helper.make_node("Identity", ["c"], ["d"]),
             helper.make_node("Identity", ["i"], ["j"])]  # fmt: skip
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", 1, [1])],
        [value("d", TensorProto.BOOL, []), value("w", 1, [1]), value("j", TensorProto.INT64, [])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y", "numbers"], body=body)
    constants = [numpy_helper.from_array(np.array(trips), "trips"), numpy_helper.from_array(np.ones(1, F), "one")]
    ends = [value("y", 1, [1]), value("numbers", TensorProto.INT64, None)]
    graph = helper.make_graph([node], "m", [value("x", 1, [1])], ends, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_values_of_many_iterations_are_stacked_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (3, 7, 100):
        monkeypatch.setattr("onnxhw.hostops.operators.control.STACKED", size)
        found = evaluate(_loop(14), {"x": np.zeros(1, F)})
        assert found["y"].tolist() == [14]
        assert found["numbers"].tolist() == list(range(14))


def test_a_long_loop_is_not_run_by_check_and_ends_when_interrupted() -> None:
    model = _loop(10_000_000)
    assert [row.where for row in read(model).placement] == ["host"]
    evaluate(_loop(1), {"x": np.zeros(1, F)})  # whatever is imported: there an interrupt may be lost, in a callback
    started = time.monotonic()
    interrupt = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(model, {"x": np.zeros(1, F)})
    finally:
        interrupt.cancel()  # should the loop end by itself, no other test is interrupted
    assert time.monotonic() - started < 60  # it would take minutes; the margin is for a loaded machine
