"""Host words through their port, the controller and the pads, into the checking memory and back."""

import random
from dataclasses import replace

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from external_bench import SMALL, Harness

from onnxhw.engines.cxxrtl.sdram_model import Numbers, Pins, SdramModel
from onnxhw.rtl.external.host import HostPort


class WithHost(Elaboratable):
    """Controller and pads of `Harness`, and the host's port."""

    def __init__(self, external):
        self.harness, self.port = Harness(external), HostPort(external)
        self.harness.host_words = False

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


@pytest.mark.parametrize("bits", [16, 32])
def test_words_come_back(bits):
    external = replace(SMALL, data_bits=bits)
    design = WithHost(external)
    port, rng = design.port, random.Random(bits)
    places = [0, external.host_words - 1, *rng.sample(range(external.host_words), 12)]
    words = {place: rng.getrandbits(32) for place in dict.fromkeys(places)}
    found = {}
    memory = SdramModel(Numbers.of(external))

    async def tick(ctx):
        value, levels = ctx.get(design.harness.pins), []
        for width in design.harness.widths:
            levels.append(value & (1 << width) - 1)
            value >>= width
        ctx.set(design.harness.pads.dq_i, memory.step(Pins(*levels))[0])
        await ctx.tick()

    async def bench(ctx):
        for place, word in words.items():
            ctx.set(port.addr, place)
            ctx.set(port.wdata, word)
            ctx.set(port.we, 1)
            await tick(ctx)
            ctx.set(port.we, 0)
            assert ctx.get(port.waiting)
            while ctx.get(port.waiting):
                await tick(ctx)
        for place in reversed(words):
            ctx.set(port.addr, place)
            ctx.set(port.re, 1)
            await tick(ctx)
            ctx.set(port.re, 0)
            while not ctx.get(port.rvalid):
                await tick(ctx)
            found[place] = ctx.get(port.rdata)

    simulator = Simulator(design)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    with memory:
        simulator.run()
        assert memory.violation == ""
    assert found == words
