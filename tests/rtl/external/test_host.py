"""Host words through their port, the controller and the pads, into the checking memory and back."""

import random
from dataclasses import replace

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from external_bench import SMALL, Harness

from onnxhw.engines.cxxrtl.sdram_model import SdramModel, SdramNumbers, SdramPins
from onnxhw.external import SLOT_COLUMNS
from onnxhw.rtl.external.host import SdramHostPort


class WithHost(Elaboratable):
    """Controller and pads of `Harness`, and the host's port."""

    def __init__(self, external):
        self.harness, self.port = Harness(external), SdramHostPort(external)
        self.harness.host_words = False
        self.trace = []

    def elaborate(self, platform):
        m = Module()
        m.submodules.harness, m.submodules.port = self.harness, self.port
        controller, port = self.harness.controller, self.port
        wiring.connect(m, port.burst, controller.host)
        m.d.comb += [
            controller.host_w_data.eq(port.w_data), port.w_next.eq(controller.host_w_next),
            port.r_data.eq(controller.r_data), port.r_valid.eq(controller.host_r_valid),
        ]  # fmt: skip
        return m


async def pulse(ctx, design, memory, port, strobe, place, word=0, *, last):
    """One access, to its end."""
    ctx.set(port.addr, place)
    ctx.set(port.wdata, word)
    ctx.set(port.last, last)
    ctx.set(strobe, 1)
    await tick(ctx, design, memory)
    ctx.set(strobe, 0)
    ctx.set(port.wdata, ~word)
    if strobe is port.we:
        await tick(ctx, design, memory)
        while ctx.get(port.waiting):
            await tick(ctx, design, memory)
        return 0
    while not ctx.get(port.rvalid):
        await tick(ctx, design, memory)
    return ctx.get(port.rdata)


async def tick(ctx, design, memory):
    value, levels = ctx.get(design.harness.pins), []
    for width in design.harness.widths:
        levels.append(value & (1 << width) - 1)
        value >>= width
    pins = SdramPins(*levels)
    design.trace.append(pins)
    ctx.set(design.harness.pads.memory.dq_i, memory.step(pins)[0])
    await ctx.tick()


def groups(external, rows):
    """Slots that rows of accesses, each (place, count), take: a group of `SLOT_COLUMNS` columns each."""
    words = SLOT_COLUMNS * external.data_bits // 32
    return sum((place + count - 1) // words - place // words + 1 for place, count in rows)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("bits", [16, 32])
def test_words_come_back_and_share_slots(bits, running):
    external = replace(SMALL, data_bits=bits)
    design, rng = WithHost(external), random.Random(bits)
    port, memory = design.port, SdramModel(SdramNumbers.of(external))
    rows, at = [(0, 1)], 1
    while at < external.host_words - 40:
        at += rng.choice([0, 0, 1, rng.randrange(20)])
        rows.append((at, rng.choice([1, 2, 4, 8, rng.randrange(1, 30)])))
        at += rows[-1][1]
    rows.append((external.host_words - 3, 3))
    written, read = rng.sample(rows, 12), []
    words = {place + i: rng.getrandbits(32) for place, count in written for i in range(count)}
    found, served = {}, []

    async def bench(ctx):
        ctx.set(design.harness.controller.running, running)
        for place, count in written:
            for i in range(count):
                last = i == count - 1
                await pulse(ctx, design, memory, port, port.we, place + i, words[place + i], last=last)
        served.append(slots(design))
        for place, count in written:
            some = rng.randrange(count)
            read.append((place + some, count - some))
            for i in range(some, count):
                found[place + i] = await pulse(ctx, design, memory, port, port.re, place + i, last=i == count - 1)
        served.append(slots(design))

    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    with memory:
        simulator.run()
        assert memory.violation == ""
    assert found == {place: words[place] for place in found}
    assert served == [groups(external, written), groups(external, written) + groups(external, read)]


def slots(design):
    """Slots that were used so far; nothing else opens a row here."""
    return sum((pins.ras, pins.cas, pins.we) == (1, 0, 0) for pins in design.trace)


def test_behind_the_last_access_nothing_is_left_here():
    """Two reads of a word are two slots, and the second sees what was written meanwhile."""
    design = WithHost(SMALL)
    port, memory, found = design.port, SdramModel(SdramNumbers.of(SMALL)), []

    async def bench(ctx):
        for word in (7, 8):
            await pulse(ctx, design, memory, port, port.we, 5, word, last=True)
            for _ in range(2):
                found.append(await pulse(ctx, design, memory, port, port.re, 5, last=True))

    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    with memory:
        simulator.run()
        assert memory.violation == ""
    assert found == [7, 7, 8, 8]
    assert slots(design) == 6
