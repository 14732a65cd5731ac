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
GRACE = 2.0
"""Seconds for which a newcomer waits while the bytes of a client that has gone still go over the line. A driver that
closes has its answers, so there are none; what is left then is of one that was killed, and is dropped."""
IDLE = 30.0
"""Seconds without a byte and without simulated work after which a newcomer takes the place of a client that is still
connected: a forgotten session must not hold the port for ever."""
BUFFER = 65536
"""Bytes that the system keeps of a client, so that `GRACE` is about what is on its way, not about megabytes."""


class TcpEndpoint:
    """A TCP port; bytes as they are on the line, as pyserial's ``socket://HOST:PORT`` has them.

    There is no authentication: `host` is this machine unless chosen otherwise. Port 0 takes a free one. A newcomer is
    told that the board is busy and disconnected; but it gets the place of a client that has closed its connection, when
    that one's bytes have been read or after `GRACE`, and of one that is idle for `IDLE`.

    Errors: `UsageError` E2585 if the port cannot be had.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, port), family=family, backlog=4)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        except (OSError, OverflowError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                "E2585", f"cannot listen on port {port} of {host}: {why}", hint="another port, or 0 for a free one"
            ) from error
        self._listener.setblocking(False)
        self.address = f"tcp:{host}:{self._listener.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._refused: list[tuple[socket.socket, float]] = []
        self._waits_since: float | None = None
        self._active = time.monotonic()
        self.sessions = 0

    @property
    def connected(self) -> bool:
        """There is a client."""
        return self._client is not None

    def receive(self, timeout: float, most: int = PORTION) -> bytes:
        watched = [refused for refused, _ in self._refused]
        if self._waits_since is None:
            watched.append(self._listener)
        if self._client is not None and most:
            watched.append(self._client)
        ready, _, _ = select.select(watched, [], [], timeout)
        data = self._read(most) if self._client in ready else b""
        if data:
            self.note_activity()
        elif self._waits_since is not None or self._listener in ready:
            self._admit()
        self._dismiss(ready)
        return data

    def note_activity(self) -> None:
        self._active = time.monotonic()

    def _admit(self) -> None:
        """A newcomer is there: it waits, is taken, or refused."""
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        if self._client is not None and self._leaving() and now - self._waits_since < GRACE:
            return
        if self._client is not None and (self._leaving() or now - self._active > IDLE):
            self._part()
        self._waits_since = None
        self._accept()

    def _leaving(self) -> bool:
        """The client has closed its connection; some of its bytes may still be unread."""
        if self._client is None:
            return False
        watch = select.poll()
        watch.register(self._client, getattr(select, "POLLRDHUP", 0))  # without it only an end without bytes is seen
        return bool(watch.poll(0))

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
            self.note_activity()
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
            taken = self._client.send(data[:PORTION])
            self.note_activity()
            return taken
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
