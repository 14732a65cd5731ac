"""The command line: one file per command; nothing heavy is imported before a command runs."""

import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit status; messages have been printed."""
    try:
        from .app import run  # only here: an interrupt while it is imported ends like any other

        return run(arguments)
    except KeyboardInterrupt:
        if arguments is None:  # the process has nothing left to do but to end
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        exec("")  # CPython ends by the signal, not with a status, if the last text that it executed was interrupted
        sys.stderr.write("interrupted; nothing was written half\n")
        return 130
