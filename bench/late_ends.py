"""List the latest ends of a routed ECP5 design, each with its way: through which cells, where they lie, and what the
wires take.

    python bench/route.py ulx3s-85f+sdram:ulx3s-85f --mhz 125 --seeds 2 --workers 2
    python bench/late_ends.py build/route/seed-2/ulx3s-85f+sdram-ulx3s-85f/routed.json ulx3s-85f --ns 7.5

nextpnr's report has one critical path; behind it are other kinds of late ends. nextpnr reads the routed design again
(two minutes for an 85F) and writes its delays as SDF. Told are ends of the clock with the most registers, as nextpnr
has them: of a `mini` that it gives 137.78 MHz the latest end comes after 7,258 ps.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from logic_depth import CLOCKS, without_numbers

from onnxhw.board import find
from onnxhw.build import tools
from onnxhw.cli.common.interrupts import script_status
from onnxhw.devices import family_of, sdf
from onnxhw.devices.ecp5.parts import part_options
from onnxhw.devices.netlist import top_module
from onnxhw.devices.sdf import Delays, Pin
from onnxhw.errors import OnnxhwError

_PLACE = re.compile(r"X(\d+)/Y(\d+)/")


class NotRoutedError(ValueError):
    """A file where a routed design belongs."""


class Timing:
    """When the inputs of registers have their values, by ways from other registers of the design's largest clock."""

    def __init__(self, delays: Delays, cells: Mapping[str, Any]) -> None:
        self.delays, self._clocks = delays, {}
        for name, cell in cells.items():
            for port in CLOCKS & cell["connections"].keys():
                if bits := cell["connections"][port]:
                    self._clocks[Pin(name, port)] = bits[0]
        ends = Counter(self._clocks.get(Pin(pin.cell, clock)) for pin, (clock, _) in delays.setups.items())
        del ends[None]
        self.clock = max(ends, key=lambda bit: ends[bit], default=None)
        self._arrivals: dict[Pin, tuple[float | None, Pin | None]] = {}

    def ends(self) -> list[tuple[float, Pin]]:
        """Every end with its time, setup included, the latest first."""
        found = []
        for pin, (clock, setup) in self.delays.setups.items():
            if self._clocks.get(Pin(pin.cell, clock)) == self.clock:
                time = self.arrival(pin)[0]
                if time is not None:
                    found.append((time + setup, pin))
        return sorted(found, reverse=True)

    def arrival(self, end: Pin) -> tuple[float | None, Pin | None]:
        """When a pin has its value, None if it comes from no register of the clock; and the pin before it on the
        slowest way. Ways are long, so what is missing is kept in a list, not on the stack."""
        missing = [end]
        while missing:
            pin = missing[-1]
            before = list(self._before(pin))
            if pin not in self._arrivals:
                self._arrivals[pin] = None, None  # what a loop would find
                unknown = [other for other, _ in before if other not in self._arrivals and not self._launches(other)]
                if unknown:
                    missing += unknown
                    continue
            missing.pop()
            times = [(time + delay, other) for other, delay in before if (time := self._time(other)) is not None]
            if times:
                self._arrivals[pin] = max(times)
        return self._arrivals[end]

    def _time(self, pin: Pin) -> float | None:
        return 0.0 if self._launches(pin) else self._arrivals[pin][0]

    def _launches(self, pin: Pin) -> bool:
        return pin.port in CLOCKS

    def _before(self, pin: Pin) -> Iterator[tuple[Pin, float]]:
        if pin in self.delays.wires:
            yield self.delays.wires[pin]
        for other, delay in self.delays.paths.get(pin, ()):
            if not self._launches(other) or self._clocks.get(other) == self.clock:
                yield other, delay

    def way(self, end: Pin) -> list[tuple[float, Pin]]:
        """The slowest way to an end, from the register's output on."""
        found = []
        at: Pin | None = end
        while at is not None and not self._launches(at):
            time, before = self.arrival(at)
            found.append((time or 0.0, at))
            at = before
        return found[::-1]


def place(cell: Mapping[str, Any]) -> tuple[int, int] | None:
    """Column and row of a placed cell."""
    match = _PLACE.match(cell["attributes"].get("NEXTPNR_BEL", ""))
    return (int(match[1]), int(match[2])) if match else None


def told(timing: Timing, cells: Mapping[str, Any], end: Pin) -> Iterator[str]:
    """A line for each cell on the way to an end: when its input is there, in nanoseconds, where it lies, and what the
    wire to it takes over so many columns and rows."""
    before: tuple[float, Pin] | None = None
    for time, pin in timing.way(end):
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
        timing = Timing(delays_of(args.routed, args.board), cells)
    except (OnnxhwError, NotRoutedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    late = [(time, end) for time, end in timing.ends() if time > args.ns * 1000]
    kinds: dict[str, list[tuple[float, Pin]]] = defaultdict(list)
    for time, end in late:
        kinds[f"{without_numbers(end.cell)} {end.port}"].append((time, end))
    print(f"{len(late)} ends later than {args.ns} ns, of {len(kinds)} kinds")
    for kind, found in list(kinds.items())[: args.kinds]:
        print(f"{found[0][0] / 1000:5.2f} {kind}, of {len(found)}")
        for line in told(timing, cells, found[0][1]):
            print(f"      {line}")
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
