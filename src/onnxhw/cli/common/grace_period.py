"""How long an interrupted command may take: what it tells the process that waits for it (`supervisor`)."""

import mmap
from contextlib import contextmanager

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Iterator

ONCE = 0.5
"""Seconds within which signals count as one: of Ctrl-C the command gets the terminal's and the one passed on."""

_shared: "mmap.mmap | None" = None
"""The whole seconds that the command asks for; both processes have this memory."""


def share() -> None:
    """Make the memory, before the command's process is forked. `OSError` if there is none."""
    global _shared
    _shared = mmap.mmap(-1, mmap.PAGESIZE)


def asked() -> int:
    """The seconds that the command asks for, 0 for the usual time."""
    return int.from_bytes(_shared[:4], "little") if _shared else 0


@contextmanager
def more(seconds: float) -> "Iterator[None]":
    """In the block, a command that gets a signal is killed only after that many seconds, or the usual time after a
    second signal."""
    if _shared is None:
        yield
        return
    _shared[:4] = round(seconds).to_bytes(4, "little")
    try:
        yield
    finally:
        _shared[:4] = bytes(4)
