"""Carry cells: the netlist computes what it did, only what has a place is absorbed, and chains end."""

import json
import random
from itertools import product

import pytest

from onnxhw.board import find
from onnxhw.devices import find_family
from onnxhw.devices.ecp5.carry import IDENTITY, finish

SUM, COUT, CIN = 50, 60, 61
ADD, ADD_LOW_D = 0x96AA, 0x666A
"""As Yosys makes sums: A, B and C; and A and B, with D high."""


def lut(z, init, **pins):
    ports = {pin: [pins.get(pin, "0")] for pin in "ABCD"} | {"Z": [z]}
    return cell("LUT4", {"INIT": f"{init:016b}"}, ports, ("Z",))


def carry(first, second, init=ADD_LOW_D, **more):
    """A carry cell that adds the nets of two pairs, with a carry from a net."""
    ports = {"CIN": [CIN], "S0": [SUM], "S1": [SUM + 1], "COUT": [COUT]}
    for half, (a, b) in enumerate((first, second)):
        ports |= {f"A{half}": [a], f"B{half}": [b], f"C{half}": ["1"], f"D{half}": ["1"]}
    parameters = {"INJECT1_0": "NO", "INJECT1_1": "NO", "INIT0": f"{init:016b}", "INIT1": f"{init:016b}"}
    return cell("CCU2C", parameters, ports | {pin: [net] for pin, net in more.items()}, ("S0", "S1", "COUT"))


def cell(kind, parameters, ports, outputs):
    ways = {port: "output" if port in outputs else "input" for port in ports}
    return {"type": kind, "parameters": parameters, "port_directions": ways, "connections": ports, "attributes": {}}


def netlist(shown=(), **cells):
    """One module, beside a library's; `shown` are nets that leave it, next to the carry."""
    nets = {bit for each in cells.values() for bits in each["connections"].values() for bit in bits if type(bit) is int}
    top = {
        "attributes": {"top": "1"}, "cells": cells, "ports": {"out": {"direction": "output", "bits": [COUT, *shown]}},
        "netnames": {f"n{bit}": {"hide_name": 0, "bits": [bit], "attributes": {}} for bit in nets},
    }  # fmt: skip
    return json.dumps({"modules": {"LUT4": {"attributes": {"blackbox": "1"}}, "top": top}})


def absorbed(text):
    module = json.loads(finish(text))["modules"]["top"]
    return module["cells"]


def evaluate(cells, values):
    """The nets of S0, S1 and COUT."""
    values = values | {"0": 0, "1": 1, "x": 0}

    def of(net):
        if net not in values:
            (table,) = [each for each in cells.values() if each["connections"].get("Z") == [net]]
            values[net] = look(table, "INIT", "")
        return values[net]

    def look(each, name, half, mask=15):
        index = sum(of(each["connections"][f"{pin}{half}"][0]) << bit for bit, pin in enumerate("ABCD"))
        return int(each["parameters"][name], 2) >> (index & mask) & 1

    (chain,) = [each for each in cells.values() if each["type"] == "CCU2C"]
    through, sums = of(chain["connections"]["CIN"][0]), []
    for half in "01":
        propagates, generates = look(chain, f"INIT{half}", half), look(chain, f"INIT{half}", half, 3)
        sums.append(propagates ^ through)
        through = through if propagates else generates
    return *sums, through


def equal(text, inputs):
    """The absorbed netlist's cells, found to compute the same of all values of the inputs."""
    before, after = json.loads(text)["modules"]["top"]["cells"], absorbed(text)
    for values in product((0, 1), repeat=len(inputs)):
        at = dict(zip(inputs, values, strict=True))
        assert evaluate(before, at) == evaluate(after, at), at
    return after


def tables(cells):
    return sum(each["type"] == "LUT4" for each in cells.values())


def test_random_tables_of_both_operands():
    rng, left = random.Random(3), 0
    for _ in range(150):
        inputs = [10, 11, 12, 13, 14, CIN]
        made = {
            name: lut(net, rng.randrange(1 << 16), **dict(zip("ABCD", rng.sample(inputs[:5], rng.randint(1, 4)),
                                                              strict=False)))
            for name, net in (("p", 20), ("q", 21), ("r", 22))
        }  # fmt: skip
        init = rng.choice((ADD_LOW_D, ADD_LOW_D, ADD, 0x9599))
        left += tables(equal(netlist(c=carry((20, 21), (22, rng.choice(inputs[:5])), init), **made), inputs))
    assert 0 < left < 150 * 3 / 2


def test_an_operand_that_is_gated_is_absorbed_and_what_its_gate_is_made_of():
    made = {"gate": lut(20, 0x8888, A=10, B=11), "again": lut(30, 0x8888, A=20, B=13)}
    cells = equal(netlist(c=carry((30, 12), (14, 15)), **made), [10, 11, 12, 13, 14, 15, CIN])
    assert tables(cells) == 0


@pytest.mark.parametrize(
    ("why", "shown", "chain", "more"),
    [
        ("it leaves the module", (20,), carry((20, 12), (13, 14)), {}),
        ("another cell reads it", (21,), carry((20, 12), (13, 14)), {"other": lut(21, 0x5555, A=20)}),
        ("it is the carry into the chain", (), carry((10, 12), (13, 14), CIN=20), {}),
        ("the half has four inputs already", (), carry((20, 12), (13, 14), ADD, C0=13, D0=14), {}),
        ("the half does not add", (), carry((20, 12), (13, 14)), {"inject": "YES"}),
    ],
)
def test_what_others_need_stays(why, shown, chain, more):
    if "inject" in more:
        chain["parameters"]["INJECT1_0"] = more.pop("inject")
    text = netlist(shown, gate=lut(20, 0x8888, A=10, B=11), c=chain, **more)
    assert absorbed(text) == json.loads(text)["modules"]["top"]["cells"], why


def test_a_table_of_many_halves_stays():
    gate = lut(20, 0x8888, A=10, B=11)
    two = netlist(gate=gate, c=carry((20, 12), (20, 13)))
    assert tables(equal(two, [10, 11, 12, 13, CIN])) == 0
    three = netlist(gate=gate, c=carry((20, 12), (20, 13)), d=carry((20, 12), (14, 15)))
    assert tables(absorbed(three)) == 1


def test_a_carry_that_nobody_reads_leads_nowhere():
    """nextpnr would lead it out by another cell."""
    ends = carry((10, 11), (12, 13))
    ends["connections"]["COUT"] = [70]
    on = carry((14, 15), (16, 17))
    cells = absorbed(netlist(on=on, ends=ends | {"connections": ends["connections"] | {"CIN": [COUT]}}))
    assert (cells["on"]["connections"]["COUT"], cells["ends"]["connections"]["COUT"]) == ([COUT], ["x"])


def test_no_name_is_left_of_a_net_that_is_gone():
    text = netlist(gate=lut(20, 0x8888, A=10, B=11), c=carry((20, 12), (13, 14)))
    names = json.loads(finish(text))["modules"]["top"]["netnames"]
    assert names["n20"]["bits"] == ["x"]
    assert names["n10"]["bits"] == [10]


def test_it_is_what_becomes_of_netlists_and_is_part_of_the_key():
    text = netlist(gate=lut(20, 0x8888, A=10, B=11), c=carry((20, 12), (13, 14)))
    family = find_family("ecp5")
    assert family.netlist(text) == finish(text) != text
    assert family.key(find("ulx3s-85f"))["netlist"] == IDENTITY
