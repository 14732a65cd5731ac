"""What is done about a late path: a cell goes where it is short, a wire that goes round is routed again."""

from collections.abc import Mapping

import pytest
from placed_netlist import Netlist, between, delays_of, detour

from onnxhw.devices.ecp5.closure.moves import AGAIN, NEW, MoveSearch
from onnxhw.devices.ecp5.closure.placed import PlacedDesign
from onnxhw.devices.ecp5.closure.slices import faults
from onnxhw.devices.sdf import Pin
from onnxhw.devices.static_timing import StaticTiming


def search_of(netlist: Netlist, wires: Mapping[tuple[str, str], float] | None = None) -> MoveSearch:
    """Every wire takes what is estimated, those named by cell and port what they are given."""
    design = PlacedDesign(netlist.record())
    delays = delays_of(design, wires or {})
    return MoveSearch(design, delays, StaticTiming(delays, design.cells))


def test_a_table_goes_to_where_its_way_is_short() -> None:
    search = search_of(detour())
    before = search.timing.totals().max()
    assert search.run(3800.0) == {("t0", search.design.places["t0"])}
    x, y = search.design.places["t0"]
    assert y == 5
    assert 5 <= x <= 15
    after = 525 + NEW + between((5, 5), (x, y)) + 240 + NEW + between((x, y), (15, 5))
    assert search.timing.totals().max() == pytest.approx(after)
    assert after < min(before, 3800.0)
    assert not faults(search.design)


def test_neighbours_go_together() -> None:
    search = search_of(detour(3))
    assert {change[0] for change in search.run(4600.0)} == {"t0", "t1", "t2"}
    assert {search.design.places[f"t{n}"][1] for n in range(3)} <= {4, 5, 6}
    assert search.timing.totals().max() <= 4600.0


def test_what_cannot_be_shortened_is_left() -> None:
    assert not search_of(detour()).run(1e6), "nothing is late"
    search = search_of(detour())
    search.run(1000.0)
    assert search.moved["t0"] <= AGAIN
    again = MoveSearch(search.design, delays_of(search.design, {}), search.timing)
    assert not again.run(1000.0), "it lies where it is best"


def test_a_table_that_another_way_needs_where_it_is_stays() -> None:
    """The path through the table from a third register would be as long then."""
    netlist = detour()
    netlist.cells["t0"]["connections"]["B"] = [netlist.bits.setdefault("q2", len(netlist.bits) + 2)]
    netlist.cells["t0"]["port_directions"]["B"] = "input"
    netlist.register("third", "X8/Y11/SLICEB.FF0", "q2", M="")
    free, bound = search_of(detour()), search_of(netlist, {("t0", "B"): 1300.0})
    before = bound.timing.totals().max()
    free.run(3800.0)
    bound.run(3800.0)
    assert bound.design.places["t0"] != free.design.places["t0"]
    assert bound.timing.totals().max() <= before


@pytest.mark.parametrize("kind", ["LSR", "CE"])
def test_a_wire_that_goes_a_long_way_round_is_routed_again(kind: str) -> None:
    netlist = detour(kind=kind)
    search = search_of(netlist, {("end", kind): 5000.0})
    path = search.timing.path(search.timing.number[Pin("end", kind)])
    moved, move = search.best(path, 3000.0), search.best(path, 4500.0)
    assert moved
    assert moved.sites, "a new wire alone is not enough"
    assert move
    assert not move.sites
    ((arc, delay),) = move.wires
    assert search.timing.pins[search.timing.sink[arc]] == Pin("end", kind)
    assert delay == NEW + between((8, 10), (15, 5))
    search.apply(move)
    again = search.best(path, 4500.0)
    assert not (again and again.wires), "once is enough"


def test_nothing_but_the_estimate_decides_between_sites_of_a_tile() -> None:
    """The same design gives the same moves, in whatever order its cells are told."""
    netlist = detour(3)
    turned = detour(3)
    turned.cells = dict(reversed(turned.cells.items()))
    first, second = search_of(netlist), search_of(turned)
    first.run(4600.0)
    second.run(4600.0)
    assert first.design.sites == second.design.sites


def test_two_registers_that_go_together_fit_into_one_tile() -> None:
    """One has a reset, the other none: a tile has one of both."""
    netlist = Netlist()
    netlist.register("a", "X2/Y8/SLICEA.FF0", "qa", CE="z")
    for name, reads, more in (("b", "qa", {}), ("c", "qb", {"LSR": "rst"})):
        row = 2 if name == "b" else 14
        netlist.table(f"{name}_table", f"X8/Y{row}/SLICEA.K0", f"n{name}", A=reads)
        netlist.register(name, f"X8/Y{row}/SLICEA.FF0", f"q{name}", DI=f"n{name}", **more)
    netlist.register("d", "X14/Y8/SLICEA.FF0", "qd", CE="qc")
    for x in range(1, 16):
        for y in range(1, 16):
            netlist.table(f"other{x}_{y}", f"X{x}/Y{y}/SLICED.K1", "", A="")
    search = search_of(netlist, {("c_table", "A"): 9000.0})  # its new place is beside the other's
    assert search.run(2500.0)
    assert {"b", "c"} <= search.moved.keys()
    assert not faults(search.design)
    assert abs(search.design.places["b"][1] - search.design.places["c"][1]) < 12


@pytest.mark.parametrize("what", ["another clock", "a table that reads the clock network"])
def test_what_the_clock_network_leads_to_stays(what: str) -> None:
    netlist = detour(3)
    if what == "another clock":
        netlist.register("behind", "X8/Y10/SLICEA.FF0", "behind", DI="n0", CLK="clk2")
        netlist.clocks.add("clk2")
    else:
        netlist.cells["t0"]["connections"]["B"] = [netlist.bits["clk"]]
        netlist.cells["t0"]["port_directions"]["B"] = "input"
    search = search_of(netlist)
    assert search.run(4600.0)
    assert "t0" not in search.moved
