"""The longest paths of an ECP5 design that is placed and not routed yet, of which nextpnr tells the clock alone.

    nextpnr-ecp5 ... --no-route --write placed.json
    python scripts/placed_paths.py placed.json              one line for each kind of path
    python scripts/placed_paths.py placed.json --paths 3    and the cells of the first ones

Wires take about what nextpnr's placer supposes for speed grade 6 (ecp5/arch.cc, `predictDelay`), cells about what its
database has. It is too much, so what counts is the order: 25.1 ns here were 17.5 to nextpnr, which in turn took routed
9.1 ns for 11.5 before. Constants and clocks are left out.
"""

import argparse
import json
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Place = tuple[int, int]

CLOCKS = {"CLK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3", "WCK", "WRE", "WD"}
"""Inputs through which no path goes on."""
OUTPUT_NS = {"TRELLIS_FF": 0.53, "DP16KD": 0.6, "MULT18X18D": 0.6, "IOLOGIC": 0.5}
"""From a clock's edge to an output; other cells but logic begin no path."""
DIRECT = {("FCO", "FCI"), ("F", "DI"), ("OFX", "DI"), ("F", "FXA"), ("F", "FXB"), ("OFX", "FXA"), ("OFX", "FXB")}
"""Outputs and inputs of a tile that are connected without a wire."""


@dataclass
class Cell:
    """A placed cell: its inputs and outputs by port, as numbers of nets."""

    kind: str
    at: Place | None
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """When a net's value is there, in ns, and the net that it waited for last."""

    ns: float
    before: int | None


class Design:
    """The cells and nets of a netlist that nextpnr wrote, and when each net's value is there."""

    def __init__(self, netlist: dict[str, Any]) -> None:
        module = netlist["modules"]["top"]
        self.cells: dict[str, Cell] = {}
        self.driver: dict[int, tuple[str, str]] = {}
        self.readers: dict[int, list[tuple[str, str]]] = {}
        for name, record in module["cells"].items():
            found = re.match(r"X(\d+)/Y(\d+)/", record["attributes"].get("NEXTPNR_BEL", ""))
            cell = Cell(record["type"], (int(found[1]), int(found[2])) if found else None)
            for port, bits in record["connections"].items():
                if not bits or not isinstance(bits[0], int):
                    continue
                if record["port_directions"][port] == "input":
                    cell.inputs[port] = bits[0]
                    self.readers.setdefault(bits[0], []).append((name, port))
                else:
                    cell.outputs[port] = bits[0]
                    self.driver[bits[0]] = name, port
            self.cells[name] = cell
        self.names: dict[int, str] = {}
        for name, record in module["netnames"].items():
            for bit in record["bits"]:
                self.names.setdefault(bit, name)
        self.arrivals: dict[int, Arrival] = {}
        self._arrive()

    def _arrive(self) -> None:
        logic = {name: cell for name, cell in self.cells.items() if cell.kind == "TRELLIS_COMB"}
        missing = {name: sum(net in self.driver for net in _data(cell).values()) for name, cell in logic.items()}
        for cell in self.cells.values():
            if (ns := OUTPUT_NS.get(cell.kind)) is not None:
                self.arrivals |= {net: Arrival(ns, None) for net in cell.outputs.values()}
        ready = deque(net for net in self.driver if self.driver[net][0] not in logic)
        for name in [name for name, count in missing.items() if not count]:
            ready.extend(logic[name].outputs.values())
        while ready:
            for name, port in self.readers.get(ready.popleft(), ()):
                if name not in logic or port in CLOCKS:
                    continue
                missing[name] -= 1
                if missing[name] == 0:
                    self._through(logic[name])
                    ready.extend(logic[name].outputs.values())

    def _through(self, cell: Cell) -> None:
        for out, made in cell.outputs.items():
            ways = [
                Arrival(self.at(net, cell, port) + _logic_ns(port, out), net)
                for port, net in _data(cell).items()
                if net in self.arrivals
            ]
            if ways:
                self.arrivals[made] = max(ways, key=lambda way: way.ns)

    def at(self, net: int, reader: Cell, port: str) -> float:
        """When a net's value is at a reader's port."""
        name, out = self.driver[net]
        return self.arrivals[net].ns + (0.0 if (out, port) in DIRECT else wire_ns(self.cells[name].at, reader.at))

    def ends(self) -> list[tuple[float, str, int]]:
        """The time, the cell and the net of every input of a register, latest first."""
        found = [
            (self.at(net, cell, port), name, net)
            for name, cell in self.cells.items()
            if cell.kind != "TRELLIS_COMB"
            for port, net in _data(cell).items()
            if net in self.arrivals
        ]
        return sorted(found, reverse=True)

    def path(self, net: int) -> list[int]:
        """The nets of a path, its end first."""
        found = [net]
        while (before := self.arrivals[found[-1]].before) is not None:
            found.append(before)
        return found


def wire_ns(start: Place | None, end: Place | None) -> float:
    """What nextpnr's placer supposes of a wire between two tiles."""
    if start is None or end is None:
        return 0.0
    across, down = (abs(a - b) for a, b in zip(start, end, strict=True))
    return 0.120 * (6 + max(across - 5, 0) + max(down - 5, 0) + 2 * (min(across, 5) + min(down, 5)))


def _data(cell: Cell) -> dict[str, int]:
    return {port: net for port, net in cell.inputs.items() if port not in CLOCKS}


def _logic_ns(port: str, out: str) -> float:
    """Through a lookup table, a carry chain's link, or a multiplexer behind lookup tables; about."""
    if port == "FCI":
        return 0.07 if out == "FCO" else 0.44
    if out == "FCO":
        return 0.45
    return 0.15 if port in ("FXA", "FXB", "F1") else 0.24


def _kind(name: str) -> str:
    """A name without its numbers and what the tools put behind it."""
    return re.sub(r"\d+", "#", re.sub(r"(_TRELLIS_FF|_LUT4|_PFUMX|_CCU2C|\$).*", "", name))


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netlist", type=Path)
    parser.add_argument("--kinds", type=int, default=40, help="how many lines")
    parser.add_argument("--paths", type=int, default=0, help="how many with their cells")
    arguments = parser.parse_args()
    design = Design(json.loads(arguments.netlist.read_text(encoding="utf-8")))
    counts, first = Counter[tuple[str, str]](), dict[tuple[str, str], tuple[float, int]]()
    for ns, name, net in design.ends():
        key = _kind(design.names[design.path(net)[-1]]), _kind(name)
        counts[key] += 1
        first.setdefault(key, (ns, net))
    for key, (ns, net) in [*first.items()][: arguments.kinds]:
        print(f"{ns:6.2f} ns  {counts[key]:5} ends  {key[0]} -> {key[1]}")
        arguments.paths -= 1
        for at in design.path(net) if arguments.paths >= 0 else ():
            cell = design.cells[design.driver[at][0]]
            print(f"    {design.arrivals[at].ns:6.2f} ns  {cell.at} {cell.kind}  {design.names[at]}")


if __name__ == "__main__":
    main()
