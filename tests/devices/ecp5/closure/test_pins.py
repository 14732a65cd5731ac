"""Inputs of carry cells and LUT RAM keep their pins: nextpnr is asked for it, and what it did is looked at."""

import json

import pytest
from placed_netlist import Netlist

from onnxhw.devices.ecp5.closure.pins import constrained, exchanged
from onnxhw.devices.ecp5.closure.placed import PlacedDesign


@pytest.fixture
def netlist() -> Netlist:
    found = Netlist()
    found.register("start", "X2/Y2/SLICEA.FF0", "q", M="")
    for slice_, mode in (("A", "LOGIC"), ("B", "CCU2"), ("C", "RAMW_BLOCK"), ("D", "DPRAM")):
        found.table(mode, f"X3/Y4/SLICE{slice_}.K1", f"of {mode}", mode=mode, A="q")
    found.cell("product", "MULT18X18D", "X9/Y9/MULT18", "P0", CLK0="clk", CLK1="", A0="q", P0="p")
    return found


@pytest.mark.parametrize(
    ("number", "port", "pin", "wrong"),
    [
        (1, "A", "D", False), (1, "A", "A", False),  # a plain table
        (3, "A", "A", False), (3, "A", "B", False), (3, "A", "C", True), (3, "A", "D", True),
        (3, "B", "A", False), (3, "C", "D", False), (3, "D", "B", True),
        (5, "A", "A", False), (5, "A", "B", True), (5, "C", "D", True),
        (7, "B", "B", False), (7, "B", "A", True), (7, "D", "C", True),
        (2, "A", "D", False),  # nothing lies there
    ],
)  # fmt: skip
def test_an_exchange_is_wrong_where_the_table_is_more_than_that(
    netlist: Netlist, number: int, port: str, pin: str, wrong: bool
) -> None:
    netlist.routes["q"] = (
        f"X2/Y2/Q0_SLICE;;1;X3/Y4/{port}{number}_SLICE;X3/Y4/0_0_{pin}{number}->0_0_{port}{number}_SLICE;1;"
        f"X3/Y4/{pin}{number};X3/Y4/0_3_V02S0101->0_0_{pin}{number};1"
    )
    found = exchanged(PlacedDesign(netlist.record()))
    assert found == ({f"{port}{number} of X3/Y4 comes from {pin}"} if wrong else set())


def test_for_nextpnr_they_have_a_constraint_in_place_of_a_place(netlist: Netlist) -> None:
    design = PlacedDesign(netlist.record())
    before = json.dumps(design.record)
    with constrained(design):
        cells, settings = design.cells, dict(design.settings)
        for name in ("LOGIC", "CCU2", "RAMW_BLOCK", "DPRAM"):
            assert cells[name]["attributes"] == {"BEL": design.sites[name].name}
        for name in ("start", "product"):
            assert "NEXTPNR_BEL" in cells[name]["attributes"]
        assert cells["product"]["connections"] == {
            "CLK0": [netlist.bits["clk"]], "CLK1": ["x"], "A0": [netlist.bits["q"]], "P0": [netlist.bits["p"]],
        }  # fmt: skip
    assert settings == {"placer": "sa", "placer1/startTemp": "0.000000", "seed": "1"}
    assert json.dumps(design.record) == before
