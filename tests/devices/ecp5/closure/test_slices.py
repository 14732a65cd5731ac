"""Which cells of a slice are moved as one, where they may lie, and what is told of a tile where they may not."""

from typing import Any

import pytest
from placed_netlist import Netlist

from onnxhw.devices.ecp5.closure.placed import PlacedDesign, Site
from onnxhw.devices.ecp5.closure.slices import Block, block_of, faults, free, sites_of

TILE = (5, 5)


@pytest.fixture
def netlist() -> Netlist:
    """A table with a register behind it, a multiplexer of two tables, a register on M, a carry chain, LUT RAM."""
    found = Netlist()
    found.table("lone", "X2/Y2/SLICEA.K0", "n1", A="q0")
    found.table("fed", "X2/Y2/SLICEB.K1", "n2", A="n1", B="q1")
    found.register("fed_q", "X2/Y2/SLICEB.FF1", "q0", DI="n2")
    found.table("first", "X3/Y2/SLICEA.K0", "", A="q0", F1="n3", M="q1", OFX="wide")
    found.table("second", "X3/Y2/SLICEA.K1", "n3", A="q1")
    found.register("alone", "X3/Y2/SLICEB.FF0", "q1", M="wide", CE="enable")
    found.table("carry", "X4/Y2/SLICEA.K0", "sum", mode="CCU2", A="q0")
    found.register("summed", "X4/Y2/SLICEA.FF0", "q2", DI="sum")
    found.table("cell", "X6/Y2/SLICEA.K0", "read", mode="DPRAM", A="q1")
    found.cell("write", "TRELLIS_RAMW", "X6/Y2/SLICEC.RAMW", A0="q0")
    return found


def test_what_belongs_together_is_one_block(netlist: Netlist) -> None:
    design = PlacedDesign(netlist.record())
    assert block_of(design, "lone") == Block(("lone",), None)
    assert block_of(design, "fed") == block_of(design, "fed_q") == Block(("fed",), "fed_q")
    assert block_of(design, "first") == block_of(design, "second") == Block(("first", "second"), None)
    assert block_of(design, "alone") == Block((), "alone")


def test_chains_memories_and_wider_multiplexers_stay(netlist: Netlist) -> None:
    netlist.table("wider", "X3/Y3/SLICEA.K1", "", FXA="wide", FXB="q0", OFX="widest", M="q0")
    design = PlacedDesign(netlist.record())
    assert [block_of(design, cell) for cell in ("carry", "summed", "cell", "write", "first", "wider")] == [None] * 6


def slots(design: PlacedDesign, cell: str, tile: tuple[int, int] = TILE) -> str:
    block = block_of(design, cell)
    assert block
    return " ".join(f"{slice_}{half}" for slice_, half in free(design, block, tile))


def test_an_empty_tile_takes_everything(netlist: Netlist) -> None:
    design = PlacedDesign(netlist.record())
    every = "A0 A1 B0 B1 C0 C1 D0 D1"
    assert [slots(design, cell) for cell in ("lone", "fed", "alone")] == [every] * 3
    assert slots(design, "first") == "A0 B0 C0 D0"


@pytest.mark.parametrize(
    ("site", "kind", "more", "expected"),
    [
        ("SLICEA.K0", "table", {}, ("A1 B0 B1 C0 C1 D0 D1", "A1 B0 B1 C0 C1 D0 D1", "all", "B0 C0 D0")),
        ("SLICEA.K0", "carry", {}, ("B0 B1 C0 C1 D0 D1", "B0 B1 C0 C1 D0 D1", "all", "B0 C0 D0")),
        ("SLICEC.RAMW", "write", {}, ("A0 A1 B0 B1 D0 D1", "", "", "A0 B0 D0")),
        # registers: another clock, another clock enable, the same of both, and M that a multiplexer wants
        ("SLICEB.FF0", "register", {"CLK": "clk2"}, ("all", "", "", "all")),
        ("SLICEB.FF0", "register", {"CE": "enable"},
         ("all", "A0 A1 C0 C1 D0 D1", "A0 A1 B1 C0 C1 D0 D1", "all")),
        ("SLICEB.FF0", "register", {"mux": "INV"},
         ("all", "A0 A1 C0 C1 D0 D1", "A0 A1 C0 C1 D0 D1", "all")),
        ("SLICEB.FF0", "register", {"LSR": "q0"}, ("all", "", "", "all")),
        *(("SLICEB.FF0", "register", {"parameters": {name: value}}, ("all", "", "", "all"))
          for name, value in (("SRMODE", "ASYNC"), ("CLKMUX", "INV"), ("LSRMUX", "INV"))),
        ("SLICEB.FF0", "register", {"parameters": {"SRMODE": "LSR_OVER_CE", "CLKMUX": "CLK", "LSRMUX": "LSR"}},
         ("all", "A0 A1 B1 C0 C1 D0 D1", "A0 A1 C0 C1 D0 D1", "all")),
        ("SLICEB.FF0", "register", {"parameters": {"GSR": "DISABLED"}},
         ("all", "A0 A1 C0 C1 D0 D1", "A0 A1 C0 C1 D0 D1", "all")),
        ("SLICEB.FF0", "register", {"M": "q1"}, ("all", "A0 A1 B1 C0 C1 D0 D1", "A0 A1 C0 C1 D0 D1", "A0 C0 D0")),
    ],
)  # fmt: skip
def test_what_lies_in_a_tile_decides(
    netlist: Netlist, site: str, kind: str, more: dict[str, Any], expected: tuple[str, ...]
) -> None:
    place = f"X5/Y5/{site}"
    if kind == "register":
        netlist.register("other", place, "q9", **more)
    elif kind == "write":
        netlist.cell("other", "TRELLIS_RAMW", place, A0="q0")
    else:
        netlist.table("other", place, "n9", mode="CCU2" if kind == "carry" else "LOGIC", A="q0")
    design = PlacedDesign(netlist.record())
    every = {"lone": "A0 A1 B0 B1 C0 C1 D0 D1", "fed": "A0 A1 B0 B1 C0 C1 D0 D1", "alone": "A0 A1 B0 B1 C0 C1 D0 D1",
             "first": "A0 B0 C0 D0"}  # fmt: skip
    found = tuple("all" if (here := slots(design, cell)) == every[cell] else here for cell in every)
    assert found == expected
    assert not faults(design)
    for cell in every:  # wherever it may be put, nothing is wrong
        block = block_of(design, cell)
        assert block
        before = design.state()
        for slice_, half in list(free(design, block, TILE)):
            for name, to in sites_of(block, TILE, slice_, half):
                design.move(name, to)
            assert not faults(design), (cell, slice_, half)
            design.restore(before)


@pytest.mark.parametrize(
    ("cell", "to", "what"),
    [
        ("alone", Site((2, 2), "B", "FF", 0), "clock enables of slice B"),
        ("lone", Site((4, 2), "A", "K", 1), "carry chain in slice A"),
        ("lone", Site((6, 2), "C", "K", 0), "a table where LUT RAM has its write logic"),
        ("fed_q", Site((5, 5), "A", "FF", 0), "DI0 of slice A is not of the table beside it"),
        ("second", Site((5, 5), "A", "K", 1), "multiplexer of slice A is not of the table beside it"),
        ("alone", Site((3, 2), "A", "FF", 0), "two signals on M0 of slice A"),
    ],
)
def test_what_cannot_lie_together_is_told(netlist: Netlist, cell: str, to: Site, what: str) -> None:
    design = PlacedDesign(netlist.record())
    assert not faults(design)
    design.move(cell, to)
    tile = (3, 2) if cell == "second" else to.tile
    assert faults(design) == {f"{tile}: {what}"}


def test_registers_of_two_clocks_in_a_tile_are_told(netlist: Netlist) -> None:
    netlist.register("other", "X2/Y2/SLICED.FF0", "q9", CLK="clk2", M="q0")
    assert faults(PlacedDesign(netlist.record())) == {"(2, 2): clocks or resets"}
