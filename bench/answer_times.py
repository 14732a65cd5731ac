"""When the bytes of an inference pass the pins: from the last one of its input to the first and last of its answer."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from serial_lines import PinnedLine
from usb_host.bus import PACKET
from usb_host.line import UsbLine

from onnxhw.driver.framing import Frame, FrameReader
from onnxhw.isa.link import Command
from onnxhw.isa.memory import Space

BITS = 10
"""Of a byte on a serial line: a start bit, eight, and a stop bit."""
INPUTS = (Space.INPUT, Space.EXTERNAL_INPUT)


class TimedByte(NamedTuple):
    """A byte, and the seconds at which it has begun and ended to pass, to a byte's time (USB: a packet's)."""

    value: int
    begun: float
    ended: float


class Timed(Protocol):
    """A line that notes when bytes pass: those that it was sent, and those that came back."""

    sent: list[TimedByte]
    received: list[TimedByte]


class TimedPins(PinnedLine):
    """The serial pins, looked at once in a byte's time."""

    def __init__(self, line: PinnedLine, baud: int) -> None:
        super().__init__(line.model, line.clock_hz)
        self.step = round(BITS * line.clock_hz / baud)
        self.sent: list[TimedByte] = []
        self.received: list[TimedByte] = []

    def exchange(self, data: bytes) -> bytes:
        found = bytearray()
        while True:
            begun = self.seconds()
            taken, received = self.model.advance(self.step, data[:1])
            ended = self.seconds()
            if taken:
                self.sent.append(TimedByte(data[0], begun, begun + self.step / self.clock_hz))
                data = data[1:]
            self.received += [TimedByte(each, ended - self.step / self.clock_hz, ended) for each in received]
            found += received
            if not data:
                return bytes(found)


class TimedUsb:
    """A `UsbLine`, packet by packet."""

    def __init__(self, line: UsbLine) -> None:
        self.line, self.seconds = line, line.seconds
        self.sent: list[TimedByte] = []
        self.received: list[TimedByte] = []

    def exchange(self, data: bytes) -> bytes:
        found = bytearray()
        for at in range(0, max(len(data), 1), PACKET):
            begun, packet = self.seconds(), data[at : at + PACKET]
            received = self.line.exchange(packet)
            ended = self.seconds()
            self.sent += [TimedByte(each, begun, ended) for each in packet]
            self.received += [TimedByte(each, begun, ended) for each in received]
            found += received
        return bytes(found)


def frames(passed: Iterable[TimedByte]) -> list[tuple[Frame, float, float]]:
    """The frames among bytes, each with the seconds at which its first byte begins and its last one ends."""
    reader, found, begun = FrameReader(), list[tuple[Frame, float, float]](), None
    for byte in passed:
        begun = byte.begun if begun is None and byte.value else begun
        for frame in reader.feed(bytes([byte.value])):
            found.append((frame, byte.begun if begun is None else begun, byte.ended))
        begun = begun if byte.value else None
    return found


def to_answer(line: Timed) -> tuple[float, float]:
    """Seconds from the end of the last byte of input to the begin of the first byte of the answer to the first READ
    behind it, and to the end of the last byte of the last answer to a READ."""
    sent = ((frame.header, ended) for frame, _, ended in frames(line.sent))
    given = [ended for header, ended in sent if header.kind & 15 == Command.WRITE and header.space & 15 in INPUTS]
    received = frames(line.received)
    answers = [(begun, ended) for frame, begun, ended in received if frame.header.kind & 15 == Command.READ]
    return answers[0][0] - given[-1], answers[-1][1] - given[-1]
