"""Fault campaign on the link: what a program and its results survive on a line that loses and spoils bytes.

    python bench/faults.py                    at least 10,000 faults, against the model of the device
    python bench/faults.py --markdown         the table of docs/faults.md
    python bench/faults.py --pins             a smaller sample of each through the serial pins of the simulated gateware
    python bench/faults.py --linked           with a linked program, which has an image of external memory
    python bench/faults.py --baud 1000000     at another first rate of the line than that of the boards, 3 Mbaud

A small network runs on the emulated core behind the link. Every result is compared with the emulator's, the device's
memories with the program after each load, and its count of runs with the runs that were asked for. Faults go into the
encoded bytes of both directions.

In the last two cases one to three breaks come one behind the other at a random time. Those of up to 29 ms change
nothing, and the session goes on. Each of more than 30 ms brings the device's next rate (docs/link.md, "Rates"): unless
they bring it around, the session ends with E9103, and a host that opens the port anew finds the device, at its first
rate again. Whatever else happens counts as undetected. The exit status is 1 if a fault was undetected, a result wrong,
or an operation hung, and if no fault was done.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from arguments import number, whole
from heuristics import Net
from serial_lines import ModelLine, PinnedLine, reopened

from onnxhw.cli.common.interrupts import script_status
from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.driver import connection
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.link import Counters
from onnxhw.driver.transport import ByteLine, SimulationTransport
from onnxhw.emu import run as emulate
from onnxhw.errors import LinkError
from onnxhw.isa.link import MIN_RATIO, SLOWER, Info, line_rates
from onnxhw.isa.memory import Space, host_stride
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.program.host_words import memories
from onnxhw.rtl.link.uart import BREAK_SECONDS
from onnxhw.segments import PartCycles, link, make_plan

BAUD = 3_000_000
"""The line's first rate: that of the boards."""
CLOCK = 100_000_000
"""Of the model of the device, in Hz."""
NETWORK = Path(__file__).parent.parent / "examples" / "digits.onnx"
HANG = 30.0
"""Seconds on the line after which an operation counts as hanging; a load takes a tenth of one."""
INPUTS = 8
WITHIN = 800
"""Bytes that a batch or two take."""
SCALE = number(1e-6, 1e6)
"""What numbers of faults are multiplied by."""
RATES = f"{MIN_RATIO} cycles a bit of a clock of {CLOCK / 1e6:g} MHz"
"""What bounds the line's rate."""
WORDS = 4000
"""Most words of a tensor that is written and read back."""


class KilledError(Exception):
    """The host dies in the middle of a transfer."""


@dataclass(frozen=True)
class Fault:
    """One kind of fault; `rate` is per bit of the line for flips and per byte for all others."""

    name: str
    rate: float
    faults: int
    """How many are injected."""
    inferences: bool = False
    """The host does nothing else, and dies within `WITHIN` bytes."""
    low: tuple[float, float] | None = None
    """The fault is the line held low for between so many seconds, at a random time; nothing else happens."""

    def spoil(self, rng: random.Random, data: bytearray, at: int) -> int:
        """Put one fault at byte `at`; how many bytes on the next one may lie."""
        kind = self.name.split()[0]
        if kind == "flip":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "drop":
            del data[at]
            return 0
        elif kind == "insert":
            data.insert(at, rng.randrange(256))
            return 2
        elif kind == "duplicate":
            data.insert(at, data[at])
            return 2
        elif kind == "burst":
            size = rng.randrange(2, 65)
            data[at : at + size] = rng.randbytes(len(data[at : at + size]))
            return size
        elif kind == "break":
            size = rng.randrange(1, 21)
            data[at : at + size] = b"\0"
        return 1


@dataclass
class FaultyLine:
    """A `ByteLine` with faults at random places in both directions; `kill_after` bytes from now the host dies.

    At the time `low_at` the line is held low, for the seconds of each of `lows`; what the host sends meanwhile is lost.
    """

    line: ByteLine
    fault: Fault
    rng: random.Random
    injected: int = 0
    on: bool = False
    kill_after: int | None = None
    gap: int = -1
    lows: list[float] = field(default_factory=list)
    low_at: float = math.inf

    def exchange(self, data: bytes) -> bytes:
        if self.lows:
            assert isinstance(self.line, ModelLine | PinnedLine)
            cut = max(0, math.ceil((self.low_at - self.seconds()) * self.line.baud / 10))
            if cut <= len(data):
                return self._break_at(self.line, data, cut)
        if self.kill_after is not None:
            if len(data) >= self.kill_after:
                self.line.exchange(self.damage(data[: self.kill_after]))
                self.kill_after = None
                raise KilledError
            self.kill_after -= len(data)
        return self.damage(self.line.exchange(self.damage(data)))

    def _break_at(self, line: "ModelLine | PinnedLine", data: bytes, cut: int) -> bytes:
        """The breaks at byte `cut`; then what is left of the host's bytes."""
        got = line.exchange(data[:cut]) if cut else b""
        begin = line.seconds()
        for seconds in self.lows:
            got += line.hold_low(seconds) + line.exchange(b"")
        self.injected += len(self.lows)
        self.lows = []
        rest = data[cut + math.ceil((line.seconds() - begin) * line.baud / 10) :]
        return got + (line.exchange(rest) if rest else b"")

    def seconds(self) -> float:
        return self.line.seconds()

    def damage(self, data: bytes) -> bytes:
        """The bytes as they arrive."""
        if not self.on or not self.fault.rate:
            return data
        out, at = bytearray(data), 0
        rate = self.fault.rate * (8 if self.fault.name.startswith("flip") else 1)
        while True:
            if self.gap < 0:
                self.gap = int(self.rng.expovariate(rate))
            if at + self.gap >= len(out):
                self.gap -= len(out) - at
                return bytes(out)
            at += self.gap
            self.gap = -1
            at += self.fault.spoil(self.rng, out, at)
            self.injected += 1


@dataclass
class Figures:
    """What one case has shown."""

    fault: Fault
    injected: int = 0
    operations: int = 0
    given_up: int = 0
    """Operations that ended with an error that says so."""
    killed: int = 0
    detected: int = 0
    retried: int = 0
    undetected: int = 0
    wrong: int = 0
    hangs: int = 0
    recovery: list[float] = field(default_factory=list)
    """Seconds on the line from the end of the faults to the first right answer of a new session."""
    line: float = 0.0
    """Seconds on the line."""

    def row(self) -> list[str]:
        """The figures as text."""
        slowest = f"{1e3 * max(self.recovery):.1f} ms" if self.recovery else "-"
        counts = (self.injected, self.operations, self.detected, self.retried, self.given_up, self.killed)
        bad = (self.undetected, self.wrong, self.hangs)
        return [self.fault.name, *(f"{n:,}" for n in (*counts, *bad)), slowest]


HEAD = ["fault", "injected", "operations", "detected", "sent again", "given up", "host killed", "undetected",
        "wrong results", "hangs", "longest recovery"]  # fmt: skip

CASES = (
    Fault("host killed", 0, 300),
    Fault("host killed in a batch", 0, 300, inferences=True),
    Fault("flip 1e-6", 1e-6, 40),
    Fault("flip 1e-5", 1e-5, 400),
    Fault("flip 1e-4", 1e-4, 2000),
    Fault("flip 1e-3", 1e-3, 4000),
    Fault("flip 1e-2", 1e-2, 3000),
    *(Fault(f"{kind} 1e-4", 1e-4, 200) for kind in ("drop", "insert", "duplicate", "burst", "break")),
    *(Fault(f"{kind} 1e-3", 1e-3, 300) for kind in ("drop", "insert", "duplicate", "burst", "break")),
    Fault("low for up to 29 ms", 0, 300, low=(0.001, 0.029)),
    Fault("low for over 30 ms", 0, 300, low=(0.031, 0.12)),
)
"""Kinds of fault, a rate and how many. In the first two the host dies at a random byte, and nothing else happens."""


@dataclass
class Device:
    """A line to a device, and what the host cannot see: the device's memories, and how often it ran."""

    line: ByteLine
    config: HwConfig
    core: EmulatedCore | None = None


def compiled() -> DeviceProgram:
    """The digits network on the smallest preset."""
    return compile_graph(load(NETWORK), preset("mini"))


def linked() -> DeviceProgram:
    """Three convolutions in segments, on the core of that preset with external memory and a fraction of its own."""
    config = replace(preset("mini+sdram"), name="fraction", act_depth=32, weight_depth=128)
    net, y = Net(4, 6), "x"
    for _ in range(3):
        y = net.conv(y, 4)
    graph = net.graph("chain", y)
    return link(graph, make_plan(graph, config, PartCycles(config)), config)


class Campaign:
    """The same program, inputs and right results for every case."""

    def __init__(self, program: DeviceProgram, baud: int = BAUD) -> None:
        self.config, self.program, self.baud = program.config, program, baud
        rng = np.random.default_rng(0)
        (port,) = self.program.inputs
        shape = self.program.tensors[port.tensor].shape
        self.inputs = [{port.tensor: rng.integers(-128, 128, shape).astype(np.int8)} for _ in range(INPUTS)]
        self.results = [emulate(self.program, values).outputs for values in self.inputs]
        self.words = min(WORDS, self.config.act_words * host_stride(self.config.word))
        self.images = list(memories(program))
        if program.external.size:
            self.images.append((Space.EXTERNAL, program.external))

    def emulated(self) -> Device:
        """The model of the device before the emulator."""
        core = EmulatedCore(self.config)
        model = DeviceModel(Info.of(self.config, clock_hz=CLOCK, baud=self.baud), core)
        return Device(ModelLine(model), self.config, core)

    def run(self, fault: Fault, device: Device, seed: int = 0) -> Figures:
        """One case: sessions with loads, transfers and runs until enough faults have been injected."""
        rng = random.Random(seed)
        figures, line = Figures(fault), FaultyLine(device.line, fault, rng)
        while line.injected < fault.faults:
            if fault.low:
                self._session_with_breaks(rng, fault.low, line, device, figures)
                continue
            line.on = True
            client = Client(SimulationTransport(line, self.baud))
            within = WITHIN if fault.inferences else 20_000
            line.kill_after = rng.randrange(1, within) if not fault.rate or rng.random() < 0.3 else None
            try:
                for _ in range(20):
                    self.operate(rng, client, device, figures)
                    if line.injected >= fault.faults:
                        break
            except LinkError as error:
                figures.given_up += 1
                figures.undetected += error.code != "E9103"
            except KilledError:
                figures.killed += 1
                line.injected += not fault.rate
            _add(figures, client.counters, client.link.damaged)
            line.on, line.kill_after = False, None
            self._recover(rng, line, device, figures)
        figures.injected, figures.line = line.injected, line.seconds()
        return figures

    def operate(self, rng: random.Random, client: Client, device: Device, figures: Figures) -> None:
        """A load, a transfer there and back, or a batch; errors as of `Client`."""
        figures.operations += 1
        start = client.transport.now()
        try:
            kind = 1.0 if figures.fault.inferences else rng.random()
            if kind < 0.3:
                client.load(self.program)
                self._compare(device, figures)
            elif kind < 0.85:
                words = np.frombuffer(rng.randbytes(4 * self.words), np.uint32)
                client.write(Space.ACT, 0, words)
                figures.wrong += not np.array_equal(client.read(Space.ACT, 0, self.words), words)
            elif client.holds(self.program):
                self.infer(rng, client, device, figures)
        finally:
            figures.hangs += client.transport.now() - start > HANG

    def infer(self, rng: random.Random, client: Client, device: Device, figures: Figures) -> None:
        """A batch of one to four inferences, compared."""
        batch = [rng.randrange(INPUTS) for _ in range(rng.randrange(1, 5))]
        before = device.core.runs if device.core else 0
        results = client.run_all([self.inputs[which] for which in batch], self.program)
        for which, result in zip(batch, results, strict=True):
            wanted = self.results[which]
            figures.wrong += any(not np.array_equal(result.outputs[name], wanted[name]) for name in wanted)
        if device.core:
            figures.undetected += device.core.runs != before + len(batch)

    def _compare(self, device: Device, figures: Figures) -> None:
        """After a load that succeeded the memories hold the program. Where the image of external memory has zeros, an
        earlier run may have left a tensor."""
        for space, image in self.images if device.core else ():
            assert device.core
            found = device.core.memory[space][: len(image)]
            figures.undetected += not np.array_equal(found * (image != 0) if space == Space.EXTERNAL else found, image)

    def _recover(self, rng: random.Random, line: FaultyLine, device: Device, figures: Figures) -> None:
        """The faults are over and another host comes: a session, and a right result."""
        start = line.seconds()
        client = Client(SimulationTransport(line, self.baud))
        client.head()
        self._serve(rng, client, start, device, figures)

    def _serve(self, rng: random.Random, client: Client, start: float, device: Device, figures: Figures) -> None:
        """The host that came at `start` has been answered, and asks for a right result."""
        figures.recovery.append(client.transport.now() - start)
        if not client.holds(self.program):
            client.load(self.program)
            self._compare(device, figures)
        self.infer(rng, client, device, figures)


    def _session_with_breaks(
        self, rng: random.Random, low: tuple[float, float], line: FaultyLine, device: Device, figures: Figures
    ) -> None:
        """Breaks in a session, which ends with E9103 just if the device is then at another rate; and whoever comes."""
        assert isinstance(device.line, ModelLine | PinnedLine)
        rates = line_rates(self.baud)
        line.lows = [rng.uniform(*low) for _ in range(rng.randrange(1, connection.MOST_RATES + 1))]
        line.low_at = line.seconds() + 10 * rng.randrange(20_000) / self.baud
        changed = sum(seconds > BREAK_SECONDS for seconds in line.lows) % len(rates) != 0
        client, behind = Client(SimulationTransport(line, device.line.baud)), 0
        try:
            while behind < 2:  # the first may have been over when the breaks came
                self.operate(rng, client, device, figures)
                behind += not line.lows
            figures.undetected += changed
        except LinkError as error:
            figures.given_up += 1
            figures.undetected += error.code != "E9103" or not changed
        _add(figures, client.counters, client.link.damaged)
        start = line.seconds()
        asked, likely = rng.choice([(None, None), (self.baud, None), (None, self.baud)])
        client = reopened(device.line, asked, likely)
        figures.undetected += client.transport.baud != self.baud
        self._serve(rng, client, start, device, figures)


def _add(figures: Figures, seen: Counters, damaged: int) -> None:
    figures.detected += seen.refused + damaged + seen.timeouts
    figures.retried += seen.retries


@contextmanager
def through_pins(config: HwConfig, baud: int = BAUD) -> Iterator[Device]:
    """The gateware, compiled, with the slowest clock that the rate allows."""
    from onnxhw.engines.cxxrtl.rtl_device import RtlDevice as Gateware
    from onnxhw.engines.cxxrtl.rtl_device import device_libraries

    clock_hz = MIN_RATIO * baud
    libraries = device_libraries(config, clock_hz=clock_hz, baud=baud)
    with Gateware(libraries, clock_hz=clock_hz, baud=baud) as gateware:
        yield Device(PinnedLine(gateware, clock_hz), config)


def table(head: list[str], rows: list[list[str]], *, markdown: bool) -> str:
    """Rows under their heads."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows]]
        return "\n".join(lines)
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    padded = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in [head, *rows]]
    return "\n".join("  ".join(row) for row in padded)


def conclude(injected: int, bad: int, show: Callable[[str], None]) -> int:
    """Say what a campaign has found. Its exit status: a campaign without faults has shown nothing, and fails."""
    show(f"\n{injected:,} faults injected; undetected, wrong results and hangs: {bad}")
    return int(bad > 0 or injected == 0)


def main(argv: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    """The command line; exit status 1 if a fault was not survived, or none was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--pins", action="store_true", help="through the pins of the simulated gateware, fewer faults")
    parser.add_argument("--linked", action="store_true", help="with a linked program, and external memory")
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, metavar="NAME",
                        help="only this fault, e.g. 'flip 1e-6'; repeatable")  # fmt: skip
    parser.add_argument("--scale", type=SCALE, default=1.0, help="of the number of faults")
    parser.add_argument("--baud", type=whole(min(SLOWER), CLOCK // MIN_RATIO, RATES), default=BAUD,
                        help=f"the line's first rate; default: {BAUD}")  # fmt: skip
    arguments = parser.parse_args(argv)
    campaign = Campaign(linked() if arguments.linked else compiled(), arguments.baud)
    rows, bad, total = [], 0, 0
    scale = arguments.scale / (50 if arguments.pins else 1)
    for seed, case in enumerate(CASES):
        if arguments.case and case.name not in arguments.case:
            continue
        case = replace(case, faults=max(3, round(case.faults * scale)))
        start = time.monotonic()
        if arguments.pins:
            with through_pins(campaign.config, arguments.baud) as device:
                figures = campaign.run(case, device, seed)
        else:
            figures = campaign.run(case, campaign.emulated(), seed)
        rows.append(figures.row())
        total += figures.injected
        bad += figures.undetected + figures.wrong + figures.hangs
        print(f"{time.monotonic() - start:.1f} s:", *figures.row(), file=sys.stderr, flush=True)
    show(table(HEAD, rows, markdown=arguments.markdown))
    return conclude(total, bad, show)


if __name__ == "__main__":
    sys.exit(script_status(main))
