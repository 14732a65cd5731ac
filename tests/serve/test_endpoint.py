"""Pseudo-terminal and TCP port: one client at a time, coming and going."""

import os
import select
import socket
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnxhw.errors import UsageError
from onnxhw.serve import tcp as tcp_module
from onnxhw.serve.endpoint import Endpoint, PtyEndpoint
from onnxhw.serve.tcp import REFUSAL, TcpEndpoint

serial = pytest.importorskip("serial", reason="needs pyserial (pip install onnxhw[host])")

PATIENCE = 60
"""Seconds for what is to come within milliseconds, if the machine is not busy."""


@pytest.fixture
def pty() -> Iterator[PtyEndpoint]:
    endpoint = PtyEndpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def tcp() -> Iterator[TcpEndpoint]:
    endpoint = TcpEndpoint()
    yield endpoint
    endpoint.close()


def connect(endpoint: TcpEndpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(endpoint.address.rpartition(":")[2])))


def receive(endpoint: Endpoint, count: int) -> bytes:
    """So many bytes; waits a minute for them."""
    data = b""
    end = time.monotonic() + PATIENCE
    while len(data) < count and time.monotonic() < end:
        data += endpoint.receive(0.02)
    return data


EVERY_BYTE = bytes(range(256)) * 4


def test_pyserial_and_terminal_exchange_every_byte(pty: PtyEndpoint) -> None:
    assert pty.receive(0.0) == b""
    assert not pty.connected
    for session in (1, 2):
        with serial.Serial(pty.address, 1_000_000, timeout=PATIENCE, exclusive=True) as port:
            port.write(EVERY_BYTE)
            assert receive(pty, len(EVERY_BYTE)) == EVERY_BYTE
            assert pty.connected
            assert pty.sessions == session
            assert pty.send(EVERY_BYTE) == len(EVERY_BYTE)
            assert port.read(len(EVERY_BYTE)) == EVERY_BYTE
        assert pty.receive(0.0) == b""
        assert not pty.connected
        assert pty.send(b"lost") == 4


def test_a_terminal_that_is_opened_without_settings_is_raw(pty: PtyEndpoint) -> None:
    """Nothing is echoed or translated, not even after a client that had set it otherwise."""
    for cooked in (True, False):
        with open(pty.address, "r+b", buffering=0) as port:
            port.write(b"\r\n\x03\x04\x11\x00")
            assert receive(pty, 6) == b"\r\n\x03\x04\x11\x00"
            pty.send(b"\r\x04\x00")
            assert select.select([port], [], [], PATIENCE)[0]
            assert port.read(10) == b"\r\x04\x00"
            assert pty.receive(0.05) == b"", "no echo"
            if cooked:
                settings = termios.tcgetattr(port)
                settings[3] |= termios.ECHO | termios.ICANON | termios.ISIG
                termios.tcsetattr(port, termios.TCSANOW, settings)
        pty.receive(0.0)


@pytest.mark.parametrize("baud", [115_200, 1_000_000, 3_000_000, 1_234_567])
def test_the_clients_speed_is_known(pty: PtyEndpoint, baud: int) -> None:
    with serial.Serial(pty.address, baud):
        assert pty.baud() == baud


def test_a_client_that_does_not_read_takes_no_more(pty: PtyEndpoint, tcp: TcpEndpoint) -> None:
    with serial.Serial(pty.address, 1_000_000, timeout=PATIENCE) as port:
        pty.receive(0.0)
        sent = 0
        while taken := pty.send(EVERY_BYTE):
            sent += taken
        assert 0 < sent < 1 << 20
        assert len(port.read(sent)) == sent
        assert pty.send(b"again") == 5
    with connect(tcp):
        tcp.receive(1.0)
        while tcp.send(EVERY_BYTE):
            sent += 1
        assert sent < 1 << 24


def test_the_link_is_made_and_goes(tmp_path: Path) -> None:
    link = tmp_path / "board"
    endpoint = PtyEndpoint(link)
    assert os.readlink(link) == endpoint.address
    endpoint.close()
    assert not link.is_symlink()
    link.symlink_to("/dev/pts/12345")  # left behind by a killed one
    endpoint = PtyEndpoint(link)
    assert os.readlink(link) == endpoint.address
    link.unlink()
    link.symlink_to("elsewhere")
    endpoint.close()
    assert os.readlink(link) == "elsewhere", "not ours any more"
    with pytest.raises(UsageError, match=r"E2583 .*points elsewhere"):
        PtyEndpoint(link)
    link.unlink()
    link.write_text("mine")
    with pytest.raises(UsageError, match=r"E2583 .*cannot be made"):
        PtyEndpoint(link)
    assert link.read_text() == "mine"
    with pytest.raises(UsageError, match="E2583"):
        PtyEndpoint(tmp_path / "no" / "folder")


def test_tcp_exchanges_bytes_and_the_next_client_may_come(tcp: TcpEndpoint) -> None:
    for session in (1, 2):
        with connect(tcp) as client:
            client.sendall(EVERY_BYTE)
            assert receive(tcp, len(EVERY_BYTE)) == EVERY_BYTE
            assert tcp.sessions == session
            assert tcp.send(b"answer") == 6
            assert client.recv(100) == b"answer"
        assert tcp.receive(1.0) == b""
        assert not tcp.connected
        assert tcp.send(b"lost") == 4


def test_a_second_client_is_told_and_the_first_goes_on(tcp: TcpEndpoint) -> None:
    with connect(tcp) as first, connect(tcp) as second:
        second.sendall(b"\0\0hello")
        first.sendall(b"first")
        assert receive(tcp, 5) == b"first"
        words = b""
        while True:
            tcp.receive(0.02)
            if select.select([second], [], [], 0)[0]:
                if not (more := second.recv(100)):
                    break
                words += more
        assert words == REFUSAL
        first.sendall(b"still")
        assert receive(tcp, 5) == b"still"
        assert tcp.sessions == 1


def until(endpoint: TcpEndpoint, sessions: int, most: int = 4096) -> bytes:
    """What comes until there have been so many clients."""
    data, end = b"", time.monotonic() + PATIENCE
    while endpoint.sessions < sessions and time.monotonic() < end:
        data += endpoint.receive(0.02, most)
    assert endpoint.sessions == sessions
    return data


@pytest.mark.parametrize("left", [0, 10, 9000])
def test_who_reconnects_at_once_is_taken(tcp: TcpEndpoint, left: int) -> None:
    """The server has not looked since the first connection closed; what it sent is read first."""
    for session in range(1, 21):
        with connect(tcp) as client:
            assert until(tcp, session) == b"x" * (left if session > 1 else 0)
            client.sendall(b"x" * left)
    with connect(tcp):
        assert until(tcp, 21) == b"x" * left


def test_who_went_without_reading_makes_nobody_wait(tcp: TcpEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes nothing (its backlog is full) still notices that the client has gone."""
    monkeypatch.setattr(tcp_module, "GRACE", 0.05)
    with connect(tcp) as client:
        until(tcp, 1)
        client.sendall(b"x" * 10000)
        while tcp.send(EVERY_BYTE):
            pass
    with connect(tcp) as second:
        assert until(tcp, 2, most=0) == b""
        second.sendall(b"second")
        assert receive(tcp, 6) == b"second"


def test_who_is_idle_gives_way(tcp: TcpEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_module, "IDLE", 0.2)
    with connect(tcp) as first:
        until(tcp, 1)
        time.sleep(0.3)
        tcp.note_activity()
        with connect(tcp) as refused:
            while not select.select([refused], [], [], 0)[0]:
                tcp.receive(0.02)
            assert refused.recv(100) == REFUSAL
        time.sleep(0.3)
        with connect(tcp):
            until(tcp, 2)
            assert first.recv(100) == b""


def test_a_port_in_use_is_refused(tcp: TcpEndpoint) -> None:
    port = int(tcp.address.rpartition(":")[2])
    with pytest.raises(UsageError, match=rf"E2585 .*port {port} of 127\.0\.0\.1.*in use"):
        TcpEndpoint("127.0.0.1", port)
    with pytest.raises(UsageError, match="E2585 "):
        TcpEndpoint("no such host", 5)
