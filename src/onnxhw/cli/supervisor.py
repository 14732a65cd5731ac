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


def supervised(command: "Callable[[], int]") -> int:
    """The exit status of `command`, run in a child process; in the child this does not return.

    130 if a signal ended it, which is said on stderr; errors E1950 and E2950 if it crashed or the system ended it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    life, alive = os.pipe()
    files, made = os.pipe()
    child = os.fork()
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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if not os.WIFSIGNALED(status):
        status = os.WEXITSTATUS(status)
    else:
        _remove(files)
        ended = os.WTERMSIG(status)
        status = STATUS if interrupted or ended in SIGNALS else _crashed(ended)
    if status == STATUS:
        _say(INTERRUPTED)
    return status


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
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _end(child: int) -> None:
    """Kill the child and all that it has started."""
    for process in [child, *_descendants(child)]:
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
    """Remove the temporary files that a killed command had made and not yet put anywhere."""
    import shutil

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
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)


def _crashed(number: int) -> int:
    """Say that the command crashed, or that the system ended it; its status."""
    from ..errors import InternalError, OnnxhwError, UsageError
    from .output import Output

    name = signal.Signals(number).name
    error: OnnxhwError
    if number == signal.SIGKILL:
        what = f"the system ended the command ({name}), most likely for lack of memory"
        error = UsageError("E2950", what, hint="close other programs, or raise the memory limit of this one")
    else:
        what = f"the command crashed in native code ({name})"
        error = InternalError("E1950", what, hint="this is a bug: please report it with the model")
    Output(json="--json" in sys.argv).error(error)
    return error.exit_status


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
