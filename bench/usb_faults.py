"""What a device with a USB link survives: damaged packets in both directions, and a cable that is pulled off.

    python bench/usb_faults.py                     at least 10,000 faults; an hour or so
    python bench/usb_faults.py --scale 0.01        fewer
    python bench/usb_faults.py --case unplugged    only this one
    python bench/usb_faults.py --markdown          the table of docs/faults.md

The pins of the simulated gateware (`mini`, digits network) behind a USB host that keeps to USB 2.0, whose cable
damages packets: of each with a probability a few neighbouring ticks are inverted, or all from one on are missing,
tokens, data and handshakes alike, of host and device. Operations are those of `bench/faults.py`: loads, transfers of
16 kB there and back, and batches of one to four inferences, all compared. A transaction that has had no valid answer
three times ends the port (E9102), as in an operating system; then, and behind a cable that was pulled off at a random
time, the cable is plugged in again, the device found anew, and another host asks for a right result.

"Errors": transactions without a valid answer. "Sent again": frames of the link; none, unless USB itself loses or
doubles bytes. "Given up": operations that ended with E9102. "Undetected": other errors, and frames sent again.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from faults import SCALE, Campaign, Device, Fault, Figures, compiled, conclude, table
from usb_host.bus import UsbBus, noise
from usb_host.line import UsbLine
from usb_host.model import UsbModel, usb_libraries

from onnxhw.cli.common.interrupts import script_status
from onnxhw.driver.client import Client
from onnxhw.driver.transport import SimulationTransport
from onnxhw.engines.cxxrtl.rtl_device import Libraries
from onnxhw.errors import LinkError
from onnxhw.isa.link import USB_BAUD

CLOCK = 12_000_000
"""The core's; every cycle costs time."""
LONGEST = 0.02
"""Seconds within which a cable is pulled off: an operation takes some milliseconds."""


@dataclass(frozen=True)
class Case:
    """`rate`: of damaged packets; 0: the cable is pulled off instead."""

    name: str
    rate: float
    faults: int


CASES = (
    Case("packets 1 %", 0.01, 2000),
    Case("packets 5 %", 0.05, 4000),
    Case("packets 20 %", 0.2, 4000),
    Case("unplugged", 0.0, 300),
)
HEAD = ["fault", "injected", "operations", "errors", "sent again", "given up", "undetected", "wrong results", "hangs",
        "longest recovery"]  # fmt: skip


@dataclass
class UsbFigures(Figures):
    """What a case has shown; `errors`: transactions without a valid answer."""

    errors: int = 0
    name: str = field(default="", kw_only=True)

    def row(self) -> list[str]:
        """The figures as text."""
        slowest = f"{1e3 * max(self.recovery):.1f} ms" if self.recovery else "-"
        counts = (self.injected, self.operations, self.errors, self.retried, self.given_up)
        return [self.name, *(f"{n:,}" for n in (*counts, self.undetected, self.wrong, self.hangs)), slowest]


class UsbCampaign:
    """The same program, inputs and right results for every case."""

    def __init__(self) -> None:
        self.campaign = Campaign(compiled())
        self.libraries: Libraries = usb_libraries(self.campaign.config, clock_hz=CLOCK)

    def run(self, case: Case, seed: int = 0) -> UsbFigures:
        """One case, on a device of its own, until enough faults were injected."""
        rng = random.Random(seed)
        found = UsbFigures(Fault(case.name, 1.0, case.faults), name=case.name)
        with UsbModel(self.libraries, clock_hz=CLOCK) as model:
            bus = UsbBus(model)
            line = UsbLine(model, bus)
            device = Device(line, self.campaign.config)
            while found.injected < case.faults:
                self._session(case, rng, line, device, found)
                found.injected = bus.counters.faults if case.rate else found.injected + 1
            found.errors = bus.counters.errors
        return found

    def _session(self, case: Case, rng: random.Random, line: UsbLine, device: Device, found: UsbFigures) -> None:
        client = Client(SimulationTransport(line, USB_BAUD))
        if case.rate:
            line.bus.damage = noise(rng.randrange(1 << 30), case.rate)
        else:
            line.unplug(rng.uniform(0, LONGEST))
        plugged = True
        try:
            for _ in range(20 if case.rate else sys.maxsize):
                self.campaign.operate(rng, client, device, found)
        except LinkError as error:
            plugged = False
            found.given_up += 1
            found.undetected += error.code != "E9102"
        line.bus.damage = None
        found.retried += client.counters.retries
        found.undetected += client.counters.retries
        start = line.seconds()
        if not plugged:
            line.replug()
        other = Client(SimulationTransport(line, USB_BAUD))
        other.head()
        found.recovery.append(line.seconds() - start)
        if not other.holds(self.campaign.program):
            other.load(self.campaign.program)
        self.campaign.infer(rng, other, device, found)


def main(argv: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    """The command line; exit status 1 if a fault was not detected, or none was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, metavar="NAME",
                        help="only this one, e.g. 'unplugged'; repeatable")  # fmt: skip
    parser.add_argument("--scale", type=SCALE, default=1.0, help="of the number of faults")
    arguments = parser.parse_args(argv)
    campaign, rows, bad, total = UsbCampaign(), [], 0, 0
    for seed, case in enumerate(CASES):
        if arguments.case and case.name not in arguments.case:
            continue
        case, start = Case(case.name, case.rate, max(3, round(case.faults * arguments.scale))), time.monotonic()
        figures = campaign.run(case, seed)
        rows.append(figures.row())
        total += figures.injected
        bad += figures.undetected + figures.wrong + figures.hangs
        print(f"{time.monotonic() - start:.1f} s:", *figures.row(), file=sys.stderr, flush=True)
    show(table(HEAD, rows, markdown=arguments.markdown))
    return conclude(total, bad, show)


if __name__ == "__main__":
    sys.exit(script_status(main))
