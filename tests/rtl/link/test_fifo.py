"""The input memory: order, what it says of its room, and what happens when it is full."""

import random

from amaranth.sim import Simulator

from onnxhw.rtl.link.fifo import ByteFifo


def test_order_room_and_waiting_when_full():
    """A sender that is often faster than the reader: nothing is lost or changed, and `free` never promises too much."""
    dut, rng = ByteFifo(depth=512), random.Random(1)
    sent = [(rng.randrange(256), rng.randrange(2)) for _ in range(1300)]
    got, full, promised = [], [], []

    async def feed(ctx):
        for byte, error in sent:
            ctx.set(dut.i.payload, {"data": byte, "error": error})
            ctx.set(dut.i.valid, 1)
            waited = 0
            while not (await ctx.tick().sample(dut.i.ready))[2]:
                waited += 1
            full.append(waited)
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(2600)

    async def read(ctx):
        cycle = 0
        while True:
            ctx.set(dut.o.ready, cycle > 700)
            _, _, valid, ready, payload = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            if valid and ready:
                got.append((payload.data, payload.error))
            cycle += 1
            if cycle < 400:
                promised.append((ctx.get(dut.free), cycle))

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(feed)
    sim.add_testbench(read, background=True)
    sim.run()
    assert got == sent
    assert max(full) > 100, "it was full and the sender waited"
    assert sum(full[:500]) == 0, "it takes an item per cycle until then"
    # Nothing has been read yet: `cycle` items have been taken.
    assert all(2 * free <= 512 - (cycle - 3) and 2 * free >= 512 - cycle - 4 for free, cycle in promised)
