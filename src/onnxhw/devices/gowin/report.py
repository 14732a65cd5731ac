"""How nextpnr and Yosys name what a GW2A consists of."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..family import ROUTED
from ..identity import identity
from ..path import CellNames
from ..report import ClockResult, RouteReport, read_report
from . import bound, through

SDF = "top.sdf"
"""Where nextpnr writes the delays of wires."""

KINDS = {"lut": "LUT4", "ff": "DFF", "dsp": "MULT18X18", "ebr": "BSRAM", "lutram": "RAM16SDP4", "pll": "rPLL"}
"""Our names of the resources, and nextpnr's, which counts what shares a place apart (`shared`)."""
MEMORY_LUTS = 6
"""LUT4 sites of a memory of lookup tables: four that hold it, and two that its writing keeps from being used."""
IDENTITY = identity(__file__, str(bound.__file__))
"""Of this file and `bound`: a result that is kept has the clock that they have found."""
NAMES = CellNames(
    suffix=re.compile(r"_(?:DFF|LUT|ALU|MUX2_|RAM16SDP)[A-Z0-9]*_.*|\$.*"),
    inputs={"CE": "its clock enable", "RESET": "its reset", "SET": "its set"},
)


BASIS = (
    "a bound, not an analysis by the vendor: wires as nextpnr routed them, logic and block RAMs by the vendor's "
    f"timing files, multipliers assumed ({bound.ASSUMED_PRODUCT_NS:g} ns), and {bound.MARGIN:g} times all of it"
)
"""What is said of the clock with every result."""


def bounded(found: RouteReport, slowest: bound.PathBound) -> RouteReport:
    """The report with every clock limited by the slowest path of all, with margin, and that path in words."""
    limit = 1000 / (bound.MARGIN * slowest.ns) if slowest.ns else 0.0
    clocks = {net: ClockResult(min(clock.achieved, limit), clock.wanted) for net, clock in found.clocks.items()}
    if slowest.inside:
        text = f"{slowest.ns:.2f} ns inside multiplier {slowest.start}"
    else:
        logic = slowest.ns - slowest.wires_ns
        text = (f"{slowest.ns:.2f} ns from {slowest.start} to {slowest.end}: {logic:.2f} ns in {slowest.levels} levels "
                f"of logic and the cells at both ends, {slowest.wires_ns:.2f} ns in wires")  # fmt: skip
    return replace(found, clocks=clocks, path=f"{text} ({BASIS})")


def shared(found: RouteReport, utilization: Mapping[str, Any]) -> RouteReport:
    """The report with lookup tables and multiplier blocks as `counts` has them: of carry cells and LUT RAM, too, and
    with two narrow multipliers in a block."""

    def used(kind: str) -> int:
        return int(utilization[kind]["used"]) if kind in utilization else 0

    (_, luts), (_, blocks) = found.resources["lut"], found.resources["dsp"]
    lut = used("LUT4") + used("ALU") + MEMORY_LUTS * used("RAM16SDP4")
    dsp = used("MULT18X18") + -(-used("MULT9X9") // 2)
    return replace(found, resources=found.resources | {"lut": (lut, luts), "dsp": (dsp, blocks)})


def without_passed(found: RouteReport, routed: Mapping[str, Any]) -> RouteReport:
    """The report without the lookup tables that only pass a register's data (`through`), which Yosys did not count."""
    used, luts = found.resources["lut"]
    passed = sum(through.count(module["cells"]) for module in routed["modules"].values())
    return replace(found, resources=found.resources | {"lut": (used - passed, luts)})


def report(record: Mapping[str, Any], directory: Path) -> RouteReport:
    """What `RouteReport` keeps of the JSON that nextpnr writes, with the clock bounded by what that leaves out."""
    routed = json.loads((directory / ROUTED).read_text())
    found = without_passed(shared(read_report(record, KINDS, NAMES), record["utilization"]), routed)
    return bounded(found, bound.slowest(routed, (directory / SDF).read_text()))


def counts(cells: Mapping[str, str]) -> dict[str, int]:
    """Resources of a netlist's cells, whose kinds are given by name. LUT4 sites: lookup tables, a carry cell each, and
    LUT RAM; tables that only pass a register's data (`through`) have no place of their own. Two narrow multipliers
    share a block."""
    kinds = Counter(kind for name, kind in cells.items() if not name.endswith(through.SUFFIX))
    get = kinds.get
    luts = sum(get(f"LUT{inputs}", 0) for inputs in (1, 2, 3, 4)) + get("ALU", 0)
    return {
        "LUT4": luts + sum(MEMORY_LUTS * get(f"RAM16SDP{bits}", 0) for bits in (1, 2, 4)),
        "flip-flops": sum(count for kind, count in kinds.items() if kind.startswith("DFF")),
        "multipliers": get("MULT18X18", 0) + -(-get("MULT9X9", 0) // 2),
        "block RAMs": sum(get(name, 0) for name in ("SDPB", "SDPX9B", "DPB", "DPX9B", "SP", "SPX9", "pROM", "pROMX9")),
    }
