"""Where the cycles of a run on a device went: its counters, and the layers behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...emu.counters import counters as predict
from ...isa.timeline import timeline
from ...program.model import DeviceProgram
from ...report.profile import profile
from .artifacts import together
from .output import Output

CAUSES = {
    "stall_order_load": "load unit waits for other units",
    "stall_order_array": "array waits for other units",
    "stall_order_depthwise": "depthwise unit waits for other units",
    "stall_order_vector": "vector unit waits for other units",
    "stall_weights_array": "array waits for weights",
    "stall_weights_depthwise": "depthwise unit waits for weights",
    "busy_array": "array streams pixels",
    "busy_depthwise": "depthwise unit streams pixels",
    "busy_vector": "vector unit works",
}
"""The core's counters of cycles and what they count."""


def device_profile(
    programs: Sequence[DeviceProgram], counted: Sequence[Mapping[str, int]], clock_mhz: float
) -> dict[str, Any]:
    """The profile of a run, for ``--json``: of all hardware parts together, and of each as `parts`.

    The device counts a run's cycles and the causes of its stalls; `counters` has what it counted beside what the
    schedule says (`equal` if all agree). A layer's cycles are those of the schedule, which is exact: where all
    counters agree, they are what the layer took.
    """
    parts = [_profile(program, counts, clock_mhz) for program, counts in zip(programs, counted, strict=True)]
    counters = together([part["counters"] for part in parts], "counter")
    cycles = sum(program.cycles for program in programs)
    return {
        "equal": all(part["equal"] for part in parts),
        "counters": [{**row, "share": row["device"] / cycles} for row in counters],
        "layers": [row for part in parts for row in part["layers"]],
        "parts": parts,
    }


def _profile(program: DeviceProgram, counted: Mapping[str, int], clock_mhz: float) -> dict[str, Any]:
    """The same of one hardware part."""
    wanted = {"cycles": program.cycles, **predict(program.code, timeline(program.config, program.code))}
    rows = [
        {"counter": name, "device": counted[name], "predicted": wanted[name], "share": counted[name] / program.cycles}
        for name in ("cycles", *CAUSES)
    ]
    layers = [{**asdict(row), "ms": row.cycles / clock_mhz / 1e3} for row in profile(program).layers]
    equal = all(counted[name] == count for name, count in wanted.items())
    return {"equal": equal, "counters": rows, "layers": layers}


def print_profile(output: Output, found: Mapping[str, Any]) -> None:
    """Two tables: layers, and the counters by cause."""
    output.table(
        ("layer", "kind", "cycles", "ms", "array busy", "vector busy", "wait weights", "array waits", "vector waits"),
        [
            (row["name"], row["kind"], row["cycles"], round(row["ms"], 4), row["array_busy"], row["vector_busy"],
             row["wait_weights"], row["wait_array"], row["wait_vector"])
            for row in found["layers"]
        ],
    )  # fmt: skip
    output.table(
        ("counter", "device", "schedule", "% of the run"),
        [
            (CAUSES.get(row["counter"], "cycles of the run"), row["device"], row["predicted"],
             round(100 * row["share"], 1))
            for row in found["counters"]
        ],
    )  # fmt: skip
    agree = "agree with" if found["equal"] else "DIFFER from"
    output.line(f"the device's counters {agree} the schedule from which the layers' cycles are taken")
