"""What of a slice can be moved as one, where it may lie, and `faults`: the rules of a tile, looked at as a whole.

A tile has four slices, A to D, of two logic cells; a logic cell is a lookup table (site K) and a register (FF).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...sdf import Pin
from .placed import SLICES, PlacedDesign, Site, Tile

TABLE, REGISTER = "TRELLIS_COMB", "TRELLIS_FF"
INPUTS = {"A", "B", "C", "D"}
LOGIC, CARRY, MEMORY = "LOGIC", "CCU2", "DPRAM"
"""Modes of a lookup table: nothing else, half of a carry cell, LUT RAM."""
OF_SLICE = ("CE", "CEMUX", "GSR")
OF_TILE = ("CLK", "LSR", "CLKMUX", "LSRMUX", "SRMODE")
"""Nets and parameters that registers of a slice, and those of a tile, have in common. (A tile has two clocks and two
resets; nextpnr says which slice has which. One of each is what is looked for here.)"""
NETS = ("CE", "CLK", "LSR")
DEFAULTS = {"CEMUX": "CE", "GSR": "ENABLED", "CLKMUX": "CLK", "LSRMUX": "LSR", "SRMODE": "LSR_OVER_CE"}
"""What nextpnr takes where a register has no such parameter (its pack.cc and arch.cc)."""


class Block(NamedTuple):
    """Cells that are moved as one: a lookup table, with the register that it feeds directly if there is one; a register
    alone; or two lookup tables with the multiplexer (PFUMX) of both, which is part of the first."""

    tables: tuple[str, ...]
    register: str | None

    @property
    def cells(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.tables, *([self.register] if self.register else ()))

    @property
    def output(self) -> str:
        """The port of the first table that leads out of it."""
        return "OFX" if len(self.tables) == 2 else "F"


def block_of(design: PlacedDesign, cell: str) -> Block | None:
    """The block that a cell belongs to; None if it is bound to where it lies: carry chains, LUT RAM, multiplexers of
    more than two tables."""
    if cell not in design.sites:
        return None
    kind, ports = design.cells[cell]["type"], design.connected(cell)
    if kind == TABLE:
        return _wide(design, cell, ports) or _table(design, cell, ports)
    if kind != REGISTER:
        return None
    if "DI" not in ports:
        return Block((), cell) if "M" in ports else None
    driver = design.driver(cell, "DI")
    if driver is None or driver.cell not in design.sites or design.sites[driver.cell].kind != "K":
        return None
    found = block_of(design, driver.cell)
    return found if found and found.register == cell else None


def _logic(design: PlacedDesign, *tables: str) -> bool:
    return all((design.parameter(table, "MODE") or LOGIC) == LOGIC for table in tables)


def _bound(readers: list[Pin], *ports: str) -> bool:
    """Whether an output leads to such a port: those of the same slice or the next."""
    return any(pin.port in ports for pin in readers)


def _table(design: PlacedDesign, cell: str, ports: set[str]) -> Block | None:
    readers = design.read_by(cell, "F")
    if not _logic(design, cell) or not ports <= {*INPUTS, "F"} or _bound(readers, "F1", "FXA", "FXB"):
        return None
    fed = [pin.cell for pin in readers if pin.port == "DI"]
    return Block((cell,), fed[0] if fed else None) if len(fed) < 2 else None


def _wide(design: PlacedDesign, cell: str, ports: set[str]) -> Block | None:
    if "OFX" not in ports:
        readers = design.read_by(cell, "F")
        if len(readers) != 1 or readers[0].port != "F1":
            return None
        cell = readers[0].cell
        ports = design.connected(cell)
    driver = design.driver(cell, "F1")
    if driver is None or len(design.read_by(driver.cell, "F")) != 1 or not _logic(design, cell, driver.cell):
        return None
    if "F" in ports and not design.read_by(cell, "F"):
        ports = ports - {"F"}
    whole = ports <= {*INPUTS, "F1", "M", "OFX"} and design.connected(driver.cell) <= {*INPUTS, "F"}
    bound = _bound(design.read_by(cell, "OFX"), "FXA", "FXB", "DI")
    return Block((cell, driver.cell), None) if whole and not bound else None


class _Contents:
    """What lies in a tile."""

    def __init__(self, design: PlacedDesign, tile: Tile) -> None:
        self.tables: dict[tuple[str, int], str] = {}
        self.registers: dict[tuple[str, int], str] = {}
        self.memory = False
        for site, cell in design.tiles.get(tile, {}).items():
            if site.kind == "RAMW":
                self.memory = True
            elif site.kind == "K":
                self.tables[site.slice, site.half] = cell
                self.memory |= design.parameter(cell, "MODE") == MEMORY
            else:
                self.registers[site.slice, site.half] = cell


def _common(design: PlacedDesign, register: str, names: Iterable[str]) -> tuple[object, ...]:
    """Nets and parameters of a register, a parameter that it does not have as nextpnr takes it."""
    return tuple(
        design.bit(register, name) if name in NETS else design.parameter(register, name) or DEFAULTS[name]
        for name in names
    )


def goes_with(design: PlacedDesign, register: str | None, other: str | None) -> bool:
    """Whether two registers, of which there may be none, can be in one tile."""
    return not (register and other) or _common(design, register, OF_TILE) == _common(design, other, OF_TILE)


def free(design: PlacedDesign, block: Block, tile: Tile) -> Iterator[tuple[str, int]]:
    """The logic cells (slice, half) of a tile where a block may lie, of two tables the first half of a slice."""
    found = _Contents(design, tile)
    for slice_ in SLICES:
        for half in (0,) if len(block.tables) == 2 else (0, 1):
            if block.tables and not _tables_fit(design, block, found, slice_, half):
                continue
            if block.register and not _register_fits(design, block, found, slice_, half):
                continue
            yield slice_, half


def _tables_fit(design: PlacedDesign, block: Block, found: _Contents, slice_: str, half: int) -> bool:
    if (slice_, half) in found.tables or (found.memory and slice_ == "C"):  # LUT RAM takes C for its write logic
        return False
    other = found.tables.get((slice_, 1 - half))
    if len(block.tables) == 1:
        return other is None or _logic(design, other)
    register = found.registers.get((slice_, 0))
    return other is None and not (register and "M" in design.connected(register))  # M is the multiplexer's select


def _register_fits(design: PlacedDesign, block: Block, found: _Contents, slice_: str, half: int) -> bool:
    register = block.register
    assert register is not None
    if (slice_, half) in found.registers or found.memory:
        return False
    others = {key: cell for key, cell in found.registers.items() if cell != register}
    if not all(goes_with(design, register, cell) for cell in others.values()):
        return False
    beside = others.get((slice_, 1 - half))
    if beside and _common(design, beside, OF_SLICE) != _common(design, register, OF_SLICE):
        return False
    table = found.tables.get((slice_, half))
    return bool(block.tables) or not (table and "M" in design.connected(table))


def sites_of(block: Block, tile: Tile, slice_: str, half: int) -> Iterator[tuple[str, Site]]:
    """Where the cells of a block lie, if it has been put into a logic cell."""
    for number, table in enumerate(block.tables):
        yield table, Site(tile, slice_, "K", half + number)
    if block.register:
        yield block.register, Site(tile, slice_, "FF", half)


def faults(design: PlacedDesign) -> set[str]:
    """Every tile where cells lie together that cannot, in words."""
    found: dict[Tile, set[str]] = defaultdict(set)
    for tile in design.tiles:
        contents = _Contents(design, tile)
        registers = contents.registers
        if len({_common(design, cell, OF_TILE) for cell in registers.values()}) > 1:
            found[tile].add("clocks or resets")
        for slice_ in SLICES:
            tables = [contents.tables.get((slice_, half)) for half in (0, 1)]
            both = [cell for half in (0, 1) if (cell := registers.get((slice_, half)))]
            if len({_common(design, cell, OF_SLICE) for cell in both}) > 1:
                found[tile].add(f"clock enables of slice {slice_}")
            if len({design.parameter(cell, "MODE") == CARRY for cell in tables if cell}) > 1:
                found[tile].add(f"carry chain in slice {slice_}")
            for half, table in enumerate(tables):
                found[tile].update(_half_faults(design, contents, slice_, half, table, tables[1]))
    return {f"{tile}: {what}" for tile, several in found.items() for what in several}


def _half_faults(
    design: PlacedDesign, contents: _Contents, slice_: str, half: int, table: str | None, second: str | None
) -> Iterator[str]:
    register = contents.registers.get((slice_, half))
    if table and register and "M" in design.connected(table) and "M" in design.connected(register):
        yield f"two signals on M{half} of slice {slice_}"
    if register and "DI" in design.connected(register):
        driver = design.driver(register, "DI")
        if driver is None or driver.cell != table:
            yield f"DI{half} of slice {slice_} is not of the table beside it"
    if table and (driver := design.driver(table, "F1")) and driver.cell != second:
        yield f"multiplexer of slice {slice_} is not of the table beside it"
    if table and contents.memory and slice_ == "C" and _logic(design, table):
        yield "a table where LUT RAM has its write logic"
