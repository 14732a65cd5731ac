"""The controller of external memory with registers as in pads, simulated: commands, traces of its pins, words read."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from amaranth import Cat, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator

from onnxhw.engines.cxxrtl.sdram_model import SdramModel, SdramPins
from onnxhw.external import PREPARE, ExternalMemory
from onnxhw.isa.external import MemoryRequest, SdramCommand, TimedCommand
from onnxhw.rtl.external.controller import Controller
from onnxhw.rtl.external.pads import SimulatedPads

SMALL = ExternalMemory(
    data_bits=16, banks=4, rows=16, columns=16, cas_latency=2, rcd=3, rp=3, ras=5, rfc=7, wr=2, rrd=2, mrd=7, turn=4,
    refresh=90, power_up=20,
)  # fmt: skip
TRACED = ("cke", "cs", "ras", "cas", "we", "ba", "a", "dqm", "dq_o", "dq_oe")
"""Pins in the order of `SdramPins`."""
STEP = 0x2545
"""Words written are multiples of it, plus 1; the host's are their complement."""


class Harness(Elaboratable):
    """Controller and pads; the words that are written count."""

    def __init__(self, external: ExternalMemory) -> None:
        self.controller = Controller(external)
        self.host_words = True
        """The host's words come from here, too."""
        self.pads = SimulatedPads(external)
        c, p = self.controller, self.pads
        levels = [getattr(p.memory, name) for name in TRACED]
        self.pins, self.widths = Cat(*levels), [len(level) for level in levels]
        self.flags = Cat(
            c.initialised, c.started, c.request.ready & c.request.valid, c.host.ready, c.r_valid, c.host_r_valid,
            c.r_data,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.controller = c = self.controller
        m.submodules.pads = p = self.pads
        wiring.connect(m, c.memory, p.inner)
        words = [(c.w_data, c.w_next, False), *[(c.host_w_data, c.host_w_next, True)] * self.host_words]
        for data, taken, invert in words:
            number = Signal(32)
            with m.If(taken):
                m.d.sync += number.eq(number + 1)
            word = number * STEP + 1
            m.d.comb += data.eq(~word if invert else word)
        return m


@dataclass
class Found:
    """`trace`: the pins, cycle by cycle from power-up; `begin`: the controller's cycle 0 in it."""

    trace: list[SdramPins] = field(default_factory=list)
    begin: int = 0
    started: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    host_read: list[int] = field(default_factory=list)

    def pins(self) -> np.ndarray:
        """For `SdramModel.run`."""
        return np.array(self.trace, np.uint32)

    def commands(self, until: int) -> list[TimedCommand]:
        """Commands of cycles 0 .. until - 1."""
        found = []
        for at, pins in enumerate(self.trace[self.begin + PREPARE :]):
            op = SdramCommand(pins.ras << 2 | pins.cas << 1 | pins.we)
            if op != SdramCommand.NOP and at < until:
                found.append(TimedCommand(at, op, pins.ba, pins.a))
        return found


def simulate(
    external: ExternalMemory, requests: Sequence[MemoryRequest], host: Sequence[MemoryRequest], cycles: int, *,
    running: bool = True, start: int | None = None, clear: int | None = None, then: Sequence[MemoryRequest] = (),
    memory: SdramModel | None = None,
) -> Found:  # fmt: skip
    """So many cycles behind initialisation, with the memory at the pins if there is one. In cycle `clear` requests are
    forgotten, and those of `then` are what follows."""
    harness, found = Harness(external), Found()
    c = harness.controller

    def offer(ctx, stream, waiting, number, t):
        there = number < len(waiting) and waiting[number].cycle <= t
        ctx.set(stream.valid, there)
        if there:
            _, write, address, count = waiting[number]
            counts = {"count": count, "behind": count - 1} if stream is c.request else {"count": count}
            ctx.set(stream.payload, {"write": write, "address": address, **counts})

    async def bench(ctx):
        ctx.set(c.running, running)
        t, taken, served, waiting = -1, 0, 0, requests
        while t < cycles + PREPARE:
            value = ctx.get(harness.pins)
            levels = []
            for width in harness.widths:
                levels.append(value & (1 << width) - 1)
                value >>= width
            found.trace.append(SdramPins(*levels))
            if memory is not None:
                ctx.set(harness.pads.memory.dq_i, memory.step(found.trace[-1])[0])
                if memory.violation:
                    return
            if t < 0 and ctx.get(c.initialised):
                found.begin = len(found.trace) - 1
                t = 0
            if t >= 0:
                ctx.set(c.start, start == t)
                ctx.set(c.clear, clear == t)
                if clear == t:
                    waiting, taken = then, 0
                offer(ctx, c.request, waiting, taken, t)
                offer(ctx, c.host, host, served, t)
                flags = ctx.get(harness.flags)
                if flags & 2:
                    found.started.append(t + 1)
                taken, served = taken + (flags >> 2 & 1), served + (flags >> 3 & 1)
                if flags & 16:
                    found.read.append(flags >> 6)
                if flags & 32:
                    found.host_read.append(flags >> 6)
                t += 1
            await ctx.tick()

    simulator = Simulator(harness)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def random_external(rng: random.Random) -> ExternalMemory:
    """A small memory of any timing."""
    latency = rng.choice([2, 3])
    return ExternalMemory(
        data_bits=rng.choice([16, 32]), banks=rng.choice([2, 4]), rows=16, columns=16, cas_latency=latency,
        rcd=rng.randrange(1, 5), rp=rng.randrange(1, 5), ras=rng.randrange(2, 9), rfc=rng.randrange(2, 10),
        wr=rng.randrange(1, 4), rrd=rng.randrange(1, 4), mrd=rng.randrange(1, 4), turn=latency + 2,
        refresh=rng.randrange(120, 200), power_up=rng.randrange(1, 30),
    )  # fmt: skip


def random_requests(rng: random.Random, external: ExternalMemory, count: int, longest: int = 60) -> list[MemoryRequest]:
    """Requests of any length, at once or after a while."""
    cycle, found = 0, []
    for _ in range(count):
        cycle += rng.choice([0, 0, 0, rng.randrange(30)])
        length = rng.choice([1, 2, 3, rng.randrange(1, longest)])
        found.append(MemoryRequest(cycle, rng.random() < 0.5, rng.randrange(1 << external.address_bits), length))
    return found


def random_host(rng: random.Random, external: ExternalMemory, count: int, cycles: int) -> list[MemoryRequest]:
    """Bursts of the host, each within 8 columns."""
    return sorted(
        MemoryRequest(
            rng.randrange(cycles), rng.random() < 0.5, rng.randrange(1 << external.address_bits) & ~7,
            rng.randrange(1, 9),
        )
        for _ in range(count)
    )  # fmt: skip


def contents(external: ExternalMemory, requests: Sequence[MemoryRequest]) -> list[int | None]:
    """Words that the reads bring, None where nothing was written, if the requests go one by one."""
    cells: dict[int, int] = {}
    read: list[int | None] = []
    number, mask = 0, (1 << external.data_bits) - 1
    for _, write, address, count in requests:
        for at in range(address, address + count):
            place = at % (1 << external.address_bits)
            if write:
                cells[place] = number * STEP + 1 & mask
                number += 1
            else:
                read.append(cells.get(place))
    return read
