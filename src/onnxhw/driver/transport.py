"""How bytes reach a device: a serial port or a simulated line (`network` has TCP). Nothing above knows which."""

import contextlib
import os
import time
from typing import Any, Protocol

from ..errors import LinkError, ToolError
from .faults import NoPermissionError, PortBusyError, UnpluggedError

try:
    import termios

    _TERMINAL_ERRORS: tuple[type[Exception], ...] = (termios.error,)
except ImportError:  # Windows
    _TERMINAL_ERRORS = ()


BREAK = 0.1
"""Seconds of a break: three times what a device waits for, for operating systems count roughly."""


class Transport(Protocol):
    """Bytes to and from a device, on a clock of its own (a simulated line is slow in our time, not in its own).

    `baud` is the line's speed and `latency` the seconds that a byte may take beyond its time on the line.
    """

    baud: int
    latency: float

    def write(self, data: bytes) -> None:
        """Send bytes; may return before they are on the line."""

    def read(self, timeout: float) -> bytes:
        """The bytes that have arrived; waits at most `timeout` seconds for the first, then returns b""."""

    def now(self) -> float:
        """Seconds on the transport's clock."""

    def close(self) -> None:
        """Release the line."""


class SerialTransport:
    """A serial port, opened exclusively, through pyserial.

    Parameters
    ----------
    port : "/dev/ttyUSB0", "COM3", or a pseudo-terminal of a simulated board.
    timeout_scale : how many of our seconds are one of the device's: its clock runs that much slower than it says, as
        a simulated board's does. Every wait is longer by this factor.

    Errors: `ToolError` E7301 if pyserial is missing; `NoPermissionError` E9150, `PortBusyError` E9151 or `LinkError`
    E9101 if the port cannot be opened, E9152 if it has no such speed; `UnpluggedError` E9102 if it fails later.
    """

    latency = 0.1
    WRITE_TIMEOUT = 5.0
    """Seconds in which the port must take the bytes of a write."""

    def __init__(self, port: str, baud: int = 1_000_000, timeout_scale: float = 1.0) -> None:
        try:
            import serial
        except ImportError:
            raise ToolError(
                "E7301", "talking to a serial port needs pyserial", hint="pip install 'onnxhw[host]'"
            ) from None
        self.port, self.baud, self.timeout_scale = port, baud, timeout_scale
        self._failures = (serial.SerialException, OSError, ValueError, TypeError, *_TERMINAL_ERRORS)
        try:
            self._serial: Any = serial.Serial(
                port, baud, timeout=0, write_timeout=self.WRITE_TIMEOUT * timeout_scale, exclusive=True
            )
        except self._failures as error:
            raise _not_opened(port, baud, error) from error
        try:
            self._lock_others_out()
            self._serial.reset_input_buffer()
        except self._failures as error:
            self._serial.close()
            raise self._lost(error) from error

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except self._failures as error:
            raise self._lost(error) from error

    def read(self, timeout: float) -> bytes:
        try:
            self._serial.timeout = max(0.0, timeout * self.timeout_scale)
            first: bytes = self._serial.read(1)
            self._serial.timeout = 0
            return first + bytes(self._serial.read(4096)) if first else b""
        except self._failures as error:
            raise self._lost(error) from error

    def now(self) -> float:
        return time.monotonic() / self.timeout_scale

    def set_baud(self, baud: int) -> None:
        """Go on at another speed; what has arrived is dropped. `LinkError` E9152 if the port has no such speed."""
        try:
            self._serial.baudrate = baud
            self._serial.reset_input_buffer()
        except self._failures as error:
            raise _no_speed(self.port, baud, error) from error
        self.baud = baud

    def send_break(self) -> None:
        """Hold the line low, which asks the device for its next rate; what has arrived is dropped."""
        try:
            self._serial.send_break(BREAK)
            self._serial.reset_input_buffer()
        except self._failures as error:
            raise self._lost(error) from error

    def close(self) -> None:
        with contextlib.suppress(*self._failures):  # closing an unplugged port may fail, and is done all the same
            self._serial.close()

    def _lock_others_out(self) -> None:
        """Beside pyserial's advisory lock: opening fails for programs that know no locks, and USB answers at once.

        A pseudo-terminal keeps the first mark after a crash for as long as its other end lives, so it gets none.
        """
        if os.name != "posix" or os.path.realpath(self.port).startswith("/dev/pts/"):
            return
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.ioctl(self._serial.fileno(), termios.TIOCEXCL)
        with contextlib.suppress(Exception):  # an adapter without this setting is slower, not wrong
            self._serial.set_low_latency_mode(True)

    def _lost(self, error: Exception) -> LinkError:
        hint = "is the board still plugged in?"
        return UnpluggedError("E9102", f"the port failed: {error}", where=self.port, hint=hint)


PORTS_HINT = "is the board plugged in? `onnxhw devices` shows the ports there are"


def _not_opened(port: str, baud: int, error: Exception) -> LinkError:
    """Why a port could not be opened, and what to do."""
    text = str(error).lower()
    if "permission" in text or "access is denied" in text:
        return NoPermissionError("E9150", "no permission to open the port", where=port, hint=permission_hint(port))
    if "lock" in text or "busy" in text or "temporarily unavailable" in text:
        hint = "close it (`fuser -v PORT` names it on Linux)"
        return PortBusyError("E9151", "another program uses the port", where=port, hint=hint)
    if "inappropriate ioctl" in text:
        return LinkError("E9101", "cannot open: it is no serial port", where=port, hint=PORTS_HINT)
    if isinstance(error, ValueError) or "invalid argument" in text or "configure port" in text:
        return _no_speed(port, baud, error)
    return LinkError("E9101", f"cannot open: {error}", where=port, hint=PORTS_HINT)


def _no_speed(port: str, baud: int, error: Exception) -> LinkError:
    what = f"the port cannot be set to {baud:,} baud: {error}"
    return LinkError("E9152", what, where=port, hint="is it the board's port? `onnxhw devices` shows which is")


def permission_hint(port: str) -> str:
    """What gives the user access to a device node: the group that owns it."""
    if os.name != "posix":
        return "close the program that has the port open"
    import grp

    try:
        number = os.stat(port).st_gid
    except OSError:
        return "ask the owner of the port for access"
    try:
        entry = grp.getgrgid(number)
    except KeyError:
        return f"its group has the number {number} and no name: ask the administrator for access"
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if number == 0:
        return f"the port belongs to root: give it to a group by a udev rule, or `sudo chmod a+rw {port}` for now"
    if user in entry.gr_mem and number not in os.getgroups():
        return f"you are in group {entry.gr_name} since after this login: log in again, or `newgrp {entry.gr_name}`"
    return f"join the group that owns the port, `sudo usermod -aG {entry.gr_name} {user or '$USER'}`, and log in again"


class ByteLine(Protocol):
    """A simulated device seen as bytes."""

    def exchange(self, data: bytes) -> bytes:
        """Send `data`, let some time pass (at least the data's own), and return what was received meanwhile."""

    def seconds(self) -> float:
        """Simulated time."""


class SimulationTransport:
    """A simulated device; timeouts count simulated time, so a slow simulation never times out."""

    latency = 0.0

    def __init__(self, line: ByteLine, baud: int) -> None:
        self.line, self.baud = line, baud
        self._received = b""

    def write(self, data: bytes) -> None:
        self._received += self.line.exchange(data)

    def read(self, timeout: float) -> bytes:
        deadline = self.line.seconds() + timeout
        while not self._received and self.line.seconds() < deadline:
            self._received += self.line.exchange(b"")
        received, self._received = self._received, b""
        return received

    def now(self) -> float:
        return self.line.seconds()

    def close(self) -> None:
        """Release the line, if there is something to release."""
        close = getattr(self.line, "close", None)
        if close is not None:
            close()
