"""A line to the simulated gateware, through its serial pins, that may be tampered with or break."""

from collections.abc import Callable

from onnxhw.engines.cxxrtl.rtl_device import RtlDevice


class RtlLine:
    """A `ByteLine`; `there` and `back` may change what travels, and after `budget` bytes the line is dead
    (`ConnectionError`)."""

    def __init__(self, model: RtlDevice, clock_hz: int) -> None:
        self.model, self.clock_hz = model, clock_hz
        self.there: Callable[[bytes], bytes] = lambda data: data
        self.back: Callable[[bytes], bytes] = lambda data: data
        self.budget: int | None = None

    def exchange(self, data: bytes) -> bytes:
        data, received = self.there(data), b""
        if self.budget is not None:
            cut, data = len(data) > self.budget, data[: self.budget]
            self.budget -= len(data)
            if cut:
                self._exchange(data)
                raise ConnectionError
        received += self._exchange(data)
        return self.back(received)

    def _exchange(self, data: bytes) -> bytes:
        received = b""
        while True:
            taken, more = self.model.advance(400 if not data else 8000, data)
            data, received = data[taken:], received + more
            if not data:
                return received

    def seconds(self) -> float:
        return self.model.cycles / self.clock_hz
