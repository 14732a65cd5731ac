"""The slowest path of a hand-made netlist, and what it does to a clock that nextpnr claims."""

import pytest

from onnxhw.devices.gowin import bound
from onnxhw.devices.gowin.report import bounded
from onnxhw.devices.report import ClockResult, RouteReport


def cell(kind, **ports):
    """A cell; its ports Q, F, DO0 and DOUT are outputs."""
    return {
        "type": kind, "connections": {name: [net] for name, net in ports.items()},
        "port_directions": {name: "output" if name in ("Q", "F", "DO0", "DOUT") else "input" for name in ports},
    }  # fmt: skip


def netlist(**cells):
    return {"modules": {"top": {"cells": cells}}}


def sdf(*wires):
    return "\n".join(f"(INTERCONNECT {one} {other} ({ps}:{ps}:{ps}) ({ps}:{ps}:{ps}))" for one, other, ps in wires)


def test_a_path_from_a_block_ram_through_logic_is_counted():
    design = netlist(
        ram=cell("SDP", CLKB=1, DO0=2), lut=cell("LUT4", I0=2, F=3), ff=cell("DFF", CLK=1, D=3, Q=4),
    )  # fmt: skip
    found = bound.slowest(design, sdf(("ram/DO0", "lut/I0", 1000), ("lut/F", "ff/D", 500)))
    assert found.ns == pytest.approx(2.26 + 1.0 + 0.570 + 0.5 + 0.035)
    assert (found.wires_ns, found.levels) == (1.5, 1)
    assert "ram" in found.start
    assert "ff" in found.end


def test_a_wire_without_a_delay_counts_as_the_longest():
    design = netlist(a=cell("DFF", CLK=1, Q=2), b=cell("DFF", CLK=1, D=2, Q=3), c=cell("DFF", CLK=1, D=3))
    found = bound.slowest(design, sdf(("a/Q", "b/D", 1000), ("x/Q", "y/D", 4000)))
    assert (found.wires_ns, found.end) == (4.0, "DFF c")


def test_a_multiplier_is_a_path_of_its_own_and_limits_the_clock():
    registered = {"parameters": dict.fromkeys(bound.REGISTERS, "1")}
    found = bound.slowest(netlist(m=cell("MULT9X9", CLK=1, DOUT=2) | registered), "")
    assert found.inside
    report = bounded(RouteReport(clocks={"clk": ClockResult(512.0, 54.0)}), found)
    assert report.clocks["clk"].achieved == 1000 / (bound.MARGIN * bound.ASSUMED_PRODUCT_NS)
    assert "assumed" in report.path


def test_logic_that_feeds_itself_is_no_path_that_may_be_left_out():
    loop = netlist(a=cell("LUT4", I0=2, F=3), b=cell("LUT4", I0=3, F=2), ff=cell("DFF", CLK=1, D=3, Q=4))
    with pytest.raises(AssertionError, match="feeds itself"):
        bound.slowest(loop, "")


def test_a_multiplier_without_registers_is_not_bounded_by_its_own_time():
    with pytest.raises(AssertionError, match="multiplier m has no register AREG"):
        bound.slowest(netlist(m=cell("MULT9X9", CLK=1, DOUT=2) | {"parameters": {"BREG": "1", "OUT_REG": "1"}}), "")
