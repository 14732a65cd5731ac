"""A lookup table before each register that none drives, so that nextpnr finds places for them.

A register of a GW2A gets its data from the lookup table of its own slice, be it only passed through. nextpnr keeps a
lookup table and the register that it drives together, and finds places for such pairs before single lookup tables,
which make way for them. A single register it can only put where a slice is empty, and makes the passing table after
placement. So the tables are in the netlist from the start.
"""

import json
import re
from typing import Any

from ..identity import identity
from ..netlist import top_module

SUFFIX = "$through"
"""How the names of these lookup tables end; before it is the register's."""
PASS = "10"
"""Their contents: the input."""
IDENTITY = identity(__file__)
"""Of this file: a result is of the netlist that it made."""
_LUT = re.compile(r"LUT[1-4]")


def pass_through(netlist: str) -> str:
    """Yosys' netlist (JSON of one flat module) with these lookup tables. A carry cell takes a register into its slice,
    too; of several registers behind one cell it takes the first."""
    record = json.loads(netlist)
    module = top_module(record)
    cells: dict[str, Any] = module["cells"]
    drivers = {bit: name for name, cell in cells.items() for bit in _outputs(cell)}
    nets = [bit for each in module["netnames"].values() for bit in each["bits"] if type(bit) is int]
    free = 1 + max([*nets, *drivers], default=1)
    taken, added = set[str](), dict[str, Any]()
    for name, cell in cells.items():
        if not cell["type"].startswith("DFF"):
            continue
        (data,) = cell["connections"]["D"]
        driver = drivers.get(data, "")
        if driver and driver not in taken and _takes_register(cells[driver], data):
            taken.add(driver)
            continue
        bit = free + len(added)
        cell["connections"]["D"] = [bit]
        added[name + SUFFIX] = {
            "hide_name": 0, "type": "LUT1", "parameters": {"INIT": PASS}, "attributes": {},
            "port_directions": {"I0": "input", "F": "output"}, "connections": {"I0": [data], "F": [bit]},
        }  # fmt: skip
        module["netnames"][name + SUFFIX] = {"hide_name": 1, "bits": [bit], "attributes": {}}
    cells.update(added)
    return json.dumps(record)


def _outputs(cell: dict[str, Any]) -> list[int]:
    """The nets that a cell drives."""
    ways, ports = cell["port_directions"], cell["connections"].items()
    return [bit for port, bits in ports if ways[port] == "output" for bit in bits if type(bit) is int]


def _takes_register(driver: dict[str, Any], data: int) -> bool:
    """Whether a cell and a register with that data fit one slice."""
    kind, ports = driver["type"], driver["connections"]
    return bool(_LUT.fullmatch(kind)) or (kind == "ALU" and data in ports["SUM"])


def count(cells: dict[str, Any]) -> int:
    """How many of these there are among cells by name."""
    return sum(name.endswith(SUFFIX) for name in cells)
