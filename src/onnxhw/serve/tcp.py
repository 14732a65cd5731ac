"""`TcpEndpoint`: the line's bytes over a TCP connection."""

import select
import socket
import time

from ..errors import UsageError
from .endpoint import PORTION

REFUSAL = b"onnxhw: another client is connected to this simulated board\n"
"""What a second client is told before its connection is closed."""
FAREWELL = 2.0
"""Seconds in which a refused client can read that."""


class TcpEndpoint:
    """A TCP port; bytes as they are on the line, as pyserial's ``socket://HOST:PORT`` has them.

    There is no authentication: `host` is this machine unless chosen otherwise. Port 0 takes a free one.

    Errors: `UsageError` E2585 if the port cannot be had.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, port), family=family, backlog=4)
        except (OSError, OverflowError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                "E2585", f"cannot listen on port {port} of {host}: {why}", hint="another port, or 0 for a free one"
            ) from error
        self._listener.setblocking(False)
        self.address = f"tcp:{host}:{self._listener.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._refused: list[tuple[socket.socket, float]] = []
        self.sessions = 0

    @property
    def connected(self) -> bool:
        """There is a client."""
        return self._client is not None

    def receive(self, timeout: float, most: int = PORTION) -> bytes:
        watched = [self._listener, *(refused for refused, _ in self._refused)]
        if self._client is not None:
            watched.append(self._client)
        ready, _, _ = select.select(watched, [], [], timeout)
        data = b""
        if self._client in ready and most:
            data = self._read(most)
        if self._listener in ready:
            self._accept()
        self._dismiss(ready)
        return data

    def _read(self, most: int) -> bytes:
        assert self._client is not None
        try:
            data = self._client.recv(most)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._part()
        return data

    def _part(self) -> None:
        """The client has gone."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _accept(self) -> None:
        try:
            newcomer, _ = self._listener.accept()
        except OSError:  # gone before it was accepted
            return
        newcomer.setblocking(False)
        if self._client is None:
            newcomer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            newcomer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._client = newcomer
            self.sessions += 1
            return
        try:
            newcomer.send(REFUSAL)
            newcomer.shutdown(socket.SHUT_WR)
            self._refused.append((newcomer, time.monotonic() + FAREWELL))
        except OSError:
            newcomer.close()

    def _dismiss(self, ready: list[socket.socket]) -> None:
        """Read what refused clients send: closing before that would reset their connection, and the words be lost."""
        kept = []
        for client, deadline in self._refused:
            over = time.monotonic() > deadline
            if client in ready and not over:
                try:
                    over = not client.recv(PORTION)
                except OSError:
                    over = True
            if over:
                client.close()
            else:
                kept.append((client, deadline))
        self._refused = kept

    def send(self, data: bytes) -> int:
        if self._client is None:
            return len(data)
        try:
            return self._client.send(data[:PORTION])
        except BlockingIOError:
            return 0
        except OSError:
            self._part()
            return len(data)

    def baud(self) -> int | None:
        return None

    def close(self) -> None:
        for open_socket in (self._listener, self._client, *(refused for refused, _ in self._refused)):
            if open_socket is not None:
                open_socket.close()
