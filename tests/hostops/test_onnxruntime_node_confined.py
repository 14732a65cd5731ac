"""Kernels that are known to crash run in the worker: the process lives, results and refusals are what they are here."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxhw import worker
from onnxhw.hostops import onnxruntime_node
from onnxhw.hostops.onnxruntime_node import NativeError, NativeNode, NoKernelError

pytestmark = pytest.mark.skipif(not worker.FORKS, reason="this system has no worker for it")
X = np.array([[1.0, -2.0, 3.0]], np.float32)


@pytest.fixture(autouse=True)
def own_child(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker that knows what a test has changed, that no other test meets, and that stays in a large process too."""
    monkeypatch.setattr(worker, "LARGE", sys.maxsize)
    worker._current().close()
    yield
    worker._current().close()


def node(op_type: str, domain: str, inputs: int = 1, **attributes: Any) -> NativeNode:
    names = [f"i{number}" for number in range(inputs)]
    return NativeNode(helper.make_node(op_type, names, ["o"], domain=domain, **attributes), 1 if domain else 17)


def test_a_kernel_runs_elsewhere_and_gives_what_it_gives_here() -> None:
    scaler = node("Scaler", "ai.onnx.ml", offset=[1.0] * 3, scale=[0.5] * 3)
    kinds = (1,)
    (there,), (here,) = scaler.run([X]), scaler.run_here(kinds, [X])
    np.testing.assert_array_equal(there, here)
    assert worker._current().pid
    assert scaler.key in onnxruntime_node._sent
    np.testing.assert_array_equal(scaler.run([X + 1])[0], scaler.run_here(kinds, [X + 1])[0])


def test_other_kernels_do_not() -> None:
    np.testing.assert_array_equal(node("Relu", "").run([X])[0], np.maximum(X, 0))
    assert not worker._current().pid


def test_its_crash_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    original = NativeNode.run_here

    def here(self: NativeNode, kinds: Any, operands: Any) -> Any:
        return original(self, kinds, operands) if operands is None or operands[0][0, 0] < 9 else os.abort()

    monkeypatch.setattr(NativeNode, "run_here", here)
    one = node("Scaler", "ai.onnx.ml", offset=[1.0] * 3, scale=[0.5] * 3)
    with pytest.raises(NativeError, match=r"its kernel crashes \(SIGABRT\)"):
        one.run([X + 9])
    assert one.run([X])[0].shape == (1, 3)


def test_its_refusals_are_the_kernels() -> None:
    with pytest.raises(NativeError, match="dimension"):
        node("FusedMatMul", "com.microsoft", 2).run([np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)])
    with pytest.raises(NoKernelError):
        node("FusedConv", "com.microsoft", 2).run([np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))])


def test_a_run_takes_longer_than_a_reading_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECONDS", 0.05)
    monkeypatch.setattr(worker, "MEMORY", 1 << 20)
    large = np.ones((2000, 2000), np.float32)
    assert node("FusedMatMul", "com.microsoft", 2).run([large, large])[0][0, 0] == 2000
