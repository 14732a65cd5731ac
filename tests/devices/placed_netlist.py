"""A placed design of a few cells, as nextpnr writes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from onnxhw.devices.ecp5.closure.moves import wire
from onnxhw.devices.ecp5.closure.placed import PlacedDesign
from onnxhw.devices.sdf import Delays, Pin


class Netlist:
    """Cells by name; `cell` adds one, with nets by name instead of numbers."""

    def __init__(self) -> None:
        self.cells: dict[str, Any] = {}
        self.bits: dict[str, int] = {}
        self.routes: dict[str, str] = {}
        self.clocks = {"clk"}

    def cell(self, name: str, kind: str, site: str, outputs: str = "", parameters: Any = None, **nets: str) -> str:
        """`site` as nextpnr has it; of the ports in `nets` those named in `outputs` are driven by the cell."""
        ports = {port: [self.bits.setdefault(net, len(self.bits) + 2)] if net else [] for port, net in nets.items()}
        self.cells[name] = {
            "type": kind, "parameters": parameters or {}, "attributes": {"NEXTPNR_BEL": site}, "connections": ports,
            "port_directions": {port: "output" if port in outputs.split() else "input" for port in ports},
        }  # fmt: skip
        return name

    def table(self, name: str, site: str, out: str, mode: str = "LOGIC", **nets: str) -> str:
        return self.cell(name, "TRELLIS_COMB", site, "F OFX", {"MODE": mode}, F=out, **nets)

    def register(
        self, name: str, site: str, out: str, mux: str = "CE",
        parameters: Mapping[str, str] = MappingProxyType({}), **nets: str,
    ) -> str:  # fmt: skip
        more = {"CEMUX": mux, **parameters}
        return self.cell(name, "TRELLIS_FF", site, "Q", more, **{"CLK": "clk", "CE": "", "Q": out, **nets})

    def record(self) -> dict[str, Any]:
        nets = {
            net: {"bits": [bit], "attributes": {"ROUTING": self.routes[net]} if net in self.routes else {}}
            for net, bit in self.bits.items()
        }
        for net in self.clocks & nets.keys():
            nets[net]["attributes"]["ECP5_IS_GLOBAL"] = "1"
        settings = {"placer": "heap", "seed": "1"}
        top = {"attributes": {"top": "1"}, "cells": self.cells, "netnames": nets, "settings": settings}
        return {"modules": {"top": top}}


def detour(count: int = 1, kind: str = "CE") -> Netlist:
    """Two registers in row 5, ten columns from each other, which stay; on the path `count` tables, five rows above."""
    netlist = Netlist()
    netlist.register("start", "X5/Y5/SLICEA.FF0", "q", M="")
    for n in range(count):
        netlist.table(f"t{n}", f"X{8 + n}/Y10/SLICEA.K0", f"n{n}", A=f"n{n - 1}" if n else "q")
    netlist.register("end", "X15/Y5/SLICEA.FF0", "out", **{kind: f"n{count - 1}"})  # without M it is bound to its place
    for x in range(5, 16):
        for y in range(4, 12):  # something in every tile: others are no tiles of slices
            netlist.table(f"other{x}_{y}", f"X{x}/Y{y}/SLICED.K1", "", A="")
    return netlist


def between(a: tuple[int, int], b: tuple[int, int]) -> float:
    return float(wire(abs(a[0] - b[0]), abs(a[1] - b[1])))


def delays_of(design: PlacedDesign, wires: Mapping[tuple[str, str], float]) -> Delays:
    """Every wire takes what is estimated, those named by cell and port what they are given."""
    delays = Delays({}, {}, {})
    for name, cell in design.cells.items():
        for port, bit, drives in design.pins(name):
            source = design.drivers.get(bit)
            if not drives and source and port != "CLK":
                delay = between(design.places[source.cell], design.places[name])
                delays.wires[Pin(name, port)] = source, wires.get((name, port), delay)
        if cell["type"] == "TRELLIS_FF":
            delays.paths[Pin(name, "Q")] = [(Pin(name, "CLK"), 525.0)]
            ends = {"DI", "M", "CE", "LSR"} & design.connected(name)
            delays.setups |= {Pin(name, port): ("CLK", 0.0) for port in sorted(ends)}
        else:
            out = "OFX" if design.bit(name, "OFX") else "F"
            inputs = sorted(design.connected(name) & {"A", "B", "C", "D", "F1", "M"})
            delays.paths[Pin(name, out)] = [(Pin(name, port), 240.0) for port in inputs]
    return delays
