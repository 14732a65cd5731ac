"""Ways between registers of a netlist: which is the deepest, and through what it goes."""

from typing import Any

import pytest
from logic_depth import CARRY, CARRY_IN, CARRY_OUT, START, TABLE, Netlist, wire


def cell(kind: str, outputs: dict[str, int], **inputs: int | str) -> dict[str, Any]:
    pins = {pin: [bit] for pin, bit in (outputs | inputs).items()}
    directions = {pin: "output" if pin in outputs else "input" for pin in pins}
    return {"type": kind, "connections": pins, "port_directions": directions}


def netlist(cells: dict[str, Any], names: dict[str, list[int]]) -> Netlist:
    nets = {name: {"bits": bits} for name, bits in names.items()}
    only = {"attributes": {"top": 1}, "cells": cells, "netnames": nets}
    return Netlist({"modules": {"TRELLIS_FF": {"attributes": {}}, "chip": only}})


def test_the_deepest_end_and_the_way_to_it() -> None:
    cells = {
        "q": cell("TRELLIS_FF", {"Q": 1}, DI=9, CLK=0),
        "q2": cell("TRELLIS_FF", {"Q": 2}, DI=1, CLK=0),
        "low": cell("CCU2C", {"S0": 10, "COUT": 3}, A0=1, CIN="0"),
        "high": cell("CCU2C", {"S0": 4, "S1": 11}, A1=1, CIN=3),
        "table": cell("LUT4", {"Z": 5}, A=4, B=1),
        "late_0": cell("TRELLIS_FF", {"Q": 6}, DI=5, CE=5, CLK=0),
        "late_1": cell("TRELLIS_FF", {"Q": 7}, DI=2, CLK=0),
    }
    found = netlist(cells, {"unit.start": [1], "unit.sum": [12, 4], "unit.late": [6, 7], "unit.next": [2]}).ends()
    (by_enable, *others) = found
    start, chain = START["TRELLIS_FF"], CARRY_IN + CARRY_OUT
    sums = start + wire(4) + chain
    assert by_enable.kind == "unit.late CE"
    assert by_enable.nanoseconds == pytest.approx(sums + wire(1) + TABLE + wire(2))
    assert [line.split()[1] for line in by_enable.way] == ["LUT4", "CCU2C", "CCU2C", "TRELLIS_FF"]
    assert by_enable.way[-1].endswith("to 4: unit.start")
    by_kind = {end.kind: end for end in others}
    assert by_kind["unit.late DI"].nanoseconds == pytest.approx(sums + wire(1) + TABLE), "the table is beside it"
    assert by_kind["unit.late DI"].count == 2
    assert by_kind["unit.next DI"].nanoseconds == pytest.approx(start + wire(4))


def test_a_sum_s_lower_bit_does_not_wait_for_the_upper_one() -> None:
    slow = cell("LUT4", {"Z": 4}, A=1)
    adder = cell("CCU2C", {"S0": 2, "S1": 3}, A0=1, A1=4)
    ends = [cell("TRELLIS_FF", {"Q": 10 + bit}, DI=bit, CLK=0) for bit in (2, 3)]
    start = cell("TRELLIS_FF", {"Q": 1}, DI=20, CLK=0)
    cells = {"slow": slow, "adder": adder, "low": ends[0], "high": ends[1], "start": start}
    times = {end.kind: end.nanoseconds for end in netlist(cells, {"low": [12], "high": [13], "start": [1]}).ends()}
    entered = START["TRELLIS_FF"] + wire(2)
    assert times["low DI"] == pytest.approx(entered + CARRY_IN)
    assert times["high DI"] == pytest.approx(entered + TABLE + wire(1) + CARRY_IN)
    assert CARRY < CARRY_IN
