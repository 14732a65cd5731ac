"""A model of a device behind a pseudo-terminal, and the time in which nothing happens on its line."""

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import tty

from onnxhw.driver.transport import SerialTransport

SLICE = 0.002
"""Seconds for which a board waits for bytes at a time."""


class PtyBoard:
    """A model behind a pseudo-terminal; it hears nothing unless the line is at `speed`, if that is given."""

    def __init__(self, model, speed=None) -> None:
        self.model, self.speed, self.idle = model, speed, 0.0
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                ready, _, _ = select.select([self.master], [], [], SLICE)
                data = os.read(self.master, 4096) if ready else b""
                if not ready and not self._unread():
                    self.idle += SLICE
                if self.speed is not None and termios.tcgetattr(self.slave)[4] != self.speed:
                    continue
                out = self.model.exchange(data) if self.model else b""
                if out:
                    os.write(self.master, out)

    def _unread(self) -> int:
        """Bytes that its client has not taken yet."""
        return struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, bytes(4)))[0]

    def unplug(self) -> None:
        """Both ends are gone."""
        self._over.set()
        self._thread.join()
        for end in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(end)


def count_idle_time(monkeypatch, boards) -> None:
    """Serial ports of these boards (a list that may grow) count only seconds in which nothing is under way: a busy
    machine, on which an answer takes long, does not make it late."""
    monkeypatch.setattr(
        SerialTransport, "now", lambda line: next(board.idle for board in boards if board.path == line.port)
    )
