"""``trace.json``: the timeline as Chrome trace events, for Perfetto or chrome://tracing.

One track of the layers, and one per unit; where instructions of a unit overlap (those of the vector unit do, in its
pipeline), as many as are in flight at once, because Perfetto drops a slice that begins inside another of its track and
ends after it. One cycle is shown as one microsecond, or as its real length when the clock is known.
"""

import json
from collections.abc import Sequence
from typing import Any

from ..isa.units import Unit, units_of
from ..program.model import DeviceProgram
from .profile import Profile

LAYER_TRACK = 1
UNIT_TRACKS = {unit: 100 * unit.number for unit in Unit}
"""The first track of each unit; those for overlapping instructions follow."""
GRID = 1024
"""Times are multiples of 1 / 1024 of a microsecond, which floating point holds exactly. Perfetto cuts times and lengths
to whole nanoseconds; the sum of two such parts is never more than the part of the sum, so no slice grows into the next.
"""


def trace(program: DeviceProgram, profile: Profile, mhz: float | None = None) -> str:
    """The trace of a program's run, as JSON text."""
    cycle = 1 / mhz if mhz else 1.0
    events: list[dict[str, Any]] = [_named("process_name", 0, f"{program.model} on {program.config.name}")]
    events.append(_named("thread_name", LAYER_TRACK, "layers (progress)"))
    frontier = 0
    for row in profile.layers:
        if row.cycles:
            arguments = {
                "kind": row.kind, "macs_executed": row.macs_executed, "utilization": round(row.utilization, 4),
            }  # fmt: skip
            events.append(_span(LAYER_TRACK, row.name, (frontier, frontier + row.cycles), cycle, arguments))
            frontier += row.cycles
    for unit in units_of(program.config):
        events += _unit(program, profile, unit, cycle)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"


def _unit(program: DeviceProgram, profile: Profile, unit: Unit, cycle: float) -> list[dict[str, Any]]:
    """A unit's instructions on its tracks."""
    owner, spans = layer_of(program, unit), profile.timeline.spans[unit]
    intervals = [(span.issue, span.over if unit.overlaps else span.end) for span in spans]
    tracks, events = lanes(intervals), []
    for lane in range(max(tracks, default=0) + 1):
        name = f"{unit} unit" if not lane else f"{unit} unit, overlapping {lane + 1}"
        events.append(_named("thread_name", UNIT_TRACKS[unit] + lane, name))
    for index, (span, interval, lane) in enumerate(zip(spans, intervals, tracks, strict=True)):
        instruction = program.code[unit][index]
        arguments = {
            "index": index, "cycles": interval[1] - interval[0], "fetched": span.ready, "ordered": span.ordered,
            "stalled": span.stalled, "visible": span.done, "text": instruction.text(),
        }  # fmt: skip
        events.append(_span(UNIT_TRACKS[unit] + lane, f"{owner[index]} {instruction.what}", interval, cycle, arguments))
    return events


def lanes(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """A track for each interval (start, end), in order of their starts: the first on which it overlaps no other."""
    ends: list[int] = []
    found = []
    for start, end in intervals:
        lane = next((number for number, busy in enumerate(ends) if busy <= start), len(ends))
        ends[lane:lane + 1] = [end]  # fmt: skip
        found.append(lane)
    return found


def layer_of(program: DeviceProgram, unit: Unit) -> list[str]:
    """The name of the layer that each instruction of a unit belongs to."""
    names = [""] * len(program.code.get(unit, []))
    for layer in program.layers:
        for index in layer.indices(unit):
            names[index] = layer.name
    return names


def _named(kind: str, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 1, "tid": tid, "args": {"name": name}}


def _span(
    tid: int, name: str, interval: tuple[int, int], cycle: float, arguments: dict[str, Any]
) -> dict[str, Any]:
    start, end = (round(GRID * cycle * edge) for edge in interval)
    return {
        "ph": "X", "name": name, "pid": 1, "tid": tid, "ts": start / GRID, "dur": (end - start) / GRID,
        "args": arguments,
    }  # fmt: skip
