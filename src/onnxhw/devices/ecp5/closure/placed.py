"""`PlacedDesign`: nextpnr's netlist of a placed and routed design, with where its cells lie, to be changed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...netlist import top_module
from ...sdf import Pin
from .routes import without_branches

Tile = tuple[int, int]
"""Column and row of a tile of four slices."""
SLICES = "ABCD"
OF_A_SLICE = ("CE", "LSR")
PINS = ("A", "B", "C", "D", "M", *OF_A_SLICE)
"""Inputs of a slice that wires from elsewhere lead to."""
BEL, ROUTE, GLOBAL = "NEXTPNR_BEL", "ROUTING", "ECP5_IS_GLOBAL"
"""nextpnr's attributes: where a cell lies, by which wires a net goes, that it goes over the clock network."""
_SITE = re.compile(r"X(\d+)/Y(\d+)/SLICE([ABCD])\.(K|FF|RAMW)([01]?)$")
_PLACE = re.compile(r"X(\d+)/Y(\d+)/")


class Site(NamedTuple):
    """A lookup table, a register or the write logic of LUT RAM in a tile: slice A to D; "K", "FF" or "RAMW"; and which
    of the slice's two halves (logic cells), 0 where it has none."""

    tile: Tile
    slice: str
    kind: str
    half: int

    @property
    def name(self) -> str:
        """As nextpnr has it."""
        half = "" if self.kind == "RAMW" else str(self.half)
        return f"X{self.tile[0]}/Y{self.tile[1]}/SLICE{self.slice}.{self.kind}{half}"

    @property
    def logic_cell(self) -> int:
        """Of the eight of a tile."""
        return 2 * SLICES.index(self.slice) + self.half

    def pin(self, port: str) -> str:
        """nextpnr's name of the wire that ends at one of `PINS`; those of `OF_A_SLICE` are of both halves."""
        number = SLICES.index(self.slice) if port in OF_A_SLICE else self.logic_cell
        return f"X{self.tile[0]}/Y{self.tile[1]}/{port}{number}_SLICE"


def place(cell: Mapping[str, Any]) -> Tile | None:
    """Column and row of a cell; None if it lies nowhere."""
    found = _PLACE.match(cell["attributes"].get(BEL, ""))
    return (int(found[1]), int(found[2])) if found else None


class PlacementState(NamedTuple):
    """Sites of cells and routes of nets, by name."""

    sites: dict[str, Site]
    routes: dict[str, str]


class PlacedDesign:
    """A design as nextpnr's option ``--write`` leaves it.

    `places` are the tiles of cells by name, `sites` those of cells in slices; `tiles` has what lies in each tile of
    slices, by site. `drivers` and `readers` are of nets by their bit.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        module = top_module(record)
        self.cells: dict[str, Any] = module["cells"]
        self.nets: dict[str, Any] = module["netnames"]
        self.settings: dict[str, str] = module["settings"]
        self.places: dict[str, Tile] = {}
        self.sites: dict[str, Site] = {}
        self.tiles: dict[Tile, dict[Site, str]] = defaultdict(dict)
        self.drivers: dict[int, Pin] = {}
        self.readers: dict[int, list[Pin]] = defaultdict(list)
        for name, cell in self.cells.items():
            if at := place(cell):
                self.places[name] = at
            if found := _SITE.match(cell["attributes"].get(BEL, "")):
                site = Site((int(found[1]), int(found[2])), found[3], found[4], int(found[5] or 0))
                self.sites[name], self.tiles[site.tile][site] = site, name
            for port, bits in cell["connections"].items():
                for bit in bits:
                    if cell["port_directions"][port] == "output":
                        self.drivers[bit] = Pin(name, port)
                    else:
                        self.readers[bit].append(Pin(name, port))
        self._global = {net["bits"][0] for net in self.nets.values() if GLOBAL in net["attributes"]}
        self._driven: set[int] = set()
        self._cut: set[Pin] = set()

    def bit(self, cell: str, port: str) -> int | None:
        """The net at a pin; None if there is none."""
        bits = self.cells[cell]["connections"].get(port)
        return bits[0] if bits else None

    def connected(self, cell: str) -> set[str]:
        """The ports of a cell that have a net."""
        return {port for port, bits in self.cells[cell]["connections"].items() if bits}

    def read_by(self, cell: str, port: str) -> list[Pin]:
        """The pins that read an output."""
        bit = self.bit(cell, port)
        return [] if bit is None else self.readers.get(bit, [])

    def driver(self, cell: str, port: str) -> Pin | None:
        """The pin that drives an input."""
        bit = self.bit(cell, port)
        return None if bit is None else self.drivers.get(bit)

    def pins(self, cell: str) -> Iterator[tuple[str, int, bool]]:
        """Ports with a net, the net, and whether the cell drives it."""
        entry = self.cells[cell]
        for port, bits in entry["connections"].items():
            if bits:
                yield port, bits[0], entry["port_directions"][port] == "output"

    def is_global(self, bit: int | None) -> bool:
        """Whether a net goes over the device's clock network."""
        return bit in self._global

    def parameter(self, cell: str, name: str) -> str | None:
        """A parameter as text."""
        value = self.cells[cell]["parameters"].get(name)
        return None if value is None else str(value)

    def move(self, cell: str, site: Site) -> None:
        """Put a cell in a slice elsewhere. Wires to it and from it have to be routed again."""
        assert site not in self.tiles[site.tile], site
        self._put({cell: site})
        self._driven |= {bit for _, bit, drives in self.pins(cell) if drives}

    def _put(self, sites: Mapping[str, Site]) -> None:
        for cell in sites:
            del self.tiles[self.sites[cell].tile][self.sites[cell]]
        for cell, site in sites.items():
            self.tiles[site.tile][site] = cell
            self.sites[cell], self.places[cell] = site, site.tile
            self.cells[cell]["attributes"][BEL] = site.name

    def cut(self, sink: Pin) -> None:
        """Have the wire to an input of a slice routed again."""
        self._cut.add(sink)

    def can_cut(self, sink: Pin) -> bool:
        """Whether it is known where the wire to an input ends."""
        return sink.cell in self.sites and sink.port in PINS

    def unroute(self) -> None:
        """Rip up the routes of nets whose driver was moved, and the branches that were cut; of other nets nextpnr
        itself rips up the branch to a pin that was moved."""
        cut: dict[int, list[str]] = defaultdict(list)
        for cell, port in self._cut:
            bit = self.bit(cell, port)
            if bit is not None and bit not in self._driven:
                cut[bit].append(self.sites[cell].pin(port))
        for net in self.nets.values():
            attributes, bits = net["attributes"], net["bits"]
            if not self._driven.isdisjoint(bits):
                attributes.pop(ROUTE, None)
            elif ROUTE in attributes and bits and bits[0] in cut:
                attributes[ROUTE] = without_branches(attributes[ROUTE], cut[bits[0]])
        self._driven, self._cut = set(), set()

    def state(self) -> PlacementState:
        """Where everything lies and how it is routed."""
        routes = {name: route for name, net in self.nets.items() if (route := net["attributes"].get(ROUTE))}
        return PlacementState(dict(self.sites), routes)

    def restore(self, state: PlacementState) -> None:
        """Be as at an earlier `state`."""
        self._put({cell: site for cell, site in state.sites.items() if self.sites[cell] != site})
        self.take_routes(state.routes)
        self._driven, self._cut = set(), set()

    def take_routes(self, routes: Mapping[str, str]) -> None:
        """Have these routes by net, and no others."""
        for name, net in self.nets.items():
            if name in routes:
                net["attributes"][ROUTE] = routes[name]
            else:
                net["attributes"].pop(ROUTE, None)
