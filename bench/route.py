"""Place and route presets and report what they take and how fast they are.

    python bench/route.py ulx3s-25f:ulx3s-25f mini:ulx3s-12f --seeds 3

Each argument is PRESET:BOARD; default is every preset on its own board. A result that misses the clock is reported, not
refused. Results come from the bitstream cache when they are there.
"""

import argparse
import json
import sys
import time
from typing import Any

from onnxhw.board import find
from onnxhw.build.estimate import estimate
from onnxhw.build.flow import Event, Options, build
from onnxhw.cli.synthesis import line_speed, top
from onnxhw.config import preset
from onnxhw.errors import OnnxhwError

DEFAULT = ("mini:ulx3s-25f", "ulx3s-25f:ulx3s-25f", "ulx3s-45f:ulx3s-45f", "ulx3s-85f:ulx3s-85f")
COLUMNS = ("preset", "board", "lut", "ff", "dsp", "ebr", "fmax_mhz", "wanted_mhz", "timing_met", "seed", "seconds")


def show(event: Event) -> None:
    """One line on standard error per finished stage."""
    if event.done:
        print(f"  {event.stage} {event.seconds:.0f} s {event.text}", file=sys.stderr)


def route(name: str, board_name: str, *, clock_hz: int, seeds: int, use_cache: bool) -> dict[str, Any]:
    """Build one preset for one board; the row of the table."""
    board, config = find(board_name), preset(name)
    hz = clock_hz or board.core_hz
    start = time.monotonic()
    built = build(
        top(board, config, hz, line_speed(board, hz)),
        board,
        clock_hz=hz,
        options=Options(seeds=tuple(range(1, seeds + 1))),
        progress=show,
        use_cache=use_cache,
        require_timing=False,
        label=f"{name} on {board.name}",
    )
    used = {kind: built.report.resources[kind][0] for kind in ("lut", "ff", "dsp", "ebr")}
    guess = estimate(config)
    row: dict[str, Any] = {"preset": name, "board": board.name, **used, "fmax_mhz": round(built.report.fmax_mhz, 1)}
    row |= {"wanted_mhz": hz / 1e6, "timing_met": built.timing_met, "seed": built.seed}
    row |= {"seconds": round(time.monotonic() - start), "cached": built.cached, "critical_path": built.report.path}
    row["estimated"] = {"lut": guess.lut, "ff": guess.ff, "dsp": guess.dsp, "ebr": guess.ebr}
    return row


def main() -> int:
    """Parse the arguments, print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=DEFAULT, metavar="PRESET:BOARD")
    parser.add_argument("--seeds", type=int, default=1, help="seeds to try until one meets the clock")
    parser.add_argument("--mhz", type=float, default=0.0, help="core clock; default: the board's")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for job in arguments.jobs:
        name, _, board = job.partition(":")
        print(f"{name} on {board or name}", file=sys.stderr)
        try:
            hz = round(arguments.mhz * 1e6)
            rows.append(
                route(name, board or name, clock_hz=hz, seeds=arguments.seeds, use_cache=not arguments.no_cache)
            )
        except OnnxhwError as error:
            print(error.text(), file=sys.stderr)
            return error.exit_status
        if not arguments.json:
            print("  ".join(f"{column}={rows[-1][column]}" for column in COLUMNS))
            print(f"  critical path: {rows[-1]['critical_path']}")
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
