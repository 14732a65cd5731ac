"""List the deepest logic between registers of a preset on an ECP5, before anything is placed.

    python bench/logic_depth.py ulx3s-85f+sdram:ulx3s-85f --mhz 125

A route of a large device takes an hour; its netlist takes minutes, and what is deep there is what comes late. Each line
is a kind of end (a register of some name, numbers left out), and below it the way to the slowest one. The nanoseconds
order the ends; they are no prediction of a clock, for no wire has a length yet.
"""

import argparse
import json
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from onnxhw.board import Board, find
from onnxhw.build.flow import FlowOptions, elaborate, synthesize
from onnxhw.cli.common.interrupts import script_status
from onnxhw.cli.common.pipeline import target
from onnxhw.cli.common.synthesis import top
from onnxhw.compiler.cost import line_rate
from onnxhw.devices import family_of
from onnxhw.devices.family import NAME
from onnxhw.devices.netlist import top_module

TABLE, WIDE, CARRY_IN, CARRY, CARRY_OUT = 0.24, 0.15, 0.45, 0.07, 0.4
"""Nanoseconds through a lookup table, a multiplexer of tables, into a carry chain, through a bit of it and out of it,
about as nextpnr has them for speed grade 6."""
START = {"TRELLIS_FF": 0.52, "DP16KD": 0.8, "MULT18X18D": 1.0, "TRELLIS_DPR16X4": 0.5}
"""From the clock's edge to the output of a cell with a register; a block RAM's is its output register."""
COMBINATIONAL = {"LUT4": TABLE, "PFUMX": WIDE, "L6MUX21": WIDE, "CCU2C": 0.0}
CLOCKS = {"CLK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3", "WCK"}
SELECTS = {"C0", "SD"}
"""Inputs of a multiplexer that come over a wire; the others come from the tables beside it."""


def wire(loads: int) -> float:
    """Nanoseconds of a wire to so many loads: chosen, not measured. With them the late ends of two routes of the 85F
    (`ulx3s-85f+sdram`, 117 and 114 MHz) were among the deepest of its netlist."""
    return 0.75 + 0.22 * math.log2(max(1, loads))


@dataclass(frozen=True)
class End:
    """A kind of end: when its slowest one has its value, how many there are, and the way there, end first."""

    kind: str
    nanoseconds: float
    count: int
    way: tuple[str, ...]


class Netlist:
    """Arrival times of a flat netlist, as Yosys writes it."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        module = top_module(record)
        self.cells: dict[str, Any] = module["cells"]
        self.drivers: dict[int, tuple[str, str]] = {}
        self.loads: Counter[int] = Counter()
        for name, cell in self.cells.items():
            for pin, bits in cell["connections"].items():
                for bit in (bit for bit in bits if isinstance(bit, int)):
                    if cell["port_directions"][pin] == "output":
                        self.drivers[bit] = name, pin
                    else:
                        self.loads[bit] += 1
        self.names: dict[int, str] = {}
        for name, net in module["netnames"].items():
            for place, bit in enumerate(net["bits"]):
                shown = f"{name}[{place}]" if len(net["bits"]) > 1 else name
                if isinstance(bit, int) and len(shown) < len(self.names.get(bit, shown + " ")):
                    self.names[bit] = shown
        self._arrivals: dict[int, tuple[float, int | None]] = {}

    def arrival(self, bit: int) -> tuple[float, int | None]:
        """When a signal has its value, and the one before it on the slowest way."""
        if bit not in self._arrivals:
            self._arrivals[bit] = 0.0, None  # of a loop, which carry cells seem to have
            if bit in self.drivers:
                self._arrivals[bit] = max(self._ways(*self.drivers[bit]), key=lambda way: way[0], default=(0.0, None))
        return self._arrivals[bit]

    def _ways(self, name: str, out: str) -> Iterator[tuple[float, int | None]]:
        cell = self.cells[name]
        kind = cell["type"]
        if kind not in COMBINATIONAL:
            yield START.get(kind, 0.0), None
            return
        for pin, bit in self._inputs(cell):
            if kind == "CCU2C" and out == "S0" and pin[-1] == "1":
                continue
            before = self.arrival(bit)[0]
            if pin == "CIN":
                yield before + (CARRY if out == "COUT" else CARRY_OUT), bit
            elif kind == "CCU2C":
                yield before + wire(self.loads[bit]) + CARRY_IN, bit
            else:
                wired = kind == "LUT4" or pin in SELECTS
                yield before + COMBINATIONAL[kind] + wired * wire(self.loads[bit]), bit

    @staticmethod
    def _inputs(cell: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] == "input" and pin not in CLOCKS:
                yield from ((pin, bit) for bit in bits if isinstance(bit, int))

    def ends(self) -> list[End]:
        """Every kind of end, the slowest first."""
        slowest: dict[str, tuple[float, int]] = {}
        counts: Counter[str] = Counter()
        for name, cell in self.cells.items():
            if cell["type"] not in START:
                continue
            for pin, bit in self._inputs(cell):
                driver = self.cells[self.drivers[bit][0]]["type"] if bit in self.drivers else ""
                beside = pin == "DI" and driver in COMBINATIONAL  # the table is in the register's slice
                time = self.arrival(bit)[0] + (0.0 if beside else wire(self.loads[bit]))
                kind = f"{without_numbers(name)} {cell['type']}"
                if cell["type"] == "TRELLIS_FF":
                    kind = f"{without_numbers(self.names.get(cell['connections']['Q'][0], name))} {pin}"
                counts[kind] += 1
                if kind not in slowest or time > slowest[kind][0]:
                    slowest[kind] = time, bit
        found = [End(kind, time, counts[kind], tuple(self._way(bit))) for kind, (time, bit) in slowest.items()]
        return sorted(found, key=lambda end: -end.nanoseconds)

    def _way(self, bit: int) -> Iterator[str]:
        at: int | None = bit
        while at is not None:
            cell = self.cells[self.drivers[at][0]]["type"] if at in self.drivers else "port"
            time, before = self.arrival(at)
            yield f"{time:5.2f} {cell} to {self.loads[at]}: {self.names.get(at, at)}"
            at = before


def without_numbers(name: str) -> str:
    """A name without its numbers."""
    return re.sub(r"\[\d+\]|\$\d+|_\d+(?=$|\.)", "", name)


def netlist(design: Any, board: Board) -> str:
    """What place and route would get."""
    silent: Any = SimpleNamespace(tick=lambda seconds: None)
    with tempfile.TemporaryDirectory(prefix="onnxhw-") as scratch:
        for name, text in elaborate(design, board, FlowOptions()).items():
            (Path(scratch) / name).write_text(text)
        synthesize(family_of(board), Path(scratch), silent)
        return (Path(scratch) / f"{NAME}.json").read_text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", metavar="PRESET:BOARD")
    parser.add_argument("--mhz", type=float, help="the clock that is asked for; default: the board's")
    parser.add_argument("--ends", type=int, default=40, help="kinds of ends to list (default 40)")
    args = parser.parse_args()
    preset, _, board_name = args.design.partition(":")
    sys.setrecursionlimit(100_000)  # ways are followed by recursion, and a chain of carries is a long one
    board = find(board_name)
    if family_of(board).name != "ecp5":
        parser.error(f"{board_name} has no ECP5")
    hz = round(args.mhz * 1e6) if args.mhz else board.core_hz_of(preset)
    design = top(board, target(board_name, preset).at(hz).config, hz, line_rate(board, hz), board.link)
    made = netlist(design, board)
    for end in Netlist(json.loads(made)).ends()[: args.ends]:
        print(f"{end.nanoseconds:5.2f} {end.kind}, of {end.count}")
        for line in end.way:
            print(f"      {line}")
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
