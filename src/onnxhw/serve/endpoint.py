"""Where a client finds the simulated board: `Endpoint`, and the pseudo-terminal."""

import contextlib
import errno
import fcntl
import os
import select
import struct
import time
import tty
from pathlib import Path
from typing import Protocol

from ..driver.simulated_time import find
from ..errors import UsageError

PORTION = 4096
"""Most bytes that are read or written at once."""


class Endpoint(Protocol):
    """One client at a time; the next may come when it has gone.

    `address` is what a driver opens; `sessions` counts the clients so far.
    """

    address: str
    sessions: int

    @property
    def connected(self) -> bool:
        """There is a client."""

    def receive(self, timeout: float, most: int = PORTION) -> bytes:
        """At most `most` bytes of the client; waits at most `timeout` seconds. Notices who comes and goes."""

    def send(self, data: bytes) -> int:
        """Hand bytes to the client, without waiting: how many it takes. Without a client they are lost, all."""

    def note_activity(self) -> None:
        """The board works for the client: it is not idle."""

    def baud(self) -> int | None:
        """The line speed that the client has set; None if that is not known here."""

    def close(self) -> None:
        """Let go of the client and the address."""


_TCGETS2 = 0x802C542A
"""ioctl of Linux: settings of a terminal with its speeds as numbers (``struct termios2``)."""


class PtyEndpoint:
    """A pseudo-terminal, which pyserial opens like any serial port.

    Parameters
    ----------
    link : a symbolic link to the terminal, whose own name (``/dev/pts/5``) is another one each time.

    Errors: `UsageError` E2583 if the link cannot be made, E2584 if the system has no pseudo-terminals left.
    """

    def __init__(self, link: Path | None = None) -> None:
        try:
            self._master, slave = os.openpty()
        except OSError as error:
            raise UsageError("E2584", f"no pseudo-terminal: {error.strerror}", hint="use --tcp") from error
        self.address = os.ttyname(slave)
        # The slave's end is the client's: while nobody has it open, poll says so (POLLHUP).
        tty.setraw(slave)
        os.close(slave)
        os.set_blocking(self._master, False)
        self._poll = select.poll()
        self._poll.register(self._master, select.POLLIN)
        self._connected, self.sessions = False, 0
        self.link = link
        if link is not None:
            try:
                self._make_link(link)
            except BaseException:
                os.close(self._master)
                raise

    def _make_link(self, link: Path) -> None:
        if link.is_symlink():
            other = find(str(link))
            if other is not None:
                other.close()
                what = "the link belongs to a simulated board that is running"
                raise UsageError("E2583", what, where=str(link), hint="stop it, or choose another name")
            if not os.readlink(link).startswith("/dev/pts/"):
                raise UsageError("E2583", "the link points elsewhere", where=str(link), hint="choose another name")
            link.unlink()
        try:
            link.symlink_to(self.address)
        except OSError as error:
            what = f"the link cannot be made: {error.strerror}"
            raise UsageError("E2583", what, where=str(link), hint="choose another name") from error

    @property
    def connected(self) -> bool:
        """Someone has the terminal open."""
        return self._connected

    def receive(self, timeout: float, most: int = PORTION) -> bytes:
        events = dict(self._poll.poll(1000 * timeout)).get(self._master, 0)
        if events & select.POLLIN and most:
            with contextlib.suppress(BlockingIOError):
                try:
                    data = os.read(self._master, most)
                    self._notice(connected=True)
                    return data
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
        if events & select.POLLHUP:
            self._notice(connected=False)
            time.sleep(timeout)  # poll returns at once as long as nobody has the terminal open
        else:
            self._notice(connected=True)
        return b""

    def _notice(self, *, connected: bool) -> None:
        if connected and not self._connected:
            self.sessions += 1
        elif self._connected and not connected:
            tty.setraw(self._master)  # the next client need not be pyserial
        self._connected = connected

    def send(self, data: bytes) -> int:
        if not self._connected:
            return len(data)
        try:
            return os.write(self._master, data[:PORTION])
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def note_activity(self) -> None:
        """Nothing: whoever has the terminal open keeps it."""

    def baud(self) -> int | None:
        try:
            settings = fcntl.ioctl(self._master, _TCGETS2, bytes(44))
        except OSError:
            return None
        speed: int = struct.unpack("=4I20s2I", settings)[6]
        return speed or None

    def close(self) -> None:
        if self.link is not None and self.link.is_symlink() and os.readlink(self.link) == self.address:
            self.link.unlink()
        os.close(self._master)
