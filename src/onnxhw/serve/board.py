"""`SimulatedBoard`: the RTL of a complete device, with its time."""

import time

from ..board_tables import BAUD as RATES
from ..closeable import Closeable
from ..config import HwConfig
from ..engines.cxxrtl.build import Progress
from ..engines.cxxrtl.design import CHUNK
from ..engines.cxxrtl.rtl_device import RtlDevice, device_libraries
from ..errors import UsageError
from ..isa.link import MIN_RATIO

BAUD = 1_000_000
"""The line's speed unless asked otherwise: what drivers and bitstreams begin with."""
TURN = 0.004
"""Seconds of ours that one call simulates, about: how soon arriving bytes and interrupts are seen."""
REST = 100
"""Byte times without any activity after which the board is idle: simulating on would change nothing."""


class SimulatedBoard(Closeable):
    """A simulated device and the host's end of its serial line; a context manager.

    Everything that it says it has from the gateware, through the serial pins (see `RtlDevice`). It is also a
    ``ByteLine`` for `onnxhw.driver.transport.SimulationTransport`, for a simulated board within the process.

    Parameters
    ----------
    config : what the gateware is generated for; compiled at the first use (about a minute), then from the cache.
    baud : the line's speed.
    clock_hz : the device's clock; by default the slowest that this line allows, because every cycle costs time.

    Members
    -------
    idle_seconds : simulated time without cycles (see `rest`).
    speed : cycles per second of ours, lately.
    """

    def __init__(
        self, config: HwConfig, *, baud: int = BAUD, clock_hz: int | None = None, progress: Progress | None = None
    ) -> None:
        if baud not in RATES:
            raise UsageError("E2582", f"the line's speed must be {RATES[0]:,} to {RATES[-1]:,} baud, not {baud:,}")
        self.config, self.baud = config, baud
        self.clock_hz = clock_hz or MIN_RATIO * baud
        libraries = device_libraries(config, clock_hz=self.clock_hz, baud=baud, progress=progress)
        self.model = RtlDevice(libraries, clock_hz=self.clock_hz, baud=baud)
        self.idle_seconds = 0.0
        self.speed = 100_000.0
        self._rest = round(REST * 10 * self.clock_hz / baud)

    def close(self) -> None:
        """Release the design."""
        self.model.close()

    @property
    def idle(self) -> bool:
        """Nothing has happened for so long that nothing will, unless the host sends something."""
        return self.model.quiet >= self._rest

    def advance(self, data: bytes) -> tuple[int, bytes]:
        """Simulate for a few milliseconds of ours, sending `data`: how much of it was begun, and what was received."""
        start, before = time.perf_counter(), self.model.cycles
        found = self.model.advance(max(64, round(self.speed * TURN)), data, patience=self._rest)
        took = time.perf_counter() - start
        if took > 0:
            self.speed += 0.1 * ((self.model.cycles - before) / took - self.speed)
        return found

    def rest(self, seconds: float) -> None:
        """Let time pass without simulating it: the board is idle."""
        self.idle_seconds += seconds

    def seconds(self) -> float:
        """Simulated time."""
        return self.model.cycles / self.clock_hz + self.idle_seconds

    def exchange(self, data: bytes) -> bytes:
        """Send bytes and return those that have come meanwhile; without any to send, let a little time pass."""
        if not data:
            return self.model.advance(min(CHUNK, self._rest), patience=self._rest)[1]
        received = b""
        while data:
            taken, got = self.model.advance(CHUNK, data[:CHUNK])
            data = data[taken:]
            received += got
        return received
