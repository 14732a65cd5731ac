"""Transports: a pseudo-terminal for the serial port, a TCP port, bits in time for the simulated pins."""

import builtins
import contextlib
import grp
import os
import random
import socket
import termios
import time
import tty

import pytest
from pin_line import PinLine

from onnxhw.driver.faults import NoPermissionError, PortBusyError, UnpluggedError
from onnxhw.driver.network import SocketTransport
from onnxhw.driver.transport import SerialTransport, permission_hint
from onnxhw.errors import LinkError, ToolError


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
    assert 0.04 < line.now() - start < 20  # seconds, and of a busy machine
    line.close()


def test_serial_port_is_exclusive(terminal):
    line = SerialTransport(terminal[1])
    with pytest.raises(PortBusyError, match=r"E9151 .*another program uses the port"):
        SerialTransport(terminal[1])
    line.close()
    line.close()
    SerialTransport(terminal[1]).close()


def test_missing_port():
    pytest.importorskip("serial")
    with pytest.raises(LinkError, match=r"E9101 .*/dev/no-such-port.*is the board plugged in"):
        SerialTransport("/dev/no-such-port")


def test_what_is_no_port(tmp_path):
    pytest.importorskip("serial")
    with pytest.raises(LinkError, match=r"E9101 .*/dev/null: cannot open: it is no serial port"):
        SerialTransport("/dev/null")


def test_no_permission_names_the_group(monkeypatch, tmp_path):
    serial = pytest.importorskip("serial")

    def refuse(*_, **__):
        raise serial.SerialException(13, "could not open port: [Errno 13] Permission denied")

    monkeypatch.setattr(serial, "Serial", refuse)
    node, entries = tmp_path / "ttyUSB0", {0: ("root", []), 4242: ("plugdev", ["grace"])}
    node.touch()
    number = 4242
    real = os.stat

    def stat(path, **rest):
        found = real(path, **rest)
        return os.stat_result((*found[:5], number, *found[6:])) if path == str(node) else found

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setattr(grp, "getgrgid", lambda n: grp.struct_group((entries[n][0], "x", n, entries[n][1])))
    with pytest.raises(NoPermissionError, match=rf"E9150 .*{node}: no permission .*usermod -aG plugdev ada"):
        SerialTransport(str(node))
    monkeypatch.setenv("USER", "grace")
    assert "log in again, or `newgrp plugdev`" in permission_hint(str(node))
    number = 0
    assert "belongs to root" in permission_hint(str(node))
    entries.clear()
    number = 77
    assert "number 77 and no name" in permission_hint(str(node))


def test_another_speed(terminal):
    line = SerialTransport(terminal[1])
    assert termios.tcgetattr(terminal[0])[4] == termios.B1000000
    line.set_baud(3_000_000)
    assert (line.baud, termios.tcgetattr(terminal[0])[4]) == (3_000_000, termios.B3000000)
    with pytest.raises(LinkError, match=r"E9152 .*cannot be set to -1 baud"):
        line.set_baud(-1)
    line.close()


def test_a_slower_clock_waits_longer(terminal):
    line = SerialTransport(terminal[1], timeout_scale=10)
    before, start, inside = time.monotonic(), line.now(), time.monotonic()
    assert line.read(0.01) == b""
    within, passed, after = time.monotonic() - inside, line.now() - start, time.monotonic() - before
    assert 0.09 < within < 20
    assert within / 10 <= passed <= after / 10
    line.close()


@pytest.fixture
def server():
    """A listening TCP port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_tcp_bytes_both_ways(server):
    line = SocketTransport("127.0.0.1", server.getsockname()[1])
    other, _ = server.accept()
    data = bytes(range(256)) * 3
    line.write(data)
    assert other.recv(1000) == data
    other.sendall(data)
    got = b""
    while len(got) < len(data):
        got += line.read(1.0)
    assert got == data
    start = line.now()
    assert line.read(0.05) == b""
    assert 0.04 < line.now() - start < 20  # seconds, and of a busy machine
    other.close()
    with pytest.raises(UnpluggedError, match=r"E9102 .*tcp:127.0.0.1:\d+: .*the other end has closed it"):
        line.read(1.0)
    line.close()
    with pytest.raises(UnpluggedError, match="E9102"):
        line.write(b"x")


def test_a_busy_simulated_board(server):
    line = SocketTransport("127.0.0.1", server.getsockname()[1])
    other, _ = server.accept()
    other.sendall(b"onnxhw: another client is connected to this simulated board\n")
    with pytest.raises(PortBusyError, match=r"E9154 .*serves another client"):
        line.read(1.0)
    line.close()
    other.close()


def test_nobody_listens():
    with socket.socket() as silent:  # has a port, so that nobody else gets it
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with pytest.raises(LinkError, match=rf"E9153 .*tcp:127.0.0.1:{port}: cannot connect.*onnxhw serve --tcp"):
            SocketTransport("127.0.0.1", port)
    with pytest.raises(LinkError, match="E9153"):
        SocketTransport("no.such.host.invalid", port)


def test_unplugged(terminal):
    ours, path = terminal
    line = SerialTransport(path)
    os.close(ours)
    with pytest.raises(UnpluggedError, match=r"E9102 .*still plugged in"):
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
