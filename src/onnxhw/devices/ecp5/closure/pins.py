"""Carry cells and LUT RAM, whose inputs nextpnr's router must not exchange as it does those of other lookup tables.

Which tables these are it asks when a cell is put into its place (0.11.1: `bindBel`), and of cells that come with their
place in a file it does so before it knows what they are (`assignArchInfo`): it reads memory that nothing was written
to. Inputs of a carry cell would be exchanged, and a chain add wrongly; those of other tables could be or not, so that
the route depended on the length of names. So all tables come without a place (`constrained`), with the constraint that
a user would write, and the placer puts them there; it looks whether all that lies in a tile may lie there, too.
`exchanged` looks at what was routed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .placed import BEL, ROUTE, PlacedDesign
from .slices import CARRY, LOGIC

CONSTRAINT = "BEL"
"""The attribute that tells the placer where a cell has to be."""
SETTINGS = {"placer": "sa", "placer1/startTemp": "0.000000"}
"""The placer for it, and a setting with which it has done, with nothing else to place, after five looks at the timing;
values are as nextpnr writes them. In a file they count more than options."""
MULTIPLIERS, UNCONNECTED = ("MULT18X18D", "ALU54B"), ["x"]
"""Cells of which the placer asks for every port: it knows none that has no connection at all in a file."""
_INPUT = re.compile(r"X(\d+)/Y(\d+)/([ABCD])([0-7])_SLICE;[^;]*?_([ABCD])\4->")
PAIRS = {"A": "B", "B": "A", "C": "D", "D": "C"}
"""What may be exchanged in half of a carry cell: both are of the same lookup table of two inputs."""


@contextmanager
def constrained(design: PlacedDesign) -> Iterator[None]:
    """Within the block the design is for the placer that does no more than put lookup tables where they are."""
    bound = [design.cells[cell]["attributes"] for cell, site in design.sites.items() if site.kind == "K"]
    ports = [(cell["connections"], port) for cell in design.cells.values() if cell["type"] in MULTIPLIERS
             for port, bits in cell["connections"].items() if not bits]  # fmt: skip
    before = dict(design.settings)
    design.settings.update(SETTINGS)
    for attributes in bound:
        attributes[CONSTRAINT] = attributes.pop(BEL)
    for connections, port in ports:
        connections[port] = UNCONNECTED
    try:
        yield
    finally:
        for connections, port in ports:
            connections[port] = []
        for attributes in bound:
            attributes[BEL] = attributes.pop(CONSTRAINT)
        design.settings.clear()
        design.settings.update(before)


def exchanged(design: PlacedDesign) -> set[str]:
    """The inputs of carry cells and LUT RAM that lead to the wrong pin, in words."""
    sites = [(design.sites[cell], design.parameter(cell, "MODE")) for cell in _other(design)]
    modes = {(*site.tile, site.logic_cell): mode for site, mode in sites}
    return {
        f"{port}{number} of X{column}/Y{row} comes from {pin}"
        for column, row, port, number, pin in _inputs(design)
        if (kind := modes.get((column, row, number))) and pin not in (port, PAIRS[port] if kind == CARRY else port)
    }


def _other(design: PlacedDesign) -> list[str]:
    """Carry cells and LUT RAM."""
    return [cell for cell, site in design.sites.items()
            if site.kind == "K" and (design.parameter(cell, "MODE") or LOGIC) != LOGIC]  # fmt: skip


def _inputs(design: PlacedDesign) -> Iterator[tuple[int, int, str, int, str]]:
    """Tile, port, logic cell, and the pin that the wire leads to, of all inputs of tables."""
    for net in design.nets.values():
        for found in _INPUT.finditer(net["attributes"].get(ROUTE, "")):
            yield int(found[1]), int(found[2]), found[3], int(found[4]), found[5]
