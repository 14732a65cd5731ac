"""The table of a program's layers, and why some of them use little of what they run in."""

from collections.abc import Mapping, Sequence
from typing import Any

from .output import Output


def print_layers(output: Output, layers: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """The records of `onnxhw.report.profile.LayerRow`; below them a line for each that has a reason."""
    moved = any(row["moved_bytes"] for row in layers)
    output.table(
        ("layer", "kind", "MACs executed", "nominal", "cycles", "utilisation %", "mode", "of mode %",
         "wait weights", "array waits", "vector waits", *(["bytes moved"] if moved else [])),
        [
            (row["name"], row["kind"], row["macs_executed"], row["macs_nominal"], row["cycles"],
             percent(row["utilization"]) if row["macs_executed"] else None, row["mode"], percent(row["of_mode"]),
             row["wait_weights"], row["wait_array"], row["wait_vector"], *([row["moved_bytes"]] if moved else []))
            for row in layers
        ],
        title=title,
    )  # fmt: skip
    for row in layers:
        if row["reason"]:
            output.line(f"{row['name']}: {percent(row['of_mode'])} % of its mode; {row['reason']}")


def percent(share: float | None) -> float | None:
    """A share as a percentage with one digit after the point."""
    return None if share is None else round(100 * share, 1)
