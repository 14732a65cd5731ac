"""Every register has a lookup table, or a carry cell, of its own before it, and the netlist is otherwise as it was."""

import json

import pytest

from onnxhw.devices import find_family
from onnxhw.devices.gowin.through import PASS, count, pass_through

WAYS = {"D": "input", "CLK": "input", "Q": "output", "I0": "input", "F": "output", "CIN": "input", "SUM": "output",
        "COUT": "output"}  # fmt: skip
CLK = 2


def cell(kind, **ports):
    """A cell by its ports' nets."""
    connections = {port: [net] for port, net in ports.items()}
    return {"type": kind, "port_directions": {port: WAYS[port] for port in ports}, "connections": connections}


def netlist(**cells):
    """A netlist of one module, beside a library's, as Yosys writes it."""
    nets = {f"n{bit}": {"hide_name": 0, "bits": [bit], "attributes": {}} for bit in range(CLK, 12)}
    top = {"attributes": {"top": "1"}, "cells": cells, "netnames": nets}
    return {"modules": {"DFF": {"attributes": {"blackbox": "1"}, "cells": {}, "netnames": {}}, "top": top}}


def passed(record):
    """The netlist that `pass_through` makes."""
    return json.loads(pass_through(json.dumps(record)))["modules"]["top"]


def without(module):
    """The cells without the lookup tables, each register again at what its own passes."""
    cells = module["cells"]
    added = {each["connections"]["F"][0]: each for name, each in cells.items() if name.endswith("$through")}
    for each in added.values():
        assert (each["type"], each["parameters"]["INIT"]) == ("LUT1", PASS)
    kept = {name: each for name, each in cells.items() if not name.endswith("$through")}
    for each in kept.values():
        for port, (net,) in each["connections"].items():
            if net in added:
                assert port == "D"
                each["connections"]["D"] = added[net]["connections"]["I0"]
    return kept


@pytest.mark.parametrize(
    ("driver", "data", "passes"),
    [
        (cell("LUT3", I0=3, F=4), 4, False),
        (cell("ALU", CIN=3, SUM=4, COUT=5), 4, False),
        (cell("ALU", CIN=3, SUM=4, COUT=5), 5, True),
        (cell("DFFE", CLK=CLK, D=4, Q=4), 4, True),
        (cell("MUX2_LUT5", I0=3, F=4), 4, True),
        (cell("LUT2", I0=3, F=4), 3, True),
        (cell("LUT2", I0=3, F=4), "1", True),
    ],
)
def test_a_register_that_nothing_in_its_slice_drives_gets_a_lookup_table(driver, data, passes):
    record = netlist(driver=driver, register=cell("DFF", CLK=CLK, D=data, Q=6))
    module = passed(record)
    assert ("register$through" in module["cells"]) is passes
    assert without(module) == record["modules"]["top"]["cells"]


def test_of_two_registers_behind_a_lookup_table_one_has_it():
    record = netlist(
        table=cell("LUT4", I0=3, F=4), one=cell("DFF", CLK=CLK, D=4, Q=5), two=cell("DFFSE", CLK=CLK, D=4, Q=6)
    )
    module = passed(record)
    assert count(module["cells"]) == 1
    assert without(module) == record["modules"]["top"]["cells"]


def test_new_nets_are_new():
    record = netlist(**{f"r{bit}": cell("DFF", CLK=CLK, D=bit, Q=bit + 1) for bit in range(3, 9)})
    before = {bit for net in record["modules"]["top"]["netnames"].values() for bit in net["bits"]}
    module = passed(record)
    nets = [each["connections"]["F"][0] for name, each in module["cells"].items() if name.endswith("$through")]
    assert len(nets) == len({*nets} - before) == 6
    assert {*nets} <= {bit for net in module["netnames"].values() for bit in net["bits"]}


def test_it_is_what_becomes_of_netlists():
    text = json.dumps(netlist(register=cell("DFF", CLK=CLK, D=3, Q=4)))
    assert find_family("gowin").netlist(text) == pass_through(text) != text
