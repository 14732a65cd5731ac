"""``trace.json``: the timeline as Chrome trace events, for Perfetto or chrome://tracing.

One track per unit, so that nothing on a track overlaps; plus one track of the layers. One cycle is shown
as one microsecond, or as its real length when the clock is known.
"""

import json
from typing import Any

from ..isa.instructions import UNITS, VectorOp, units_of
from ..program.model import Program
from .profile import Profile

LAYER_TRACK = 1
UNIT_TRACKS = {unit: 2 + number for number, unit in enumerate(UNITS)}


def trace(program: Program, profile: Profile, mhz: float | None = None) -> str:
    """The trace of a program's run, as JSON text."""
    cycle = 1 / mhz if mhz else 1.0
    events: list[dict[str, Any]] = [_named("process_name", 0, f"{program.model} on {program.config.name}")]
    tracks = {unit: UNIT_TRACKS[unit] for unit in units_of(program.config)}
    events += [_named("thread_name", tid, f"{unit} unit") for unit, tid in tracks.items()]
    events.append(_named("thread_name", LAYER_TRACK, "layers (progress)"))
    frontier = 0
    for row in profile.layers:
        if row.cycles:
            events.append(
                _span(
                    LAYER_TRACK,
                    row.name,
                    frontier,
                    frontier + row.cycles,
                    cycle,
                    {"kind": row.kind, "macs_executed": row.macs_executed, "utilization": round(row.utilization, 4)},
                )
            )
            frontier += row.cycles
    for unit, tid in tracks.items():
        owner = layer_of(program, unit)
        for index, span in enumerate(profile.timeline.spans[unit]):
            instruction = program.code[unit][index]
            what = VectorOp(getattr(instruction, "op", 0)).name.lower() if unit == "vector" else unit
            end = span.done if unit == "vector" else span.end
            arguments = {
                "index": index, "cycles": end - span.issue, "fetched": span.ready, "ordered": span.ordered,
                "stalled": span.stalled, "visible": span.done, "text": instruction.text(),
            }  # fmt: skip
            events.append(_span(tid, f"{owner[index]} {what}", span.issue, end, cycle, arguments))
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"


def layer_of(program: Program, unit: str) -> list[str]:
    """The name of the layer that each instruction of a unit belongs to."""
    names = [""] * len(program.code.get(unit, []))
    for layer in program.layers:
        for index in layer.indices(unit):
            names[index] = layer.name
    return names


def _named(kind: str, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 1, "tid": tid, "args": {"name": name}}


def _span(tid: int, name: str, start: int, end: int, cycle: float, arguments: dict[str, Any]) -> dict[str, Any]:
    ts, duration = round(start * cycle, 4), round((end - start) * cycle, 4)
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": duration, "args": arguments}
