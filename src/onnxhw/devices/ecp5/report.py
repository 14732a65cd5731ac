"""How nextpnr and Yosys name what an ECP5 consists of."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..path import CellNames
from ..report import RouteReport, read_report

KINDS = {
    "lut": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "ebr": "DP16KD",
    "lutram": "TRELLIS_RAMW",
    "pll": "EHXPLLL",
}
"""Our names of the resources, and nextpnr's."""
NAMES = CellNames(
    suffix=re.compile(r"_(?:TRELLIS_FF|LUT4|CCU2C|PFUMX|L6MUX21|TRELLIS_DPR16X4)_.*|\$.*"),
    inputs={"CE": "its clock enable", "LSR": "its reset", "WRE": "its write enable"},
)


def report(record: Mapping[str, Any]) -> RouteReport:
    """What `RouteReport` keeps of the JSON that ``nextpnr-ecp5 --report`` writes."""
    return read_report(record, KINDS, NAMES)


def counts(cells: Mapping[str, str]) -> dict[str, int]:
    """Resources of a netlist's cells, whose kinds are given by name. LUT4 sites: lookup tables, two per carry cell, and
    LUT RAM (with its write logic: 4 + 2 sites)."""
    get = Counter(cells.values()).get
    return {
        "LUT4": get("LUT4", 0) + 2 * get("CCU2C", 0) + 6 * get("TRELLIS_DPR16X4", 0),
        "flip-flops": get("TRELLIS_FF", 0),
        "multipliers": get("MULT18X18D", 0),
        "block RAMs": get("DP16KD", 0),
    }
