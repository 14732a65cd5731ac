"""Static timing of a routed design by the delays of its SDF file: when signals arrive, and when they must."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sdf import Delays, Pin

NEVER = -1e9
"""Picoseconds of an arrival where nothing arrives from a register of the clock; its negative: needed by no register."""


class StaticTiming:
    """Arrival and required times of all pins, in picoseconds from the edge of one clock.

    Only paths from registers of that clock to registers of it count. `arrival` of a pin is by the slowest path to it;
    `required` is by the slowest path from it, as if the clock had no period: of an end, its setup time, negative. So
    ``arrival - required`` is how long the slowest path through a pin takes. Change `delay` of an arc and `run` again.
    A pin in a combinational loop, and what only comes from there, has no arrival.
    """

    def __init__(self, delays: Delays, cells: Mapping[str, Any], clock: int | None = None) -> None:
        """`cells` are those of the netlist, by name; `clock` is the bit of the clock's net, by default that of the
        clock with the most ends."""
        self.pins: list[Pin] = []
        self.number: dict[Pin, int] = {}
        clock_ports = {port for port, _ in delays.setups.values()}
        clocked_by = {
            Pin(name, port): bits[0]
            for name, cell in cells.items()
            for port in clock_ports & cell["connections"].keys()
            if (bits := cell["connections"][port])
        }
        ends = {pin: (clocked_by.get(Pin(pin.cell, port)), setup) for pin, (port, setup) in delays.setups.items()}
        counts = Counter(bit for bit, _ in ends.values() if bit is not None)
        self.clock = clock if clock is not None else max(counts, key=lambda bit: counts[bit], default=None)
        arcs = [(driver, sink, ps) for sink, (driver, ps) in delays.wires.items() if sink.port not in clock_ports]
        self.wires = len(arcs)
        arcs += [(before, output, ps) for output, paths in delays.paths.items() for before, ps in paths]
        self.source = np.array([self._number(arc[0]) for arc in arcs], dtype=np.int64)
        self.sink = np.array([self._number(arc[1]) for arc in arcs], dtype=np.int64)
        self.delay = np.array([arc[2] for arc in arcs], dtype=np.float64)
        of_clock = {pin: setup for pin, (bit, setup) in ends.items() if bit is not None and bit == self.clock}
        self.ends = np.array([self._number(pin) for pin in of_clock], dtype=np.int64)
        self.setup = np.array(list(of_clock.values()), dtype=np.float64)
        launches = [self.number[pin] for pin, bit in clocked_by.items() if bit == self.clock and pin in self.number]
        self._launches = np.array(launches, dtype=np.int64)
        self._into = np.argsort(self.sink, kind="stable")
        self._into_start = np.searchsorted(self.sink[self._into], np.arange(len(self.pins) + 1))
        self._levels = self._sorted()
        self.run()

    def _number(self, pin: Pin) -> int:
        found = self.number.get(pin)
        if found is None:
            found = self.number[pin] = len(self.pins)
            self.pins.append(pin)
        return found

    def _sorted(self) -> list[NDArray[np.int64]]:
        """The arcs in groups: those of a group begin where all arcs of earlier groups have ended."""
        count = len(self.pins)
        order = np.argsort(self.source, kind="stable")
        start = np.searchsorted(self.source[order], np.arange(count + 1))
        missing = np.bincount(self.sink, minlength=count)
        front, found = np.nonzero(missing == 0)[0], []
        while len(front):
            sizes = start[front + 1] - start[front]
            within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            arcs = order[np.repeat(start[front], sizes) + within]
            found.append(arcs)
            np.subtract.at(missing, self.sink[arcs], 1)
            reached = np.unique(self.sink[arcs])
            front = reached[missing[reached] == 0]
        return found

    def run(self) -> None:
        """Arrival and required times by the delays as they are."""
        arrival = np.full(len(self.pins), NEVER)
        arrival[self._launches] = 0.0
        for arcs in self._levels:
            np.maximum.at(arrival, self.sink[arcs], arrival[self.source[arcs]] + self.delay[arcs])
        required = np.full(len(self.pins), -NEVER)
        required[self.ends] = -self.setup
        for arcs in reversed(self._levels):
            np.minimum.at(required, self.source[arcs], required[self.sink[arcs]] - self.delay[arcs])
        self.arrival, self.required = arrival, required

    def totals(self) -> NDArray[np.float64]:
        """How long the slowest path to each of `ends` takes, setup included; about `NEVER` for one that no register of
        the clock reaches."""
        return np.asarray(self.arrival[self.ends] + self.setup)

    def path(self, pin: int) -> list[int]:
        """The pins on the slowest path to a pin, the clock's pin of the register first."""
        found = [pin]
        while True:
            arcs = self._into[self._into_start[pin] : self._into_start[pin + 1]]
            if not len(arcs):
                return found[::-1]
            pin = int(self.source[arcs[np.argmax(self.arrival[self.source[arcs]] + self.delay[arcs])]])
            found.append(pin)
