"""The worker: how long it lives, what ends it, and what it must not have of its parent."""

import os
import time
from functools import partial
from pathlib import Path

import pytest

from onnxhw import worker

pytestmark = pytest.mark.skipif(not worker.FORKS, reason="this system has no worker")


@pytest.fixture(autouse=True)
def own_child():
    """A worker that knows what a test has changed, and that no other test meets."""
    worker._current().close()
    yield
    worker._current().close()


def echo(data):
    return data


def joined(first, data):
    return first + data


def fail(data):
    raise ValueError("an error of its own")


def allocate(data):
    return bytes(worker.memory_of(len(data)) + 1)


def crash(data):
    os.abort()


def child():
    return worker._current().pid


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_what_does_not_end_is_ended(monkeypatch):
    def endless(task, question, bounded):
        while True:
            pass

    monkeypatch.setattr(worker, "_answer", endless)
    with pytest.raises(worker.WorkerDiedError, match="takes too long"):
        worker.call_in_worker(echo, b"")


def test_the_answer_is_the_tasks_and_so_is_its_error():
    assert worker.call_in_worker(echo, b"r") == b"r"
    assert worker.call_in_worker(partial(joined, b"a"), b"b") == b"ab"
    with pytest.raises(worker.TaskFailedError, match="of its own"):
        worker.call_in_worker(fail, b"")
    with pytest.raises(MemoryError):
        worker.call_in_worker(allocate, b"")
    with pytest.raises(worker.WorkerDiedError, match=r"crashes \(SIGABRT\)"):
        worker.call_in_worker(crash, b"")


def test_one_child_serves_all_calls_and_is_replaced_when_it_dies(monkeypatch):
    monkeypatch.setattr(worker, "LARGE", 1 << 50)  # however large the process of the tests is by now
    worker.call_in_worker(echo, b"r")
    first = child()
    with worker.worker_scope():
        worker.call_in_worker(echo, b"r")
        assert child() == first != 0
        with pytest.raises(worker.WorkerDiedError):
            worker.call_in_worker(crash, b"")
        assert worker.call_in_worker(echo, b"r") == b"r"
        assert child() != first
    assert child() != 0


@pytest.mark.parametrize(("name", "value"), [("LARGE", 0), ("CALLS", 2)])
def test_the_child_of_a_large_process_or_of_many_calls_is_gone_behind_a_block(monkeypatch, name, value):
    monkeypatch.setattr(worker, name, value)
    with worker.worker_scope():
        worker.call_in_worker(echo, b"r")
        last = child()
        worker.call_in_worker(echo, b"r")
        assert child() == last
    assert child() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


def test_the_child_ends_with_its_parent(tmp_path):
    pid = os.fork()
    if not pid:
        worker.call_in_worker(echo, b"r")
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
    with worker.worker_scope():
        original = worker._receive

        def interrupted(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(worker, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.call_in_worker(echo, b"the first")
        monkeypatch.setattr(worker, "_receive", original)
        assert worker.call_in_worker(echo, b"the next") == b"the next"


def test_a_process_does_not_use_its_parents_child():
    with worker.worker_scope():
        worker.call_in_worker(echo, b"r")
        mine = child()
        pid = os.fork()
        if not pid:
            os._exit(0 if worker.call_in_worker(echo, b"r") == b"r" and child() != mine else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert worker.call_in_worker(echo, b"r") == b"r"


def test_the_child_has_none_of_the_parents_files(tmp_path):
    """A socket or a serial line must not stay open for its sake."""
    with (tmp_path / "file").open("w"), worker.worker_scope():
        worker.call_in_worker(echo, b"r")
        opened = {os.readlink(f"/proc/{child()}/fd/{name}") for name in os.listdir(f"/proc/{child()}/fd")}
    assert not any(str(tmp_path) in name for name in opened)
