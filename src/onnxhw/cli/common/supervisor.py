"""`supervised`: a command in a child of this process, which sees to it that every end is one with a status.

Python answers a signal only between its own instructions, and not at all while it is started or ended. So the command
runs in a child. This process does nothing but wait: it passes signals on, ends what does not end within `PATIENCE`, and
says what happened to a command that crashed in native code. It imports hardly anything.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time

from . import grace_period

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PATIENCE = 1.5
"""Seconds that an interrupted command has for cleaning up; the promise is 2."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = "interrupted; nothing was written half\n"
HALF = "interrupted while it wrote what must be whole: write it again\n"
STATUS = 130
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux's prctl.h: orphans among a process's descendants become its children."""
KEPT = "onnxhw-crash-"
"""How the name of the one temporary file begins that outlives its command."""
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
"""Signals that a process gets for what it does itself."""
ENDINGS = {
    "SIGKILL": (", most likely for lack of memory", "close other programs, or raise the memory limit of this one"),
    "SIGXCPU": (": its processor time is limited", "raise the limit, see ulimit -t"),
}
"""Why the system ends a process by a signal, and what to do."""


class _Wait:
    """What the waiting process does about signals to itself, and about a command that does not end after one."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.since: float | None = None
        """When the first signal came, on the monotonic clock."""
        self.again = self.extended = self.half = False
        self.others: set[int] = set()
        """Processes below this one that are not the command's: children of who was replaced by this one (`exec`)."""

    def passed_on(self, number: int, frame: "FrameType | None") -> None:
        """SIGINT, SIGTERM or SIGHUP."""
        now = time.monotonic()
        if self.since is None:
            self.since = now
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            self.others = {*_descendants(os.getpid())} - {self.child, *_descendants(self.child)}
            _adopt_orphans()
        elif grace_period.asked() and not self.again and now - self.since >= grace_period.ONCE:
            self.again = True
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        _send(self.child, number)

    def over(self, number: int, frame: "FrameType | None") -> None:
        """SIGALRM: the command has had its time, unless it has asked for more."""
        waited, asked = time.monotonic() - (self.since or 0.0), grace_period.asked()
        if (asked and not self.again and waited < asked + PATIENCE) or (self.extended and not asked):
            self.extended = bool(asked)  # once it no longer asks for more it has the usual time to end
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        else:
            self.half = bool(asked)
            _end([self.child])

    def end_orphans(self) -> None:
        """After the command's end: end what it has left behind, if a signal had come."""
        if self.since is not None:
            _end([one for one in _parents().get(os.getpid(), []) if one not in self.others])


def supervised(command: "Callable[[], int]") -> int:
    """The exit status of `command`, run in a child process; in the child this does not return.

    130 if a signal ended it, which is said on stderr; errors E1950 and E2950 if it crashed or the system ended it.
    A signal that this process ignores from its start, as SIGINT in a script's background, is not answered.
    """
    _open_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, as some who start processes do, no status would come
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        grace_period.share()
        life, alive = os.pipe()
        files, made = os.pipe()
        child = os.fork()
    except OSError:  # no process or file is left (`ulimit`): the command may do without a second one
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = command()
        if status == STATUS:
            _say(INTERRUPTED)
        return status
    if not child:
        os.close(alive)
        os.close(files)
        _command(command, life, made)
    os.close(life)
    os.close(made)
    wait = _Wait(child)
    signal.signal(signal.SIGALRM, wait.over)
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, wait.passed_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*SIGNALS, signal.SIGALRM))
    _, status = os.waitpid(child, 0)
    for number in SIGNALS:  # the child's number may be another process's by now
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    wait.end_orphans()
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    status = os.WEXITSTATUS(status) if not ended else STATUS
    if ended or status == STATUS:
        _remove(files)
    if ended and wait.since is None and ended not in SIGNALS:
        return _crashed(ended)
    if status == STATUS:
        _say(HALF if wait.half else INTERRUPTED)
    return status


def _adopt_orphans() -> None:
    """Linux: what the command leaves behind when it ends becomes this process's child, and is ended with the rest."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # only after a signal: it takes long to import

        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def _open_streams() -> None:
    """Standard streams that are closed (`>&-`) go to no device: else the next pipe would be one, and get its text."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode))


def _command(command: "Callable[[], int]", life: int, made: int) -> None:
    """The child: ends as Python does, with its `atexit` functions."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)
    if hasattr(fcntl, "F_SETSIG"):  # Linux: a signal if the parent is killed, for its end of the pipe closes
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGTERM)
        fcntl.fcntl(life, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    fcntl.fcntl(made, fcntl.F_SETFL, os.O_NONBLOCK)

    def heard(event: str, arguments: "tuple[object, ...]") -> None:
        if event in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            with contextlib.suppress(OSError):  # full: thousands of files
                os.write(made, os.fsencode(str(arguments[0])) + b"\0")

    sys.addaudithook(heard)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    status = command()
    for number in SIGNALS:  # the command has ended: nothing is left to be interrupted
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def _leave(number: int, frame: "FrameType | None") -> None:
    """No command has begun, and an exception in the middle of an import may get lost or be taken for its failure."""
    os._exit(STATUS)


def _send(process: int, number: int) -> None:
    with contextlib.suppress(OSError):  # it has ended, or is somebody else's by now, as behind `sudo`
        os.kill(process, number)


def _end(processes: list[int]) -> None:
    """Kill processes and all that they have started, which are stopped first: they might start more meanwhile."""
    stopped: list[int] = []
    new = processes
    while new:
        for process in new:
            _send(process, signal.SIGSTOP)
        stopped += new
        new = [one for process in processes for one in _descendants(process) if one not in stopped]
    for process in stopped:
        _send(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """The process's children and theirs, as /proc tells; none without it."""
    parents, below, left = _parents(), list[int](), [process]
    while left:
        children = parents.get(left.pop(), [])
        below += children
        left += children
    return below


def _parents() -> dict[int, list[int]]:
    """The children of every process that has any; empty without /proc."""
    parents: dict[int, list[int]] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        parents.setdefault(parent, []).append(number)
    return parents


def _remove(files: int) -> None:
    """Remove the temporary files that an ended command had made and not yet put anywhere."""
    os.set_blocking(files, False)
    data = b""
    try:
        while more := os.read(files, 1 << 16):
            data += more
    except BlockingIOError:  # a grandchild still has the other end
        pass
    for name in data.split(b"\0")[:-1]:
        path = os.fsdecode(name)
        if os.path.basename(path).startswith(KEPT):
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil  # hardly ever: it takes long to import

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):  # it is gone, as it mostly is
                os.unlink(path)


def _crashed(number: int) -> int:
    """Say that the command crashed, or that the system ended it; its status."""
    from ...errors import InternalError, OnnxhwError, UsageError
    from ..app import said
    from .output import Output
    from .streams import forgiving

    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        name = f"signal {number}"
    error: OnnxhwError
    if name in CRASHES:
        what = f"the command crashed in native code ({name})"
        error = InternalError("E1950", what, hint="this is a bug: please report it with the model")
    else:
        why, hint = ENDINGS.get(name, ("", "run it again"))
        error = UsageError("E2950", f"the system ended the command ({name}){why}", hint=hint)
    with forgiving():
        return said(Output(json="--json" in sys.argv), error)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
