"""The command line: one file per command; nothing heavy is imported before a command runs.

This file and the package's own import hardly anything: few interrupts come before `main` can answer them.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = ["main"]

INTERRUPTED = "interrupted; nothing was written half\n"


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run a command line (default: the process's own) and return its exit status; messages have been printed.

    The process's own runs in a child, see `supervisor`; not on Windows, nor with ONNXHW_DEBUG, for debuggers.
    """
    try:
        import signal

        ours = arguments is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, _end)
        if arguments is None and hasattr(os, "fork") and not os.environ.get("ONNXHW_DEBUG"):
            from .common.supervisor import supervised

            status = supervised(_command)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # no traceback out of what ends the interpreter
            return status
        from .app import run

        status = run(arguments)
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback out of what ends the interpreter
        return status
    except KeyboardInterrupt:
        import signal  # it may be this import that was interrupted

        if arguments is None:  # the process has nothing left to do but to end
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        exec("")  # CPython ends by the signal, not with a status, if the last text that it executed was interrupted
        sys.stderr.write(INTERRUPTED)
        return 130


def _command() -> int:
    """The process's own command line; 130 if interrupted, which the supervisor says."""
    try:
        from .app import run
        from .common.streams import forgiving

        with forgiving():
            return run()
    except KeyboardInterrupt:
        exec("")  # see `main`
        return 130


def _end(number: int, frame: "FrameType | None") -> None:
    """No command has begun, and an exception in the middle of an import may get lost or be taken for its failure."""
    os.write(2, INTERRUPTED.encode())
    os._exit(130)
