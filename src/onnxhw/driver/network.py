"""A device behind a TCP port."""

import contextlib
import select
import socket
import time

from ..errors import LinkError
from .faults import PortBusyError, UnpluggedError
from .transport import SerialTransport

REFUSAL = b"onnxhw: another client"
"""How a simulated board turns a second client away; no frame looks like it."""


class SocketTransport:
    """A board behind a TCP port (``onnxhw serve --tcp``, or a serial port that ser2net or the like shares).

    Parameters as of `SerialTransport`. Errors: `LinkError` E9153 if there is no connection, `PortBusyError` E9154 if
    the simulated board serves someone else, `UnpluggedError` E9102 if the connection ends.
    """

    latency = 0.25
    CONNECT_TIMEOUT = 5.0

    def __init__(self, host: str, port: int, baud: int = 1_000_000, timeout_scale: float = 1.0) -> None:
        self.where = f"tcp:{host}:{port}"
        self.baud, self.timeout_scale = baud, timeout_scale
        try:
            self._socket = socket.create_connection((host, port), timeout=self.CONNECT_TIMEOUT)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            hint = "is the simulated board running? `onnxhw serve --tcp PORT` starts one"
            raise LinkError("E9153", f"cannot connect: {why}", where=self.where, hint=hint) from error
        self._greeted = False
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(SerialTransport.WRITE_TIMEOUT * timeout_scale)

    def write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(str(error)) from error

    def read(self, timeout: float) -> bytes:
        try:
            ready, _, _ = select.select([self._socket], [], [], max(0.0, timeout * self.timeout_scale))
            if not ready:
                return b""
            data = self._socket.recv(65536)
        except (OSError, ValueError) as error:
            raise self._lost(str(error)) from error
        if not self._greeted and data.startswith(REFUSAL):
            hint = "end the other client, or start a board of your own with `onnxhw serve`"
            raise PortBusyError("E9154", "the simulated board serves another client", where=self.where, hint=hint)
        self._greeted = True
        if not data:
            raise self._lost("the other end has closed it")
        return data

    def now(self) -> float:
        return time.monotonic() / self.timeout_scale

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _lost(self, why: str) -> LinkError:
        hint = "has the simulated board been stopped, or does it serve another client?"
        return UnpluggedError("E9102", f"the connection failed: {why}", where=self.where, hint=hint)
