"""A model of a device behind a pseudo-terminal."""

import contextlib
import os
import select
import termios
import threading
import tty


class PtyBoard:
    """A model behind a pseudo-terminal; it hears nothing unless the line is at `speed`, if that is given."""

    def __init__(self, model, speed=None) -> None:
        self.model, self.speed = model, speed
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                ready, _, _ = select.select([self.master], [], [], 0.002)
                data = os.read(self.master, 4096) if ready else b""
                if self.speed is not None and termios.tcgetattr(self.slave)[4] != self.speed:
                    continue
                out = self.model.exchange(data) if self.model else b""
                if out:
                    os.write(self.master, out)

    def unplug(self) -> None:
        """Both ends are gone."""
        self._over.set()
        self._thread.join()
        for end in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(end)
