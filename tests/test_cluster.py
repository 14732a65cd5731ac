"""The pool: results in the order of asking, errors of tasks, workers that die, a scheduler that goes away."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from onnxhw import cluster
from onnxhw.cluster import SerialPool, pool
from onnxhw.errors import DoesNotFitError, ToolError, UsageError


def square(number):
    return number * number


def scaled(shared, number):
    return shared["factor"] * number


def refused(number):
    raise DoesNotFitError("E5101", f"too large: {number}")


def killed_once(flag, number):
    """Kills its worker the first time."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return number
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def workers():
    pytest.importorskip("distributed")
    with pool(2) as found:
        yield found


@pytest.fixture(params=["serial", "cluster"])
def either(request):
    return SerialPool() if request.param == "serial" else request.getfixturevalue("workers")


def test_results_and_what_is_done_with_them(either):
    seen = []
    waiting = [either.submit(square, number, done=seen.append) for number in range(20)]
    assert [wait() for wait in waiting] == [number**2 for number in range(20)]
    assert set(seen) == {number**2 for number in range(20)}


def test_what_is_shared_comes_as_it_is(either):
    shared = either.share({"factor": 3})
    assert [wait() for wait in [either.submit(scaled, shared, number) for number in (1, 2)]] == [3, 6]


def test_an_error_of_a_task_is_raised_where_it_is_waited_for(either):
    wait = either.submit(refused, 7)
    with pytest.raises(DoesNotFitError, match="too large: 7") as caught:
        wait()
    assert caught.value.code == "E5101"


def test_an_error_of_what_is_done_is_raised_there_too(either):
    def full(result):
        raise UsageError("E2803", "no room")

    wait = either.submit(square, 2, done=full)
    with pytest.raises(UsageError, match="no room"):
        wait()


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_a_worker_that_dies_loses_nothing(workers, tmp_path):
    waiting = [workers.submit(killed_once, str(tmp_path / "flag"), number) for number in range(6)]
    assert [wait() for wait in waiting] == list(range(6))
    assert (tmp_path / "flag").exists()


def test_closing_hides_nothing_and_leaves_no_worker(monkeypatch):
    """On a busy machine Dask's closing takes longer than it may."""
    distributed = pytest.importorskip("distributed")

    def late(self, timeout=None):
        raise TimeoutError(f"timed out after {timeout} s.")

    with monkeypatch.context() as patched:
        for kind in (distributed.Client, distributed.LocalCluster):
            patched.setattr(kind, "close", late)
        with pytest.raises(KeyboardInterrupt), pool(1) as found:
            client, (nanny,) = found.client, found.client.cluster.workers.values()
            number = found.submit(os.getpid)()
            found.submit(time.sleep, 600)
            raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):  # active_children may name it yet: Dask's thread may have waited for it
        os.kill(number, 0)
    time.sleep(0.5)  # in which a nanny would start another
    assert not nanny.pid
    client.close(timeout=5)
    client.cluster.close(timeout=5)


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize("late", ["client", "local", ""])
def test_all_is_closed_whatever_closing_raises(monkeypatch, error, late):
    """People interrupt it again."""
    closed = []

    def opened(name):
        def close(timeout):
            closed.append(name)
            if name == late:
                raise error

        return SimpleNamespace(close=close, workers={})

    library = SimpleNamespace(LocalCluster=lambda **_: opened("local"), Client=lambda _: opened("client"))
    monkeypatch.setattr(cluster, "_distributed", lambda: library)
    interrupted = pytest.raises(error) if late and error is KeyboardInterrupt else nullcontext()
    with interrupted, pool(1):
        pass
    with pytest.raises(error if late and error is KeyboardInterrupt else ToolError), pool(1):
        raise cluster.lost()
    assert closed == ["client", "local"] * 2


def test_no_scheduler_is_an_error(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT", 0.2)
    with pytest.raises(ToolError) as caught, pool(scheduler="tcp://127.0.0.1:9"):
        pass
    assert caught.value.code == "E7110"


def test_a_scheduler_that_goes_away_is_an_error(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT", 1)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local:
        with pytest.raises(ToolError) as caught, pool(scheduler=local.scheduler_address) as found:
            assert found.submit(square, 3)() == 9
            waiting = found.submit(time.sleep, 60)
            local.loop.add_callback(local.scheduler.close)
            waiting()
        assert caught.value.code == "E7111"


def test_the_number_of_workers_of_a_scheduler_that_is_gone_is_that_error():
    class Gone:
        def nthreads(self):
            raise OSError("Timed out trying to connect")

    with pytest.raises(ToolError) as caught:
        _ = cluster.DaskPool(Gone()).workers
    assert caught.value.code == "E7111"


def test_a_worker_with_another_onnxhw_is_an_error(workers, monkeypatch):
    assert workers.submit(square, 3)() == 9
    monkeypatch.setattr(cluster, "installed", lambda: "another")  # of this process, not of the workers
    with pytest.raises(ToolError) as caught:
        workers.submit(square, 3)()
    assert caught.value.code == "E7114"


def test_a_worker_without_onnxhw_is_that_error_and_is_not_waited_for():
    distributed = pytest.importorskip("distributed")
    absent = "import sys; sys.modules['onnxhw'] = None"
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "preload": [absent]}
    with distributed.LocalCluster(processes=True, **settings) as local:
        address = local.scheduler_address
        with pytest.raises(ToolError, match="a worker has no onnxhw") as caught, pool(scheduler=address):
            pass
        assert caught.value.code == "E7114"


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError) as caught, pool(1):
        pass
    assert (caught.value.code, "onnxhw[explore]" in caught.value.hint) == ("E2192", True)


def test_no_workers_is_this_process():
    with pool(0) as found:
        assert isinstance(found, SerialPool)


def test_a_program_of_the_repository_runs_where_the_worker_is():
    said = cluster.run_script("scripts/fuzz_models.py", ["--count", "3", "--seed", "5", "--outcome"])
    assert sum(json.loads(said)["counts"].values()) == 3
    with pytest.raises(ToolError, match="status 2") as caught:
        cluster.run_script("scripts/fuzz_models.py", ["--no-such-option"])
    assert caught.value.code == "E7113"
    with pytest.raises(ToolError, match="no checkout"):
        cluster.run_script("scripts/absent.py", [])


def test_what_dask_logs_is_left_out(workers):
    """Its client has a level of its own, and a lost connection is a page of traceback there."""
    assert workers.workers
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    assert "distributed.client" in names
    assert not [name for name in names if logging.getLogger(name).isEnabledFor(logging.CRITICAL)]


INTERRUPTED = """
import os, signal, time
from onnxhw.cluster import pool
if __name__ == "__main__":
    with pool(1) as found:
        number = found.submit(os.getpid)()
        os.kill(number, signal.SIGINT)
        time.sleep(1)
        print(found.submit(os.getpid)() == number)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal there")
def test_an_interrupt_is_the_commands_own(tmp_path):
    """Ctrl-C reaches every process of a terminal's command; a worker goes on until the command ends it. In a process of
    its own: one that has lost its worker would wait for long."""
    pytest.importorskip("distributed")
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "interrupted.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("True\n", "")
