"""A serial line, as simulated gateware or the model of a device has it: breaks, rates, what an end at another hears."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol
from unittest import mock

from onnxhw.driver import connection
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import PORTION, DeviceModel
from onnxhw.driver.transport import BREAK, SerialTransport, SimulationTransport
from onnxhw.isa.link import line_rates
from onnxhw.rtl.link.uart import BREAK_SECONDS

FRAMING_ERROR = 0x100
"""Beside bytes: one without its stop bit."""


class Pins(Protocol):
    """The serial pins of a simulated device: `onnxhw.engines.cxxrtl.rtl_device.RtlDevice`."""

    @property
    def cycles(self) -> int:
        """Cycles since reset."""

    baud: int
    """Of the host's end of the line."""

    def advance(self, cycles: int, data: bytes = b"") -> tuple[int, bytes]:
        """Run at most so many cycles: how many bytes of `data` were begun, and those received."""


class PinnedLine:
    """A `ByteLine` through the serial pins of the simulated gateware."""

    def __init__(self, model: Pins, clock_hz: int) -> None:
        self.model, self.clock_hz = model, clock_hz

    @property
    def baud(self) -> int:
        """The rate of the host's end."""
        return self.model.baud

    @baud.setter
    def baud(self, baud: int) -> None:
        self._run(11 / self.model.baud)  # whatever byte has been begun
        self.model.baud = baud

    def hold_low(self, seconds: float) -> bytes:
        """A break, of so many seconds or up to 2 % longer; what has been received before it."""
        baud, received = self.baud, self._run(11 / self.baud)
        self.model.baud = int(9 / seconds)  # nine bits of a zero byte, and its stop bit
        _, garbled = self.model.advance(1, b"\0")
        garbled += self._run(11 / self.model.baud)
        self.model.baud = baud
        return received

    def _run(self, seconds: float) -> bytes:
        """What is received in that time, in which nothing is sent."""
        end, received = self.model.cycles + math.ceil(seconds * self.clock_hz), b""
        while self.model.cycles < end:
            received += self.model.advance(end - self.model.cycles)[1]
        return received

    def exchange(self, data: bytes) -> bytes:
        taken, received = self.model.advance(0 if data else 5000, data)
        while taken < len(data):
            more, got = self.model.advance(50_000, data[taken:])
            taken, received = taken + more, received + got
        return bytes(received)

    def seconds(self) -> float:
        return float(self.model.cycles) / self.clock_hz


class Ear:
    """The receiver of a serial line at one rate, on which somebody sends at another: 8N1, sampled in mid-bit."""

    def __init__(self) -> None:
        self._left = self._byte = 0
        self._sample = 0.0
        """Seconds to the next sample."""
        self._spoiled = False
        """The stop bit was low: the next byte begins behind a high level."""

    @property
    def busy(self) -> bool:
        """In the middle of a byte."""
        return bool(self._left) or self._spoiled

    def hear(self, levels: Iterable[tuple[int, float]], bit: float) -> list[int]:
        """The bytes that levels, each of so many seconds, complete; 0x100: one without its stop bit."""
        heard = list[int]()
        for level, seconds in levels:
            if not self._left:
                self._spoiled &= not level
                if level or self._spoiled:
                    continue
                self._left, self._byte, self._sample = 10, 0, 0.45 * bit
            while self._left and self._sample < seconds:
                self._sample += bit
                self._left -= 1
                if self._left == 9 and level:
                    self._left = 0  # no start bit
                elif self._left:
                    self._byte = self._byte >> 1 | level << 8
                else:
                    self._spoiled = not level
                    heard.append(self._byte >> 1 if level else FRAMING_ERROR)
            self._sample -= seconds
        return heard


def levels(data: Iterable[int], bit: float) -> Iterator[tuple[int, float]]:
    """Bytes as they are on a serial line: levels, and their seconds."""
    for byte in data:
        frame = byte << 1 | 1 << 9
        yield from ((frame >> at & 1, bit) for at in range(10))


class ModelLine:
    """A `ByteLine` to the model of a device, whose rate long breaks change; `baud` is that of the host's end.

    While the two differ each hears what a receiver makes of the other's bits.
    """

    def __init__(self, model: DeviceModel) -> None:
        self.model, self.rates = model, line_rates(model.info.baud)
        self.baud = self.rates[0]
        self.turn = 0
        """The number of the device's rate."""
        self._ears = Ear(), Ear()
        """The device's and the host's."""
        self._time = self._free = 0.0
        self._sending: deque[tuple[float, bytes]] = deque()
        """The device's answers, and when they are through."""

    @property
    def rate(self) -> int:
        """The device's rate."""
        return self.rates[self.turn]

    def exchange(self, data: bytes) -> bytes:
        if not data:
            self._pass(10 * PORTION / self.baud)
        for piece in _frames(data):
            self._send(piece)
        return self._received()

    def seconds(self) -> float:
        return self._time

    def hold_low(self, seconds: float) -> bytes:
        """A break; what has been received meanwhile."""
        self._feed([FRAMING_ERROR])
        end, received = self._time + seconds, b""
        while self._time < end:
            self._pass(min(10 * PORTION / self.baud, end - self._time))
            received += self._received()
        self._ears = Ear(), self._ears[1]
        if seconds > BREAK_SECONDS + 10 / self.rate:
            self.turn = (self.turn + 1) % len(self.rates)
            left, self._free = self._sending, self._time
            self._sending = deque()
            for _, answer in left:
                self._answer(answer)
        return received

    def _send(self, piece: bytes) -> None:
        """Bytes of the host's, with at most one zero, at their end."""
        self._time += 10 * len(piece) / self.baud
        ear, items = self._ears[0], list(piece)
        if self.rate != self.baud or ear.busy:
            items = ear.hear(levels(piece, 1 / self.baud), 1 / self.rate)
        self._feed(items)

    def _pass(self, seconds: float) -> None:
        """The host sends nothing."""
        self._time += seconds
        self._feed(self._ears[0].hear([(1, seconds)], 1 / self.rate))

    def _feed(self, items: list[int]) -> None:
        self._answer(self.model.feed(items, idle=self._time >= self._free))

    def _answer(self, answer: bytes) -> None:
        if answer:
            self._free = max(self._free, self._time) + 10 * len(answer) / self.rate
            self._sending.append((self._free, answer))

    def _received(self) -> bytes:
        """What the host has heard by now."""
        heard = b""
        while self._sending and self._sending[0][0] <= self._time:
            _, answer = self._sending.popleft()
            if self.rate != self.baud:
                silence = (1, 20 / self.baud)
                found = self._ears[1].hear([*levels(answer, 1 / self.rate), silence], 1 / self.baud)
                answer = bytes(item & 0xFF for item in found)
            heard += answer
        return heard


def _frames(data: bytes) -> Iterator[bytes]:
    """The bytes up to and with each zero, and what follows the last."""
    *whole, rest = data.split(b"\0")
    yield from (piece + b"\0" for piece in whole)
    if rest:
        yield rest


class ReopenedPort(SerialTransport):
    """A serial port, as a host opens it that knows nothing of the device's rate, in the line's time."""

    latency = 0.0

    def __init__(self, line: ModelLine | PinnedLine, baud: int) -> None:
        self.line = line
        self.set_baud(baud)

    def set_baud(self, baud: int) -> None:
        self.line.baud = self.baud = baud
        self._end = SimulationTransport(self.line, baud)

    def write(self, data: bytes) -> None:
        self._end.write(data)

    def read(self, timeout: float) -> bytes:
        return self._end.read(timeout)

    def now(self) -> float:
        return self._end.now()

    def send_break(self) -> None:
        self.line.hold_low(BREAK)
        self.set_baud(self.baud)

    def close(self) -> None:
        self._end.close()


def reopened(line: ModelLine | PinnedLine, baud: int | None, likely: int | None) -> Client:
    """Open the port anew, as `connection.open_client` does, which takes `baud` and `likely`."""
    with mock.patch.object(connection, "open_transport", lambda where, *, baud, **_: ReopenedPort(line, baud)):
        return connection.open_client("serial:line", baud, 1.0, None, likely)[0]
