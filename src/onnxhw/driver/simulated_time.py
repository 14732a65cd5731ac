"""Simulated time: a simulated board publishes its clock, and what talks to it counts its timeouts on that clock.

A simulated board is hundreds of times slower than the board it simulates, by a factor that changes with the machine's
load. So it keeps a small file in `folder()`, named after the address at which it can be reached, in which it counts
its nanoseconds: those of the clock cycles that it has simulated, and while there is nothing to simulate some of ours.
Timeouts on this clock last as long as the simulation needs, and still end if an answer is lost.
"""

import json
import mmap
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .transport import Transport

SIZE = 4096
TEXT = 64
"""The file: at byte 0 nanoseconds, 64 bits in the machine's order; from byte `TEXT` on a `RunningBoard` as JSON."""
STANDSTILL = 20.0
"""Seconds without progress after which our own clock goes on counting: a stopped simulation ends in a timeout."""
SLICE = 0.02
"""Seconds between looks at the simulated clock."""


@dataclass(frozen=True)
class RunningBoard:
    """A running simulated board. `address` is the path of a pseudo-terminal, or ``tcp:HOST:PORT``."""

    address: str
    board: str
    preset: str
    clock_hz: int
    baud: int
    pid: int

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


def folder() -> Path:
    """Where the clocks of this user's simulated boards lie."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"onnxhw-boards-{owner}"


def clock_file(address: str) -> Path | None:
    """The file of the board at an address; None if it cannot be on this machine."""
    if not address.startswith("tcp:"):
        return folder() / os.path.realpath(address).strip("/").replace("/", "-")
    host, _, port = address.removeprefix("tcp:").rpartition(":")
    try:
        local = any(str(entry[4][0]) in ("127.0.0.1", "::1") for entry in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return None
    return folder() / f"tcp-{port}" if local else None


class BoardClock:
    """Reads the clock of a running board; `find` opens it."""

    def __init__(self, view: mmap.mmap, board: RunningBoard) -> None:
        self.board = board
        self._view, self._words = view, memoryview(view).cast("Q")
        self._seen, self._looked, self._moved = self._words[0], time.monotonic(), time.monotonic()
        self._extra = 0.0

    def now(self) -> float:
        """Seconds of the board's clock; never goes back, and goes on if the board stands still for long."""
        ours, count = time.monotonic(), self._words[0]
        if count != self._seen:
            self._seen, self._moved = count, ours
        elif ours - self._moved > STANDSTILL:
            self._extra += ours - max(self._looked, self._moved + STANDSTILL)
        self._looked = ours
        return count * 1e-9 + self._extra

    def close(self) -> None:
        """Release the file."""
        self._words.release()
        self._view.close()


def find(address: str) -> BoardClock | None:
    """The clock of the simulated board at an address; None if no simulated board of this user runs there."""
    path = clock_file(address)
    return None if path is None else _open(path)


def running() -> Iterator[RunningBoard]:
    """The simulated boards of this user that run now."""
    for path in sorted(folder().glob("*")) if folder().is_dir() else ():
        clock = _open(path)
        if clock is not None:
            yield clock.board
            clock.close()


def _open(path: Path) -> BoardClock | None:
    """The clock in a file that belongs to us and whose lock is held: its board is alive."""
    try:
        import fcntl
    except ImportError:  # no such system can run a simulated board
        return None
    try:
        with path.open("r+b") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid() or os.fstat(file.fileno()).st_size != SIZE:
                return None
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                view = mmap.mmap(file.fileno(), SIZE)
        return BoardClock(view, RunningBoard(**json.loads(view[TEXT:].split(b"\n", 1)[0])))
    except (OSError, ValueError, TypeError):
        return None


class PacedTransport:
    """Another transport, with the clock of a simulated board: `now` and the timeouts of `read` count its seconds."""

    def __init__(self, transport: Transport, clock: BoardClock) -> None:
        self.transport, self.clock = transport, clock
        self.baud, self.latency = transport.baud, transport.latency

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def read(self, timeout: float) -> bytes:
        deadline = self.clock.now() + timeout
        while not (data := self.transport.read(SLICE if timeout > 0 else 0.0)) and self.clock.now() < deadline:
            pass
        return data

    def now(self) -> float:
        return self.clock.now()

    def close(self) -> None:
        self.transport.close()
        self.clock.close()


def follow(transport: Transport, address: str) -> Transport:
    """`transport` with the clock of the simulated board at `address`; itself, if there is none."""
    clock = find(address)
    return transport if clock is None else PacedTransport(transport, clock)
