"""What a device with external memory survives: power or the line lost at any byte, the watchdog at any cycle, and a
host that writes as fast as it can while runs go on.

    python bench/external_faults.py                  against the model of the device
    python bench/external_faults.py --pins           through the serial pins of the simulated gateware, whose memory
                                                     checks every command
    python bench/external_faults.py --count 50 --case "watchdog in a run"
    python bench/external_faults.py --markdown       the table of docs/faults.md

A small program in segments. Behind each fault another host comes: the device has to tell it truly what
is there, run nothing that is not complete, and give the right result once the rest has been loaded.
"""

import argparse
import random
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from arguments import whole
from faults import CLOCK, Device, KilledError, table, through_pins
from heuristics import Net

from onnxhw.cli.common.interrupts import script_status
from onnxhw.config import HwConfig
from onnxhw.driver.client import Client
from onnxhw.driver.device_model import DeviceModel
from onnxhw.driver.emulated_core import EmulatedCore
from onnxhw.driver.inferences import Inferences, numbers, pieces
from onnxhw.driver.link import Request
from onnxhw.driver.transport import ByteLine, SimulationTransport
from onnxhw.emu.emulator import Emulator
from onnxhw.errors import LinkError
from onnxhw.external import ULX3S
from onnxhw.ir.graph import Array8
from onnxhw.isa.link import IMAGE, LOADED, REGISTERS, Command, Info
from onnxhw.isa.memory import RUNNING, Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.program.external_use import external_words
from onnxhw.program.traffic import core_bytes, load_bytes
from onnxhw.segments import PartCycles, link, make_plan

BAUD = 1_000_000
"""Of the line: at a faster one the host's writes would meet other slots of the memory."""
INPUTS = 5
"""Different inputs; a batch has four of them."""
GONE = "E9103", "E9120", "E9121"
"""What a host is told whose device has lost its power: no answer, no session, no program."""
RUNS, WRITTEN = 4, 16
"""Runs that follow one another, and words beside the program's that the host writes twice in each: about as many as
there are slots for."""
MEMORY = replace(ULX3S, rows=128, columns=32, refresh=2000, power_up=50)
"""Small, and with slots that are slower than the line."""
CONFIG = HwConfig(
    "faults", rows=4, cols=4, word=4, lanes=2, act_banks=2, act_depth=64, weight_depth=64, acc_depth=16, param_depth=32,
    tables=1, load_ucode=24, array_ucode=48, vector_ucode=56, move_ucode=512, external=MEMORY,
)  # fmt: skip
LAYERS = 64
"""So that a run is longer than what the host writes meanwhile takes on the line."""


def deep() -> DeviceProgram:
    """Convolutions of 3 x 3 pixels one behind the other; the first one's result is added to the last one's, which would
    hardly depend on the input."""
    net = Net(4, 3)
    y = first = net.conv("x", 4)
    for _ in range(LAYERS):
        y = net.conv(y, 4)
    graph = net.graph("deep", net.add(y, first))
    return link(graph, make_plan(graph, CONFIG, PartCycles(CONFIG)), CONFIG)


@dataclass
class Breaking:
    """A `ByteLine` on which something happens `after` so many bytes from the host."""

    line: ByteLine
    happens: Callable[[], None]
    after: int | None = None
    sent: int = 0
    before: float = 0.0
    """Seconds of a device before this one."""

    def exchange(self, data: bytes) -> bytes:
        self.sent += len(data)
        if self.after is None or len(data) < self.after:
            self.after = None if self.after is None else self.after - len(data)
            return self.line.exchange(data)
        cut, self.after = self.after, None
        got = self.line.exchange(data[:cut])
        self.happens()
        return got + self.line.exchange(data[cut:])

    def seconds(self) -> float:
        return self.before + self.line.seconds()


@dataclass
class Found:
    """What a case has shown. `slowest`: seconds on the line until the next host has its result, the load included."""

    name: str
    faults: int = 0
    undetected: int = 0
    wrong: int = 0
    slowest: float = 0.0

    def row(self) -> list[str]:
        return [self.name, f"{self.faults:,}", f"{self.undetected}", f"{self.wrong}", f"{1e3 * self.slowest:.1f} ms"]


class Campaign:
    """A program, inputs and right results; a device that can be restarted (`power`)."""

    def __init__(self, program: DeviceProgram, devices: Generator[Device], seed: int) -> None:
        self.program, self.devices, self.rng = program, devices, random.Random(seed)
        self.sizes: dict[Callable[[Client], None], int] = {}
        self.in_runs = 0
        """Writes of the host's that had come to their end while a run went on."""
        numbers, emulator = np.random.default_rng(seed), Emulator(program)
        (port,) = program.inputs
        shape = program.tensors[port.tensor].shape
        self.inputs = [{port.tensor: numbers.integers(-128, 128, shape).astype(np.int8)} for _ in range(INPUTS)]
        self.wanted = [emulator.run(values).outputs for values in self.inputs]
        self.power()

    def power(self) -> None:
        """Off and on: another device, with nothing in its memories that could be known."""
        self.line = next(self.devices).line

    def connect(self, line: ByteLine | None = None) -> Client:
        """Another host."""
        return Client(SimulationTransport(line or self.line, BAUD))

    def right(self, outputs: dict[str, Array8], which: int) -> bool:
        """Whether these are those of an input."""
        return all(np.array_equal(values, self.wanted[which][name]) for name, values in outputs.items())

    def recovers(self, found: Found, states: set[tuple[bool, int]]) -> None:
        """Another host: what the device says of itself is one of `states` (whether it holds the program, and the bytes
        that are left to load), nothing runs that is not complete, and the result is right."""
        begin, client, which = self.line.seconds(), self.connect(), self.rng.randrange(INPUTS)
        state = client.holds(self.program), client.to_load(self.program)
        found.undetected += state not in states
        if not state[0]:
            try:
                client.run(self.inputs[which], self.program)
                found.undetected += 1
            except LinkError as error:
                found.undetected += error.code != "E9121"
            client.load(self.program)
        try:
            found.wrong += not self.right(client.run(self.inputs[which], self.program).outputs, which)
        except LinkError:
            found.wrong += 1
        found.slowest = max(found.slowest, self.line.seconds() - begin)

    # -- cases ---------------------------------------------------------------------------------

    def power_while_loading(self, found: Found) -> None:
        self._breaks(found, self.power_off, self._load, {(False, load_bytes(self.program))})

    def power_in_a_batch(self, found: Found) -> None:
        self._breaks(found, self.power_off, self._batch, {(False, load_bytes(self.program))})

    def line_while_loading(self, found: Found) -> None:
        one = self.program
        states = {(False, load_bytes(one)), (False, core_bytes(one)), (True, core_bytes(one))}
        self._breaks(found, self.die, self._load, states)

    def line_in_a_batch(self, found: Found) -> None:
        """The run that goes on ends by itself: the program stays."""
        self._breaks(found, self.die, self._batch, {(True, core_bytes(self.program))})

    def watchdog(self, found: Found) -> None:
        """In the middle of a move, whichever."""
        one, client = self.program, self.connect()
        span = self.rng.choice([span for span in timeline(one.config, one.code).spans[Unit.MOVE] if span.done > 4])
        cycles = self.rng.randrange(max(3, span.issue), span.done)
        client.load(replace(one, cycles=cycles))
        try:
            client.run(self.inputs[0])
            found.undetected += 1
        except LinkError as error:
            found.undetected += error.code != "E9108"
        flags = int(client.read(REGISTERS, 0, 1)[0]) & (LOADED | IMAGE)
        found.undetected += flags != IMAGE
        self.recovers(found, {(False, core_bytes(one))})

    def full_rate(self, found: Found) -> None:
        """Words that no program uses, while a run goes on: it takes no cycle more, and none is lost."""
        one, client, size = self.program, self.connect(), RUNS * 2 * WRITTEN
        if not client.holds(one):
            client.load(one)
        first = self.rng.randrange(external_words(one), MEMORY.host_words - size)
        words = np.frombuffer(self.rng.randbytes(4 * size), "<u4")
        run = Inferences(one, client.head().clock_hz, self.rng.randrange(1 << 20))
        begin, which = self.line.seconds(), self.rng.randrange(INPUTS)
        commands = [*run.settle, *run.load(self.inputs[which])]
        writes = list(_frames(first, words, run.wait))
        for number in range(RUNS):
            one_write, other = writes[2 * number : 2 * number + 2]
            commands += [run.start(number), one_write, Request(Command.POLL, count=1), other, *run.fetch]
        answers = client.link.perform(commands)[-RUNS * (4 + len(run.fetch)) :]
        for number in range(RUNS):
            mine = answers[number * (4 + len(run.fetch)) :][: 4 + len(run.fetch)]
            result = run.result(number, mine[4:])  # E9109: another number of cycles
            self.in_runs += numbers(mine[2].payload)[0] & RUNNING
            found.wrong += not self.right(result.outputs, which)
        found.undetected += not np.array_equal(client.read(Space.EXTERNAL, first, size), words)
        found.slowest = max(found.slowest, self.line.seconds() - begin)

    # -- parts of cases ------------------------------------------------------------------------

    def _load(self, client: Client) -> None:
        client.load(self.program)

    def _batch(self, client: Client) -> None:
        for which, result in enumerate(client.run_all(self.inputs[:4], self.program)):
            if not self.right(result.outputs, which):
                raise AssertionError("a wrong result before the fault")

    def _breaks(
        self, found: Found, happens: Callable[[], None], work: Callable[[Client], None], states: set[tuple[bool, int]]
    ) -> None:
        """Something happens at a random byte of what a host does; how many there are, one without faults shows."""
        self._prepare(work)
        if work not in self.sizes:
            whole = Breaking(self.line, self.die)
            work(self.connect(whole))
            self.sizes[work] = whole.sent
            self._prepare(work)
        self.breaking = Breaking(self.line, happens, self.rng.randrange(1, self.sizes[work]))
        client = self.connect(self.breaking)
        try:
            work(client)
            found.undetected += happens == self.power_off
        except KilledError:
            pass
        except LinkError as error:
            found.undetected += error.code not in GONE
        self.recovers(found, states)

    def _prepare(self, work: Callable[[Client], None]) -> None:
        """Before a load the device has no image, before a batch the program."""
        client = self.connect()
        if work == self._load:
            client.write(Space.EXTERNAL, 0, [0])
        elif not client.holds(self.program):
            client.load(self.program)

    def power_off(self) -> None:
        self.breaking.before += self.line.seconds()
        self.power()
        self.breaking.line = self.line

    def die(self) -> None:
        raise KilledError


def _frames(first: int, words: npt.NDArray[np.uint32], wait: float) -> Iterator[Request]:
    """Writes of `WRITTEN` words each."""
    for at in range(0, len(words), WRITTEN):
        data = words[at : at + WRITTEN].astype("<u4").tobytes()
        yield from pieces(Space.EXTERNAL_INPUT, first + at, data, 1, wait)


CASES: dict[str, Callable[[Campaign, Found], None]] = {
    "power lost while loading": Campaign.power_while_loading,
    "power lost in a batch": Campaign.power_in_a_batch,
    "line lost while loading": Campaign.line_while_loading,
    "line lost in a batch": Campaign.line_in_a_batch,
    "watchdog in a move": Campaign.watchdog,
    "host writes at full rate in runs": Campaign.full_rate,
}
COLUMNS = ["fault", "injected", "undetected", "wrong results", "longest until the next result"]


def modelled(config: HwConfig, seed: int) -> Generator[Device]:
    """Models of the device, whose memories hold random words."""
    rng = np.random.default_rng(seed)
    while True:
        core = EmulatedCore(config)
        for space, memory in core.memory.items():
            if space != Space.CONTROL:
                memory[:] = rng.integers(0, 1 << 32, len(memory), dtype=np.uint32)
        yield Device(DeviceModel(Info.of(config, clock_hz=CLOCK, baud=BAUD), core), config, core)


def pinned(config: HwConfig) -> Generator[Device]:
    """The gateware, compiled, one behind the other; its external memory begins with nothing known."""
    while True:
        with through_pins(config, BAUD) as device:
            yield device


def main(argv: list[str] | None = None) -> int:
    """The command line; exit status 1 if a fault was not survived, or none was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=whole(1), default=200, help="faults of each case")
    parser.add_argument("--seed", type=whole(0), default=0)
    parser.add_argument("--case", action="append", choices=CASES, metavar="NAME", help="only this; repeatable")
    parser.add_argument("--pins", action="store_true", help="through the pins of the simulated gateware")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args(argv)
    program, rows, bad, done = deep(), [], 0, 0
    for name in args.case or CASES:
        devices = pinned(CONFIG) if args.pins else modelled(CONFIG, args.seed)
        campaign, found = Campaign(program, devices, args.seed), Found(name)
        for _ in range(args.count):
            CASES[name](campaign, found)
            found.faults += 1
        rows.append(found.row())
        bad, done = bad + found.undetected + found.wrong, done + found.faults
        print(*found.row(), f"{campaign.in_runs} writes ended in runs" if campaign.in_runs else "", file=sys.stderr)
        devices.close()
    print(table(COLUMNS, rows, markdown=args.markdown))
    return int(bad > 0 or done == 0)


if __name__ == "__main__":
    sys.exit(script_status(main))
