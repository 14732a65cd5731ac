"""Fault campaign on the link: what a program and its results survive on a line that loses and spoils bytes.

    python bench/faults.py                    at least 10,000 faults, against the model of the device
    python bench/faults.py --markdown         the table of docs/faults.md
    python bench/faults.py --pins             a smaller sample of each through the serial pins of the simulated gateware
    python bench/faults.py --linked           with a linked program, which has an image of external memory

A small network runs on the emulated core behind the link. Every result is compared with the emulator's, the device's
memories with the program after each load, and its count of runs with the runs that were asked for. Faults go into the
encoded bytes of both directions.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from heuristics import Net

from onnxhw.compiler import compile_graph
from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.link import Counters
from onnxhw.driver.transport import ByteLine, SimulationTransport
from onnxhw.emu import run as emulate
from onnxhw.errors import LinkError
from onnxhw.isa.link import Info
from onnxhw.isa.memory import Space, host_stride
from onnxhw.partition import load
from onnxhw.presets import preset
from onnxhw.program import DeviceProgram
from onnxhw.program.host_words import memories
from onnxhw.segments import PartCycles, link, make_plan

BAUD = 1_000_000
NETWORK = Path(__file__).parent.parent / "examples" / "digits.onnx"
HANG = 30.0
"""Seconds on the line after which an operation counts as hanging; a load takes a tenth of one."""
INPUTS = 8
WITHIN = 800
"""Bytes that a batch or two take."""
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
    """A `ByteLine` with faults at random places in both directions; `kill_after` bytes from now the host dies."""

    line: ByteLine
    fault: Fault
    rng: random.Random
    injected: int = 0
    on: bool = False
    kill_after: int | None = None
    gap: int = -1

    def exchange(self, data: bytes) -> bytes:
        if self.kill_after is not None:
            if len(data) >= self.kill_after:
                self.line.exchange(self.damage(data[: self.kill_after]))
                self.kill_after = None
                raise KilledError
            self.kill_after -= len(data)
        return self.damage(self.line.exchange(self.damage(data)))

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

    def __init__(self, program: DeviceProgram) -> None:
        self.config, self.program = program.config, program
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
        return Device(DeviceModel(Info.of(self.config, clock_hz=100_000_000, baud=BAUD), core), self.config, core)

    def run(self, fault: Fault, device: Device, seed: int = 0) -> Figures:
        """One case: sessions with loads, transfers and runs until enough faults have been injected."""
        rng = random.Random(seed)
        figures, line = Figures(fault), FaultyLine(device.line, fault, rng)
        while line.injected < fault.faults:
            line.on = True
            client = Client(SimulationTransport(line, BAUD))
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
        client = Client(SimulationTransport(line, BAUD))
        client.head()
        figures.recovery.append(line.seconds() - start)
        if not client.holds(self.program):
            client.load(self.program)
            self._compare(device, figures)
        self.infer(rng, client, device, figures)


def _add(figures: Figures, seen: Counters, damaged: int) -> None:
    figures.detected += seen.refused + damaged + seen.timeouts
    figures.retried += seen.retries


class Pins(Protocol):
    """The serial pins of a simulated device: `onnxhw.engines.cxxrtl.rtl_device.RtlDevice`."""

    @property
    def cycles(self) -> int:
        """Cycles since reset."""

    def advance(self, cycles: int, data: bytes = b"") -> tuple[int, bytes]:
        """Run at most so many cycles: how many bytes of `data` were begun, and those received."""


class PinnedLine:
    """A `ByteLine` through the serial pins of the simulated gateware."""

    def __init__(self, model: Pins, clock_hz: int) -> None:
        self.model, self.clock_hz = model, clock_hz

    def exchange(self, data: bytes) -> bytes:
        taken, received = self.model.advance(0 if data else 5000, data)
        while taken < len(data):
            more, got = self.model.advance(50_000, data[taken:])
            taken, received = taken + more, received + got
        return bytes(received)

    def seconds(self) -> float:
        return float(self.model.cycles) / self.clock_hz


@contextmanager
def through_pins(config: HwConfig) -> Iterator[Device]:
    """The gateware, compiled."""
    from onnxhw.engines.cxxrtl.rtl_device import RtlDevice as Gateware
    from onnxhw.engines.cxxrtl.rtl_device import device_libraries

    clock_hz = 8 * BAUD
    libraries = device_libraries(config, clock_hz=clock_hz, baud=BAUD)
    with Gateware(libraries, clock_hz=clock_hz, baud=BAUD) as gateware:
        yield Device(PinnedLine(gateware, clock_hz), config)


def table(head: list[str], rows: list[list[str]], *, markdown: bool) -> str:
    """Rows under their heads."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows]]
        return "\n".join(lines)
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    padded = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in [head, *rows]]
    return "\n".join("  ".join(row) for row in padded)


def main(argv: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--pins", action="store_true", help="through the pins of the simulated gateware, fewer faults")
    parser.add_argument("--linked", action="store_true", help="with a linked program, and external memory")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this fault, e.g. 'flip 1e-6'; repeatable")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of faults")
    arguments = parser.parse_args(argv)
    campaign, rows, bad, total = Campaign(linked() if arguments.linked else compiled()), [], 0, 0
    scale = arguments.scale / (50 if arguments.pins else 1)
    for seed, case in enumerate(CASES):
        if arguments.case and case.name not in arguments.case:
            continue
        case = replace(case, faults=max(3, round(case.faults * scale)))
        start = time.monotonic()
        if arguments.pins:
            with through_pins(campaign.config) as device:
                figures = campaign.run(case, device, seed)
        else:
            figures = campaign.run(case, campaign.emulated(), seed)
        rows.append(figures.row())
        total += figures.injected
        bad += figures.undetected + figures.wrong + figures.hangs
        print(f"{time.monotonic() - start:.1f} s:", *figures.row(), file=sys.stderr)
    show(table(HEAD, rows, markdown=arguments.markdown))
    show(f"\n{total:,} faults injected; undetected, wrong results and hangs: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
