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

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PATIENCE = 1.5
"""Seconds that an interrupted command has for cleaning up; the promise is 2."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = "interrupted; nothing was written half\n"
STATUS = 130
KEPT = "onnxhw-crash-"
"""How the name of the one temporary file begins that outlives its command."""
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
"""Signals that a process gets for what it does itself."""
ENDINGS = {
    "SIGKILL": (", most likely for lack of memory", "close other programs, or raise the memory limit of this one"),
    "SIGXCPU": (": its processor time is limited", "raise the limit, see ulimit -t"),
}
"""Why the system ends a process by a signal, and what to do."""


def supervised(command: "Callable[[], int]") -> int:
    """The exit status of `command`, run in a child process; in the child this does not return.

    130 if a signal ended it, which is said on stderr; errors E1950 and E2950 if it crashed or the system ended it.
    """
    _open_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, as some who start processes do, no status would come
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
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
    interrupted = False

    def passed_on(number: int, frame: "FrameType | None") -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        _send(child, number)

    signal.signal(signal.SIGALRM, lambda number, frame: _end(child))
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, passed_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*SIGNALS, signal.SIGALRM))
    _, status = os.waitpid(child, 0)
    for number in SIGNALS:  # the child's number may be another process's by now
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    status = os.WEXITSTATUS(status) if not ended else STATUS
    if ended or status == STATUS:
        _remove(files)
    if ended and not interrupted and ended not in SIGNALS:
        return _crashed(ended)
    if status == STATUS:
        _say(INTERRUPTED)
    return status


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


def _end(child: int) -> None:
    """Kill the child and all that it has started, which is stopped first: it might start more meanwhile."""
    stopped: list[int] = []
    new = [child]
    while new:
        for process in new:
            _send(process, signal.SIGSTOP)
        stopped += new
        new = [process for process in _descendants(child) if process not in stopped]
    for process in stopped:
        _send(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """The process's children and theirs, as /proc tells; none without it."""
    parents: dict[int, list[int]] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        parents.setdefault(parent, []).append(number)
    found, left = [], [process]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


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
    from ..errors import InternalError, OnnxhwError, UsageError
    from .app import said
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
