"""Constants of a model are computed in the worker, and what goes wrong there is an error."""

import os

import numpy as np
import pytest
from onnx import helper

from onnxhw import worker
from onnxhw.hostops import in_worker

pytestmark = pytest.mark.skipif(not worker.FORKS, reason="this system has no worker for it")


@pytest.fixture(autouse=True)
def own_child():
    """A worker that knows what a test has changed, and that no other test meets."""
    worker._current().close()
    yield
    worker._current().close()


def test_constants_are_computed_in_the_child(monkeypatch):
    node = helper.make_node("Relu", ["x"], ["y"])
    monkeypatch.setattr(in_worker, "_computed", lambda *question: [os.getpid()])
    with worker.worker_scope():
        assert in_worker.computed(node, 18, [np.ones(1, np.float32)]) == [worker._current().pid] != [os.getpid()]
    monkeypatch.setattr(in_worker, "_computed", lambda *question: os.abort())
    worker._current().close()  # the next child knows of it
    with pytest.raises(RuntimeError, match=r"its computation crashes \(SIGABRT\)"):
        in_worker.computed(node, 18, [np.ones(1, np.float32)])


def test_constants_are_computed_there():
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(in_worker.computed(node, 18, [x, np.array([2, 0])])[0], x[:, [2, 0]])
    with pytest.raises(in_worker.RefusedError):
        in_worker.computed(node, 18, [x, np.array([9])])
