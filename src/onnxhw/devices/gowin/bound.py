"""How long the slowest path between registers of a routed design is, with those that nextpnr's timing leaves out.

nextpnr knows no arcs of multipliers, and none of block RAMs as it has packed them: whatever begins or ends there is
not looked at, and its maximum frequency is that of the rest. But it writes the delay of every routed wire, so here all
paths are looked at again.

Delays of logic, registers and block RAMs are the worst of the vendor's timing files for speed grade C8/I7, as Apicula
0.35 has them (``GW2A-18C.msgpack.xz``; nextpnr's own are the same). Of the multipliers there are none in it, and the
data sheet's table could not be had: those are assumptions, marked so, and `MARGIN` is on top of everything.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..sdf import Pin, read

MARGIN = 1.25
"""Of every path: the tables are of the slowest corner of C8/I7, but neither they nor the assumptions were measured."""
LUT_NS, MUX_NS, CARRY_NS, SUM_NS = 0.570, 0.269, 0.036, 0.470
"""Of a lookup table or carry cell from any operand, a wide multiplexer, from carry to carry, from carry to sum."""
ASSUMED_PRODUCT_NS = 10.0
"""Between the registers of a multiplier, without its pipeline register: an assumption. It is what 18 rows of this
device's own carry chains would take as a tree of five levels with a wire of 1 ns each, and a multiplier block is
quicker than that."""
ASSUMED_OUT_NS, ASSUMED_SETUP_NS = 2.26, 0.5
"""Of the registers at a multiplier's ends: assumed to be no worse than those of a block RAM without output register."""
START_NS = {"DFF": 0.232, "SDP": 2.26, "MULT": ASSUMED_OUT_NS, "RAM16": 0.314}
"""From the clock to the output, by how a cell's type begins. Block RAMs as without their output register."""
SETUP_NS = {"DFF": 0.035, "SDP": 0.438, "MULT": ASSUMED_SETUP_NS, "RAM16": 0.035}
"""From the input to the clock: of all pins the worst, which is that of resets."""
LOGIC = ("LUT", "MUX2_LUT", "ALU", "RAM16")
"""Cells through which signals pass; of a memory of lookup tables those of the read address (`READ`)."""
READ = "RAD"
CLOCKS = ("CLK", "CLKA", "CLKB")
REGISTERS = ("AREG", "BREG", "OUT_REG")
"""Parameters of a multiplier: without these registers its product would be a part of longer paths."""


@dataclass(frozen=True)
class PathBound:
    """The slowest path: its length with the registers at both ends, of it wires, their names and kinds, and how many
    cells of logic lie between. `inside` says that it is a multiplier's own."""

    ns: float = 0.0
    wires_ns: float = 0.0
    start: str = ""
    end: str = ""
    levels: int = 0
    inside: bool = False


@dataclass(frozen=True)
class _Arrival:
    """When a signal is there, by the slowest way, and that way."""

    ns: float
    wires_ns: float
    start: str
    levels: int


def kind_of(cell: Mapping[str, Any]) -> str:
    """The beginning of a sequential cell's type as in `START_NS`; empty for any other cell."""
    return next((kind for kind in START_NS if cell["type"].startswith(kind)), "")


def _inputs(cell: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """Ports and nets of a cell's connected inputs."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == "input" and bits and isinstance(bits[0], int):
            yield port, bits[0]


def _through(kind: str, port: str, out: str) -> float:
    """The delay of a cell of logic from an input to an output."""
    if kind == "ALU" and port == "CIN":
        return CARRY_NS if out == "COUT" else SUM_NS
    return MUX_NS if kind.startswith("MUX2") else LUT_NS


class _Paths:
    """Arrivals at the outputs of all cells. A wire of which no delay is known is taken for the longest of all."""

    def __init__(self, cells: Mapping[str, Any], delays: Mapping[Pin, tuple[Pin, float]]) -> None:
        self.cells, self.delays = cells, delays
        self.unknown_ns = max((ps for _, ps in delays.values()), default=0.0) / 1000
        self.drivers: dict[int, tuple[str, str]] = {}
        for name, cell in cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output" and bits:
                    self.drivers[bits[0]] = (name, port)
        self.arrivals: dict[tuple[str, str], _Arrival] = {}
        self._run()

    def at(self, name: str, port: str, net: int) -> _Arrival | None:
        """When a net's signal is at an input; None if it does not come from a register."""
        driver = self.drivers.get(net)
        known = self.arrivals.get(driver) if driver else None
        if known is None or driver is None:
            return None
        wire = self.delays[pin][1] / 1000 if (pin := Pin(name, port)) in self.delays else self.unknown_ns
        return _Arrival(known.ns + wire, known.wires_ns + wire, known.start, known.levels)

    def _run(self) -> None:
        """In the order in which signals pass from registers through logic."""
        waiting: dict[str, int] = {}
        readers: dict[str, list[str]] = defaultdict(list)
        ready = []
        for name, cell in self.cells.items():
            if (kind := kind_of(cell)) and kind != "RAM16":
                for port in (port for port in cell["connections"] if cell["port_directions"][port] == "output"):
                    self.arrivals[name, port] = _Arrival(START_NS[kind], 0.0, f"{cell['type']} {name}", 0)
                continue
            if not cell["type"].startswith(LOGIC):
                continue
            sources = [self.drivers[net][0] for _, net in self._passing(cell) if net in self.drivers]
            sources = [source for source in sources if self.cells[source]["type"].startswith(LOGIC)]
            waiting[name] = len(sources)
            for source in sources:
                readers[source].append(name)
            if not sources:
                ready.append(name)
        while ready:
            name = ready.pop()
            self._evaluate(name)
            for reader in readers[name]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        loops = [name for name, count in waiting.items() if count > 0]
        assert not loops, f"logic without registers that feeds itself, of which no path has an end: {loops[:3]}"

    @staticmethod
    def _passing(cell: Mapping[str, Any]) -> list[tuple[str, int]]:
        """The inputs of a cell of logic that its outputs follow at once."""
        memory = cell["type"].startswith("RAM16")
        return [(port, net) for port, net in _inputs(cell) if not memory or port.startswith(READ)]

    def _evaluate(self, name: str) -> None:
        cell = self.cells[name]
        found = [(port, at) for port, net in self._passing(cell) if (at := self.at(name, port, net))]
        for out, bits in cell["connections"].items():
            if cell["port_directions"][out] != "output" or not bits:
                continue
            ways = [
                _Arrival(at.ns + _through(cell["type"], port, out), at.wires_ns, at.start, at.levels + 1)
                for port, at in found
            ]
            if kind := kind_of(cell):
                ways.append(_Arrival(START_NS[kind], 0.0, f"{cell['type']} {name}", 0))
            if ways:
                self.arrivals[name, out] = max(ways, key=lambda way: way.ns)


def slowest(routed: Mapping[str, Any], sdf: str) -> PathBound:
    """The slowest path of a design, from the netlist and the SDF file that nextpnr has written."""
    cells = {name: cell for module in routed["modules"].values() for name, cell in module.get("cells", {}).items()}
    paths, worst = _Paths(cells, read(sdf.splitlines()).wires), PathBound()
    for name, cell in cells.items():
        kind = kind_of(cell)
        if not kind:
            continue
        if kind == "MULT":
            bare = [one for one in REGISTERS if int(cell["parameters"].get(one, "0"), 2) != 1]
            assert not bare, f"multiplier {name} has no register {bare[0]}"
        if kind == "MULT" and worst.ns < ASSUMED_PRODUCT_NS:
            worst = PathBound(ASSUMED_PRODUCT_NS, 0.0, name, name, 0, inside=True)
        for port, net in _inputs(cell):
            at = None if port in CLOCKS else paths.at(name, port, net)
            if at is not None and at.ns + SETUP_NS[kind] > worst.ns:
                worst = PathBound(at.ns + SETUP_NS[kind], at.wires_ns, at.start, f"{cell['type']} {name}", at.levels)
    return worst
