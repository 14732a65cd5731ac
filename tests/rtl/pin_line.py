"""The waveforms of a serial line, cycle by cycle: the host's end of a simulated device."""

from typing import Protocol


class Pins(Protocol):
    """The serial pins of a simulated device."""

    def step(self, rx: int) -> int:
        """Advance one clock cycle with `rx` at the device's input; return its output `tx`."""


class PinLine:
    """A `ByteLine` that makes and reads the waveforms of a serial line, cycle by cycle."""

    def __init__(self, pins: Pins, *, clock_hz: int, baud: int) -> None:
        self.pins, self.clock_hz, self.bit = pins, clock_hz, clock_hz / baud
        self.cycles = 0
        self._since_start: int | None = None
        self._next_sample, self._byte, self._bits = 0.0, 0, 0

    def exchange(self, data: bytes) -> bytes:
        out = bytearray()
        if not data:
            self._hold(1, round(self.bit * 10), out)
        for byte in data:
            start = self.cycles
            for index, level in enumerate([0, *((byte >> i) & 1 for i in range(8)), 1]):
                self._hold(level, round(start + (index + 1) * self.bit) - self.cycles, out)
        return bytes(out)

    def seconds(self) -> float:
        return self.cycles / self.clock_hz

    def _hold(self, level: int, cycles: int, out: bytearray) -> None:
        for _ in range(cycles):
            tx = self.pins.step(level)
            self.cycles += 1
            if self._since_start is None:
                if not tx:
                    self._since_start, self._next_sample, self._byte, self._bits = 0, 1.5 * self.bit, 0, 0
                continue
            self._since_start += 1
            if self._since_start < int(self._next_sample):
                continue
            self._next_sample += self.bit
            if self._bits < 8:
                self._byte |= tx << self._bits
                self._bits += 1
            else:
                out.append(self._byte)
                self._since_start = None
