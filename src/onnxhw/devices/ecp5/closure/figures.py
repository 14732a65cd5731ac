"""`correct`: nextpnr's report of a design that it has read from a file, with the carry chains' right delays.

Which half of a carry cell a cell is nextpnr knows only of cells that it has packed itself (0.11.1: `constr_z`). Read
from a file, all are first halves, and a chain takes 71 ps more for each two bits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ...report import RouteReport
from ...sdf import Delays, Pin
from ...static_timing import NEVER, StaticTiming
from .placed import place

AGREE = 1e-5
"""How far frequencies that are of the same picoseconds may be apart, as a part of them."""


def agrees(record: RouteReport, module: Mapping[str, Any], delays: Delays) -> bool:
    """Whether `StaticTiming` finds what nextpnr has reported of a design (`module` of its netlist) that it packed and
    routed. Of clocks at both edges, say, it does not."""
    for net, clock in record.clocks.items():
        worst = max(_timing(net, module, delays).totals(), default=NEVER)
        if worst > 0 and abs(1e6 / float(worst) / clock.achieved - 1) > AGREE:
            return False
    return True


def correct(record: dict[str, Any], module: Mapping[str, Any], delays: Delays) -> None:
    """Put into a report (``--report``) what its clocks reach by `delays`, and their critical paths: wires of the design
    (`module` of its netlist), cells as of the run that packed them."""
    for net, clock in record["fmax"].items():
        timing = _timing(net, module, delays)
        worst = max(timing.totals(), default=NEVER)
        if worst > 0:
            clock["achieved"] = 1e6 / float(worst)
            edge = f"posedge {net}"
            others = [path for path in record["critical_paths"] if (path["from"], path["to"]) != (edge, edge)]
            path = {"from": edge, "to": edge, "path": list(_segments(timing, module["cells"]))}
            record["critical_paths"] = [*others, path]


def _timing(net: str, module: Mapping[str, Any], delays: Delays) -> StaticTiming:
    return StaticTiming(delays, module["cells"], module["netnames"][net]["bits"][0])


def _segments(timing: StaticTiming, cells: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The longest path as nextpnr's report has it, in nanoseconds."""
    last = int(timing.totals().argmax())
    path = timing.path(int(timing.ends[last]))

    def end(number: int) -> dict[str, Any]:
        pin: Pin = timing.pins[number]
        return {"cell": pin.cell, "loc": list(place(cells[pin.cell]) or ()), "port": pin.port}

    for k in range(1, len(path)):
        before, after = end(path[k - 1]), end(path[k])
        kind = "routing" if before["cell"] != after["cell"] else "clk-to-q" if k == 1 else "logic"
        delay = float(timing.arrival[path[k]] - timing.arrival[path[k - 1]]) / 1000
        yield {"delay": delay, "from": after if k == 1 else before, "to": after, "type": kind}
    final = end(path[-1])
    yield {"delay": float(timing.setup[last]) / 1000, "from": final, "to": final, "type": "setup"}
