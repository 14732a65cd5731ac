"""Output that cannot be written: messages are dropped, a result that nobody reads ends the command as a pipe does."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

CLOSED = 141
"""The exit status of a command whose reader goes away, as `head` does: 128 and the number of SIGPIPE, as of other
commands. What it still had to do was not done."""


class _Forgiving:
    """A stream to which writing never fails: once it does, what comes is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """The number of characters, written or not."""
        try:
            self._stream.write(text)
        except OSError:
            self._drop()
        return len(text)

    def flush(self) -> None:
        """Write what is left, if that can be done."""
        try:
            self._stream.flush()
        except OSError:
            self._drop()

    def _drop(self) -> None:
        to_nowhere(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def forgiving() -> Iterator[None]:
    """In the block, messages that stderr does not take (a full device, a reader that went away) are dropped: they must
    not decide how a command ends."""
    before = sys.stderr
    wrapped: Any = _Forgiving(before)
    sys.stderr = wrapped
    try:
        yield
    finally:
        wrapped.flush()
        sys.stderr = before


def to_nowhere(stream: TextIO) -> None:
    """What is still in the stream's buffer, and what comes, goes to no device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unread(stream: TextIO) -> bool:
    """Whether the stream's reader went away, as `| head` does; True where the system cannot be asked.

    The system knows: a pipe without a reader, or a socket whose other end is closed, reports it for its own end.
    """
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except (OSError, ValueError):  # no file of the system
        return False
    return bool(poll.poll(0))  # errors and hang-ups are reported unasked, and only these
