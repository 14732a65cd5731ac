"""List the latest ends of a routed ECP5 design, each with its path: through which cells, where they lie, and what the
wires take.

    python bench/route.py ulx3s-85f+sdram:ulx3s-85f --mhz 125 --seeds 2 --workers 2
    python bench/late_ends.py build/route/seed-2/ulx3s-85f+sdram-ulx3s-85f/routed.json ulx3s-85f --ns 7.5

nextpnr's report has one critical path; behind it are other kinds of late ends. nextpnr reads the routed design again
(two minutes for an 85F) and writes its delays as SDF. Told are ends of the clock with the most registers, as nextpnr
has them then: of a `mini` that it gives 137.78 MHz the latest end comes after 7,258 ps. Carry chains take 71 ps too
long for each two bits, for of a design that it reads it does not know which half of a carry cell is which.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from logic_depth import without_numbers

from onnxhw.board import find
from onnxhw.build import tools
from onnxhw.cli.common.interrupts import script_status
from onnxhw.devices import family_of, sdf
from onnxhw.devices.ecp5.closure.placed import place
from onnxhw.devices.ecp5.parts import part_options
from onnxhw.devices.netlist import top_module
from onnxhw.devices.sdf import Delays, Pin
from onnxhw.devices.static_timing import NEVER, StaticTiming
from onnxhw.errors import OnnxhwError


class NotRoutedError(ValueError):
    """A file where a routed design belongs."""


def late_ends(timing: StaticTiming, later: float) -> list[tuple[float, int]]:
    """Ends that come later than so many picoseconds, with their times, the latest first."""
    found = [(float(time), int(end)) for time, end in zip(timing.totals(), timing.ends, strict=True)]
    return sorted(((time, end) for time, end in found if time > max(later, NEVER / 2)), reverse=True)


def told(timing: StaticTiming, cells: Mapping[str, Any], end: int) -> Iterator[str]:
    """A line for each cell on the path to an end: when its input is there, in nanoseconds, where it lies, and what the
    wire to it takes over so many columns and rows."""
    before: tuple[float, Pin] | None = None
    for number in timing.path(end)[1:]:
        time, pin = float(timing.arrival[number]), timing.pins[number]
        at, text = place(cells[pin.cell]), ""
        if before and before[1].cell != pin.cell:
            there = place(cells[before[1].cell])
            if at and there:
                text = f", wire {(time - before[0]) / 1000:.2f} over {abs(at[0] - there[0])}, {abs(at[1] - there[1])}"
        if text or not before:
            yield f"{time / 1000:5.2f} {cells[pin.cell]['type']} at {at}{text}: {pin.cell} {pin.port}"
        before = time, pin


def cells_of(routed: Path) -> dict[str, Any]:
    """The cells of a routed design by name. Errors: `NotRoutedError`."""
    try:
        found: dict[str, Any] = top_module(json.loads(routed.read_text()))["cells"]
        placed = any(place(cell) for cell in found.values())
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise NotRoutedError(f"{routed} is no netlist of nextpnr's") from error
    if not placed:
        raise NotRoutedError(f"{routed} has no placed cells; bench/route.py leaves such a file beside its logs")
    return found


def delays_of(routed: Path, board_name: str) -> Delays:
    """Let nextpnr read a routed design again and tell its delays. Errors: as of `tools.run`."""
    options = part_options(find(board_name))
    with tempfile.TemporaryDirectory(prefix="onnxhw-", dir=routed.parent) as scratch:
        folder = Path(scratch)
        (folder / "routed.json").hardlink_to(routed)  # the tool sees its own folder, and the file is a large one
        again = ("--json", "routed.json", "--no-pack", "--no-place", "--sdf", "delays.sdf", "--timing-allow-fail")
        tools.run("nextpnr-ecp5", [*options, *again, "--quiet"], folder)
        with (folder / "delays.sdf").open() as lines:
            return sdf.read(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routed", type=Path, metavar="ROUTED_JSON")
    parser.add_argument("board", metavar="BOARD")
    parser.add_argument("--ns", type=float, default=0.0, help="ends later than so many nanoseconds; default: all")
    parser.add_argument("--kinds", type=int, default=20, help="kinds of ends to list (default 20)")
    args = parser.parse_args()
    try:
        if family_of(find(args.board)).name != "ecp5":
            parser.error(f"{args.board} has no ECP5")
        cells = cells_of(args.routed)
        timing = StaticTiming(delays_of(args.routed, args.board), cells)
    except (OnnxhwError, NotRoutedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    late = late_ends(timing, args.ns * 1000)
    kinds: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for time, end in late:
        cell, port = timing.pins[end]
        kinds[f"{without_numbers(cell)} {port}"].append((time, end))
    print(f"{len(late)} ends later than {args.ns} ns, of {len(kinds)} kinds")
    for kind, found in list(kinds.items())[: args.kinds]:
        print(f"{found[0][0] / 1000:5.2f} {kind}, of {len(found)}")
        for line in told(timing, cells, found[0][1]):
            print(f"      {line}")
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
