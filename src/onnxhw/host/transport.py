"""How bytes reach a device: a serial port, or a simulated line. Nothing above knows which."""

import time
from typing import Any, Protocol

from ..errors import LinkError, ToolError


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

    Errors: `ToolError` E7301 if pyserial is missing; `LinkError` E9101 if the port cannot be opened, E9102 if
    it fails later (unplugged).
    """

    latency = 0.1

    def __init__(self, port: str, baud: int = 1_000_000) -> None:
        try:
            import serial
        except ImportError:
            raise ToolError(
                "E7301", "talking to a serial port needs pyserial", hint="pip install 'onnxhw[host]'"
            ) from None
        self.port, self.baud = port, baud
        self._failures = (serial.SerialException, OSError, ValueError)
        try:
            self._serial: Any = serial.Serial(port, baud, timeout=0, write_timeout=5, exclusive=True)
        except self._failures as error:
            raise LinkError("E9101", f"cannot open: {error}", where=port, hint=_open_hint(error)) from error
        self._serial.reset_input_buffer()

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except self._failures as error:
            raise self._lost(error) from error

    def read(self, timeout: float) -> bytes:
        try:
            self._serial.timeout = timeout
            first: bytes = self._serial.read(1)
            self._serial.timeout = 0
            return first + bytes(self._serial.read(4096)) if first else b""
        except self._failures as error:
            raise self._lost(error) from error

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._serial.close()

    def _lost(self, error: Exception) -> LinkError:
        return LinkError("E9102", f"the port failed: {error}", where=self.port, hint="is the board still plugged in?")


def _open_hint(error: Exception) -> str:
    text = str(error).lower()
    if "permission" in text:
        return "add yourself to the group that owns the port (`sudo usermod -aG dialout $USER`) and log in again"
    if "lock" in text or "busy" in text or "temporarily unavailable" in text:
        return "another program uses the port: close it"
    return "is the board plugged in? `python -m serial.tools.list_ports` shows the ports there are"


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
        pass


class Pins(Protocol):
    """The serial pins of a simulated device."""

    def step(self, rx: int) -> int:
        """Advance one clock cycle with `rx` at the device's input; return its output `tx`."""


class PinLine:
    """A `ByteLine` that makes and reads the waveforms of a serial line, cycle by cycle."""

    def __init__(self, pins: Pins, *, clock_hz: int, baud: int) -> None:
        self.pins, self.clock_hz, self.bit = pins, clock_hz, clock_hz / baud
        self.cycles = 0
        self._since_start: int | None = None
        self._next_sample, self._byte, self._bits = 0.0, 0, 0

    def exchange(self, data: bytes) -> bytes:
        out = bytearray()
        if not data:
            self._hold(1, round(self.bit * 10), out)
        for byte in data:
            start = self.cycles
            for index, level in enumerate([0, *((byte >> i) & 1 for i in range(8)), 1]):
                self._hold(level, round(start + (index + 1) * self.bit) - self.cycles, out)
        return bytes(out)

    def seconds(self) -> float:
        return self.cycles / self.clock_hz

    def _hold(self, level: int, cycles: int, out: bytearray) -> None:
        for _ in range(cycles):
            tx = self.pins.step(level)
            self.cycles += 1
            if self._since_start is None:
                if not tx:
                    self._since_start, self._next_sample, self._byte, self._bits = 0, 1.5 * self.bit, 0, 0
                continue
            self._since_start += 1
            if self._since_start < int(self._next_sample):
                continue
            self._next_sample += self.bit
            if self._bits < 8:
                self._byte |= tx << self._bits
                self._bits += 1
            else:
                out.append(self._byte)
                self._since_start = None
