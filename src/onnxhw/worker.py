"""`call_in_worker`: code that nobody vouches for, in a worker process of bounded memory and time.

Libraries take attributes and constants of a model as indices, sizes and counts without a look at them, so a model can
make them read beyond their memory, abort, allocate without end or loop for ever. In a worker all of that is an error.
The worker is forked when it is first needed, serves calls until this process ends, and is replaced if it dies. That of
a large process, whose memory it would hold, ends with the outermost `worker_scope` block. Where a process cannot fork
(Windows), or not safely (macOS), the code runs in this one.
"""

import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

MEMORY = 512 << 20
"""Address space that a call may take: a model of 100,000 nodes takes 400 MiB with its types."""
PER_BYTE = 8
"""Further address space per byte of the question: a model is read, parsed, inferred and written."""
SECONDS = 1.0
"""Processor time of a call: 10,000 nodes take 0.1 s."""
SECONDS_PER_MIB = 2.0
"""More of it per MiB of the question, for nodes; constants take hardly any."""
WAIT = 20.0
"""Seconds by the clock per second of processor time: a busy machine is not at fault."""
CALLS = 500
"""Calls that a worker serves: what they leave behind in its memory counts against the next."""
LARGE = 512 << 20
"""Bytes of memory of a process whose worker does not stay: it would hold what the process has freed since."""
ANSWER = 64 << 20
"""Bytes of an answer, and `PER_BYTE` per byte of the question."""
FORKS = sys.platform == "linux"
HEAD = struct.Struct("<QQ?")
"""Of a request: bytes of the pickled task and of the question, and whether it is bounded. Of an answer: how it ended,
and bytes."""
DONE, FAILED, MEMORY_ERROR = 0, 1, 2

Task = Callable[[bytes], bytes]
"""A function of a module, which is sent by its name, or a `partial` of one."""


class WorkerDiedError(Exception):
    """The worker is gone; the text says why. `slow`: it took too long."""

    def __init__(self, text: str, slow: bool = False) -> None:
        super().__init__(text)
        self.slow = slow


class TaskFailedError(Exception):
    """The task raised an error; the text is that of the error."""


def call_in_worker(task: Task, question: bytes, bounded: bool = True) -> bytes:
    """What `task` makes of `question`, in the worker; in this process, if it is one.

    What is not `bounded` has the time and memory that it takes: only its end is not this process's.

    `WorkerDiedError` if that ends the worker or takes too long, `TaskFailedError` if it raises an error,
    `MemoryError` if it takes more memory than `memory_of` a question of that size.
    """
    if FORKS and not _serving:
        with worker_scope(), _LOCK:
            status, answer = _current().call(task, question, bounded)
    else:
        status, answer = _answer(task, question)
    if status == MEMORY_ERROR:
        raise MemoryError
    if status == FAILED:
        raise TaskFailedError(answer.decode(errors="replace"))
    return answer


def memory_of(size: int) -> int:
    """Bytes of memory that a task may take for a question of that size."""
    return MEMORY + PER_BYTE * size


@contextmanager
def worker_scope() -> Iterator[None]:
    """One worker for all calls in the block, if it does not stay anyway; a block within a block changes nothing."""
    with _LOCK:
        worker = _current()
        worker.users += 1
    try:
        yield
    finally:
        with _LOCK:
            worker.users -= 1
            if not worker.users and not worker.stays:
                worker.close()


class _Worker:
    """The process, or none yet; `users`: open blocks of `worker_scope`; `calls`: how many it has served."""

    def __init__(self) -> None:
        self.users, self.pid, self.calls = 0, 0, 0
        self._large = False
        self._to = self._from = -1

    @property
    def stays(self) -> bool:
        """Whether it is there for more calls when nobody has asked for it to be."""
        return not self._large and self.calls < CALLS

    def call(self, task: Task, question: bytes, bounded: bool = True) -> tuple[int, bytes]:
        """The status and bytes of an answer; `WorkerDiedError` if there is none."""
        if not self.pid:
            self._start()
        self.calls += bounded
        budget = WAIT * (SECONDS + SECONDS_PER_MIB * len(question) / (1 << 20)) if bounded else None
        whole, name = False, pickle.dumps(task)
        try:
            _send(self._to, HEAD.pack(len(name), len(question), bounded) + name + question)
            deadline = None if budget is None else time.monotonic() + budget
            if not select.select([self._from], [], [], budget)[0]:
                raise WorkerDiedError(f"takes more than {budget:.0f} seconds", slow=True)
            status, size, _ = HEAD.unpack(_receive(self._from, HEAD.size, deadline))
            answer = _receive(self._from, size, deadline)
            whole = True
            return status, answer
        except (BrokenPipeError, EOFError):
            raise self._ending() from None
        finally:
            if not whole:  # an interrupt too: what comes next through the pipe is no answer to the next question
                self.close()

    def _ending(self) -> WorkerDiedError:
        """How the process ended."""
        pid, self.pid = self.pid, 0
        _, status = os.waitpid(pid, 0)
        os.close(self._to)
        os.close(self._from)
        if not os.WIFSIGNALED(status):
            return WorkerDiedError(f"ends its process with status {os.waitstatus_to_exitcode(status)}")
        number = os.WTERMSIG(status)
        if number == signal.SIGPROF:
            return WorkerDiedError("takes too long", slow=True)
        return WorkerDiedError(f"crashes ({signal.Signals(number).name})")

    def close(self) -> None:
        """End the process."""
        if self.pid:
            pid, self.pid = self.pid, 0
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(self._to)
            os.close(self._from)

    def forget(self) -> None:
        """Close the pipes of a process that is another's worker."""
        if self.pid:
            self.pid = 0
            os.close(self._to)
            os.close(self._from)

    def _start(self) -> None:
        self.calls, self._large = 0, _memory()[1] > LARGE
        requests, self._to = os.pipe()
        self._from, answers = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: it runs nothing that they may hold
            self.pid = os.fork()
        if not self.pid:
            _serve(requests, answers)
        os.close(requests)
        os.close(answers)


_LOCK = threading.RLock()
_workers: list[_Worker] = []
_serving = False
"""Is this process such a worker?"""


def _forked() -> None:
    """In a process that was forked, maybe while another thread was in here: the worker is the parent's."""
    global _LOCK
    _LOCK = threading.RLock()
    for worker in _workers:
        worker.forget()
    _workers.clear()


if FORKS:
    os.register_at_fork(after_in_child=_forked)


def _current() -> _Worker:
    """This process's worker."""
    if not _workers:
        _workers.append(_Worker())
    return _workers[-1]


def _send(to: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(to, rest) :]


def _receive(source: int, size: int, deadline: float | None = None) -> bytes:
    """So many bytes; `EOFError` if they do not come."""
    data = bytearray()
    while len(data) < size:
        if deadline is not None and not select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise EOFError
        more = os.read(source, min(size - len(data), 1 << 20))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def _serve(requests: int, answers: int) -> NoReturn:
    """The worker: answers until the pipe closes; nothing of the parent's is open here, and nothing of it runs."""
    import resource as limits  # not on Windows

    global _serving
    _serving = True
    try:
        for caught in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
            signal.signal(caught, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent answers it, and ends this process
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        low, high = sorted((requests, answers))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, min(limits.getrlimit(limits.RLIMIT_NOFILE)[0], 1 << 16))
        limits.setrlimit(limits.RLIMIT_CORE, (0, 0))
        (space, _), given = _memory(), limits.getrlimit(limits.RLIMIT_AS)
        while True:
            name, size, bounded = HEAD.unpack(_receive(requests, HEAD.size))
            task, question = _receive(requests, name), _receive(requests, size)
            if not bounded:
                limits.setrlimit(limits.RLIMIT_AS, given)
            elif space:
                _bound(limits.RLIMIT_AS, space + memory_of(size))
            signal.setitimer(signal.ITIMER_PROF, SECONDS + SECONDS_PER_MIB * size / (1 << 20) if bounded else 0)
            status, answer = _answer(partial(_named, task), question, bounded)
            signal.setitimer(signal.ITIMER_PROF, 0)
            _send(answers, HEAD.pack(status, len(answer), bounded) + answer)
            del question, answer
    finally:
        os._exit(0)


def _named(name: bytes, question: bytes) -> bytes:
    """The answer of a task that came pickled."""
    answer: bytes = pickle.loads(name)(question)
    return answer


def _answer(task: Task, question: bytes, bounded: bool = True) -> tuple[int, bytes]:
    try:
        answer = task(question)
    except MemoryError:
        return MEMORY_ERROR, b""
    except Exception as error:
        return FAILED, str(error).encode(errors="replace")
    too_large = bounded and len(answer) > ANSWER + PER_BYTE * len(question)
    return (MEMORY_ERROR, b"") if too_large else (DONE, answer)


def _memory() -> tuple[int, int]:
    """Bytes of this process's address space, and of memory; 0 where there is no /proc, and then no bound on it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            space, resident, *_ = file.read().split()
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(space) * page, int(resident) * page


def _bound(what: int, soft: int) -> None:
    """Set a soft limit, nowhere above the hard one."""
    import resource as limits

    _, hard = limits.getrlimit(what)
    limits.setrlimit(what, (soft if hard == limits.RLIM_INFINITY else min(soft, hard), hard))
