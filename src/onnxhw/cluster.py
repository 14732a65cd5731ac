"""`TaskPool`: where independent tasks run: in this process, in processes of this machine, or on a Dask cluster.

Results are the same wherever they come from, and are taken in the order of asking. A worker that dies loses nothing:
what it had not finished runs elsewhere. Without its scheduler nothing goes on: E7111 says so, and what is done is done.
"""

import hashlib
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from multiprocessing import active_children
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .errors import OnnxhwError, ToolError, UsageError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

DEATHS = 5
"""Workers that may die of one task before it is given up: machines come and go, but a task that kills them all ends."""
CONNECT = 20
"""Seconds to wait for a scheduler to answer, at first and when it has gone."""
TAIL = 15
"""Lines that are shown of what a failed program said."""
SILENT = logging.CRITICAL + 1
"""Dask logs as critical what it could not send when the client ended, with a traceback for each."""
NO_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What workers of this machine run first. A terminal's Ctrl-C goes to all processes of the command: the command ends
its workers itself, and each would show a traceback of its own."""
REINSTALL = "install the same on all workers, and start them again"
"""What to do about E7114."""
AGAIN = 1.0
"""Seconds between two looks at whether the scheduler is still there."""
CLOSING = 2
"""Seconds that a client has to say goodbye."""
ENDING = 10
"""Seconds that the workers of this machine have to end: Dask kills one after 4, and waits 5 more for it."""
KILLED = 5
"""Seconds to wait for workers that were killed then."""


class Waiting(Protocol[T_co]):
    """Waits for a result and returns it; raises what the task has raised."""

    def __call__(self) -> T_co: ...


class TaskPool(Protocol):
    """Runs functions with arguments that can be pickled."""

    @property
    def workers(self) -> int:
        """How many run at a time, as far as is known now."""
        ...

    def share(self, value: T) -> T:
        """Something large that many tasks get: a stand-in to be passed for it, which travels once to each worker."""
        ...

    def submit(
        self, function: Callable[..., T], *arguments: Any, done: Callable[[T], None] | None = None
    ) -> Waiting[T]:
        """Have ``function(*arguments)`` run. `done` gets the result as soon as it is there, perhaps in another thread;
        what it raises is raised by the waiting."""
        ...


class SerialPool:
    """Runs each task when it is waited for, in this process."""

    workers = 1

    def share(self, value: T) -> T:
        """The value."""
        return value

    def submit(
        self, function: Callable[..., T], *arguments: Any, done: Callable[[T], None] | None = None
    ) -> Waiting[T]:
        """As `TaskPool`."""

        def wait() -> T:
            found = function(*arguments)
            if done:
                done(found)
            return found

        return wait


class DaskPool:
    """Runs tasks on a Dask cluster by its client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @property
    def workers(self) -> int:
        """Threads of all workers that are there now: of a scheduler perhaps none. `ToolError` E7111 if it is gone."""
        try:
            return sum(map(int, self.client.nthreads().values()))
        except Exception as error:  # of several kinds, by when it is noticed
            raise lost() from error

    def share(self, value: T) -> T:
        """A task that gives the value: unlike data that are scattered, it runs again when the worker that has it
        dies."""
        found: T = self.client.submit(_same, value, pure=False)
        return found

    def submit(
        self, function: Callable[..., T], *arguments: Any, done: Callable[[T], None] | None = None
    ) -> Waiting[T]:
        """As `TaskPool`."""
        future = self.client.submit(_run, installed(), function, *arguments, pure=False)
        failed, ended = list[BaseException](), threading.Event()

        def note(finished: Any) -> None:
            try:
                if done and finished.status == "finished":
                    done(finished.result())
            except BaseException as error:  # in another thread: nobody else would see it
                failed.append(error)
            finally:
                ended.set()

        future.add_done_callback(note)

        def wait() -> T:
            found: T = self._result(future, ended)
            if done:  # the callback may have failed or not have run yet; `done` of a result twice is that of once
                done(found)
            if failed:
                raise failed[0]
            return found

        return wait

    def _result(self, future: Any, ended: threading.Event) -> Any:
        """Without a time limit of Dask's own, whose end may come together with the result and then raises an error of
        Dask's."""
        from distributed.scheduler import KilledWorker

        while future.status == "pending" and not ended.wait(AGAIN):
            if self.client.status not in ("running", "connecting"):
                raise lost()
        try:
            return future.result()
        except KilledWorker as error:
            what = f"a task has been running on {DEATHS} workers when they died"
            raise ToolError("E7112", what, hint="give the workers more memory; their logs say more") from error
        except OnnxhwError:
            raise
        except Exception as error:
            if future.status in ("cancelled", "lost") or self.client.status != "running":
                raise lost() from error
            raise


def run_script(name: str, words: Sequence[str]) -> str:
    """What a program of this repository (``scripts/fuzz_models.py``) prints, run on the worker from the checkout that
    its onnxhw is of. `ToolError` E7113 if there is no checkout, or if the program ends with another status than 0 or 1,
    with the end of what it said."""
    script = Path(__file__).resolve().parents[2] / name
    if not script.is_file():
        hint = "install onnxhw on the workers from a checkout: pip install -e"
        raise ToolError("E7113", "a worker has no checkout of the repository", where=str(script), hint=hint)
    ran = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):  # 1: it has findings
        tail = "\n".join(ran.stderr.rstrip().splitlines()[-TAIL:])
        raise ToolError("E7113", f"{name} ended with status {ran.returncode}; the end of its output:\n{tail}")
    return ran.stdout


@lru_cache
def installed() -> str:
    """A digest of the package's code, as this process has it."""
    package, state = Path(__file__).parent, hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        state.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()


def _run(code: str, function: Callable[..., T], *arguments: Any) -> T:
    """On a worker: what a task does, if the worker's onnxhw is that of the client (`installed`). Results of another
    would be kept as those of this one."""
    if code != installed():
        what = "a worker has another onnxhw than this one"
        raise ToolError("E7114", what, where=socket.gethostname(), hint=REINSTALL)
    return function(*arguments)


def require_package(client: Any) -> None:
    """`ToolError` E7114 if a worker that is there cannot import onnxhw: what it is given it could not even read, and
    Dask would wait for it. The function is Python's own, so that it can be."""
    try:
        answers = client.run(import_module, __package__, on_error="return")
    except OSError as error:
        raise lost() from error
    for worker, found in answers.items():
        if isinstance(found, Exception):
            raise ToolError("E7114", f"a worker has no onnxhw: {found}", where=worker, hint=REINSTALL)


def _same(value: T) -> T:
    return value


def lost() -> ToolError:
    """E7111: the scheduler is gone."""
    what = "the Dask scheduler is gone"
    return ToolError("E7111", what, hint="start it again and repeat the command: what was kept is not done again")


@contextmanager
def pool(workers: int | None = None, scheduler: str = "", *, dashboard: bool = False) -> Iterator[TaskPool]:
    """A pool for a block.

    Parameters
    ----------
    workers : processes of this machine; None: one for each of its processors; 0: no cluster, all in this process.
    scheduler : address of a Dask scheduler, whose workers there are; `workers` is not looked at.
    dashboard : the local cluster shows its dashboard (port 8787, or another that is free).

    `UsageError` E2192 without Dask, E2193 for a dashboard where there is no local cluster, `ToolError` E7110 if no
    scheduler answers at that address, and E7114 if one of its workers has no onnxhw.
    """
    if dashboard and (scheduler or workers == 0):
        hint = "a scheduler elsewhere shows its own" if scheduler else "give workers"
        raise UsageError("E2193", "a dashboard is shown of the workers of this machine, and there are none", hint=hint)
    if workers == 0 and not scheduler:
        yield SerialPool()
        return
    distributed = _distributed()
    _silence("distributed")
    with _settings(), ExitStack() as ending:  # what is last is closed first, whatever comes of it
        if scheduler:
            try:
                client = distributed.Client(scheduler, timeout=CONNECT)
            except (OSError, ValueError, TypeError) as error:
                what = f"no Dask scheduler answers: {str(error) or type(error).__name__}"
                raise ToolError("E7110", what, where=scheduler, hint="start one: dask scheduler") from error
        else:
            local = distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, processes=True, silence_logs=SILENT,
                dashboard_address=f"127.0.0.1:{8787 if dashboard else 0}", preload=[NO_INTERRUPTS],
            )  # fmt: skip
            ending.callback(_end, local)
            client = distributed.Client(local)
        ending.callback(_close, client, CLOSING)
        if scheduler:
            require_package(client)
        yield DaskPool(client)


def _close(opened: Any, seconds: float) -> None:
    """Close a client or a cluster of Dask's. Whatever fails, as on a busy machine, is left out: it would hide what has
    ended the block."""
    with suppress(Exception):
        opened.close(timeout=seconds)


def _end(local: Any) -> None:
    """Close the cluster of this machine. Workers that are left then are killed, also if an interrupt comes meanwhile:
    Dask gives those up whose end takes longer."""
    nannies = list(local.workers.values())
    for nanny in nannies:
        nanny.close_gracefully()  # it starts no other worker
    numbers = {nanny.pid for nanny in nannies}
    workers = [process for process in active_children() if process.pid in numbers]
    try:
        _close(local, ENDING)
    finally:
        for process in workers:
            process.kill()
        deadline = time.monotonic() + KILLED
        for process in workers:
            process.join(max(0.0, deadline - time.monotonic()))


def _silence(library: str) -> None:
    """Leave out what a library and its modules log, of which some have levels of their own: errors are told as ours."""
    for name in [library, *logging.root.manager.loggerDict]:
        if name == library or name.startswith(f"{library}."):
            logging.getLogger(name).setLevel(SILENT)


@contextmanager
def _settings() -> Iterator[None]:
    import dask

    limits = {"distributed.scheduler.allowed-failures": DEATHS, "distributed.comm.timeouts.connect": f"{CONNECT}s"}
    with dask.config.set(limits):
        yield


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        what = "distributed (Dask) is not installed"
        raise UsageError("E2192", what, hint="pip install 'onnxhw[explore]'") from error
    return distributed
