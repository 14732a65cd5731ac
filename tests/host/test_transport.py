"""Transports: a pseudo-terminal for the serial port, bits in time for the simulated pins."""

import builtins
import contextlib
import os
import random
import tty

import pytest

from onnxhw.errors import LinkError, ToolError
from onnxhw.host.transport import PinLine, SerialTransport


@pytest.fixture
def terminal():
    """The two ends of a pseudo-terminal: ours as a file descriptor, the other as a path."""
    pytest.importorskip("serial")
    ours, other = os.openpty()
    tty.setraw(other)
    yield ours, os.ttyname(other)
    for end in (ours, other):
        with contextlib.suppress(OSError):
            os.close(end)


def test_serial_bytes_both_ways(terminal):
    ours, path = terminal
    line = SerialTransport(path)
    data = bytes(range(256)) * 3
    line.write(data)
    assert os.read(ours, 1000) == data
    os.write(ours, data)
    got = b""
    while len(got) < len(data):
        got += line.read(1.0)
    assert got == data
    start = line.now()
    assert line.read(0.05) == b""
    assert 0.04 < line.now() - start < 1
    line.close()


def test_serial_port_is_exclusive(terminal):
    line = SerialTransport(terminal[1])
    with pytest.raises(LinkError, match=r"E9101 .*another program uses the port"):
        SerialTransport(terminal[1])
    line.close()


def test_missing_port():
    pytest.importorskip("serial")
    with pytest.raises(LinkError, match=r"E9101 .*/dev/no-such-port.*is the board plugged in"):
        SerialTransport("/dev/no-such-port")


def test_no_permission_names_the_group(monkeypatch):
    serial = pytest.importorskip("serial")

    def refuse(*_, **__):
        raise serial.SerialException(13, "could not open port: [Errno 13] Permission denied")

    monkeypatch.setattr(serial, "Serial", refuse)
    with pytest.raises(LinkError, match=r"E9101 .*usermod -aG dialout"):
        SerialTransport("/dev/ttyUSB0")


def test_unplugged(terminal):
    ours, path = terminal
    line = SerialTransport(path)
    os.close(ours)
    with pytest.raises(LinkError, match=r"E9102 .*still plugged in"):
        for _ in range(3):
            line.write(b"x" * 10)
            line.read(0.05)


def test_missing_pyserial(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "serial":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ToolError, match=r"E7301 .*pip install 'onnxhw\[host\]'"):
        SerialTransport("/dev/ttyUSB0")


class Echo:
    """Pins whose output is the input some cycles ago."""

    def __init__(self, delay: int) -> None:
        self.past = [1] * delay

    def step(self, rx: int) -> int:
        self.past.append(rx)
        return self.past.pop(0)


@pytest.mark.parametrize(("clock", "delay"), [(8_000_000, 3), (25_000_000, 17), (12_345_678, 400)])
def test_pin_line_reads_what_it_makes(clock, delay):
    line = PinLine(Echo(delay), clock_hz=clock, baud=1_000_000)
    data = random.Random(delay).randbytes(100)
    got = line.exchange(data)
    for _ in range(10):
        got += line.exchange(b"")
    assert got == data
    assert line.seconds() == pytest.approx(1e-3 + 1e-4, rel=0.02)
