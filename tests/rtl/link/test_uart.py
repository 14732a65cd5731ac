"""The serial line against waveforms made bit by bit in the test."""

import random

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from onnxhw.errors import UsageError
from onnxhw.rtl.link import uart
from onnxhw.rtl.link.uart import LineRate, UartReceiver, UartTransmitter, bit_phase, bit_phases

CLOCK = 25_000_000


def receive(levels, *, baud, taken=None):
    """Items of a receiver that sees one level per clock cycle; `taken(cycle)` says when `o` is ready."""
    dut = UartReceiver(clock_hz=CLOCK, rates=[baud])
    items, broken = [], []

    async def bench(ctx):
        ctx.set(dut.rx, 1)
        await ctx.tick().repeat(4)
        for cycle, level in enumerate([*levels, *[1] * 40]):
            ctx.set(dut.rx, level)
            ctx.set(dut.o.ready, taken is None or taken(cycle))
            _, _, valid, ready, payload = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            if valid and ready:
                items.append((payload.data, payload.error))
            broken.append(ctx.get(dut.line_break))

    sim = Simulator(dut)
    sim.add_clock(1 / CLOCK)
    sim.add_testbench(bench)
    sim.run()
    return items, broken


def wave(data, bit, *, start=0.0):
    """One level per cycle for 8N1 bytes of `bit` cycles per bit, back to back."""
    levels, time = [], start
    for byte in data:
        for level in [0, *((byte >> i) & 1 for i in range(8)), 1]:
            time += bit
            levels += [level] * (round(time) - len(levels))
    return levels


@pytest.mark.parametrize("ratio", [8, 8.333, 10.7, 25, 100 / 3, 100])
@pytest.mark.parametrize("error", [-0.02, 0.0, 0.02])
def test_receiver_accepts_two_percent(ratio, error):
    rng = random.Random(1)
    data = [0x00, 0xFF, 0x55, 0xAA, 0x01, 0x80, *(rng.randrange(256) for _ in range(25 if ratio < 12 else 2))]
    items, _ = receive(wave(data, ratio * (1 + error), start=rng.random()), baud=CLOCK / ratio)
    assert items == [(byte, 0) for byte in data]


@pytest.mark.parametrize("error", [-0.12, 0.12])
def test_a_line_far_off_is_not_read_as_if_it_were_right(error):
    items, _ = receive(wave([0x55] * 8, 20 * (1 + error)), baud=CLOCK / 20)
    assert items != [(0x55, 0)] * 8


def test_glitches_of_one_cycle_are_outvoted():
    """Two thirds of the samples decide; a glitch spoils one sample, or looks like a start bit that is none."""
    data = [0x3C, 0xA5, 0x00, 0xFF]
    clean = wave(data, 16)
    for at in range(3, len(clean), 23):
        if clean[max(0, at - 2) : at + 3] in ([0] * 5, [1] * 5):
            levels = list(clean)
            levels[at] ^= 1
            assert receive(levels, baud=CLOCK / 16)[0] == [(byte, 0) for byte in data], at
    idle = [1] * 200
    idle[50] = idle[51] = 0
    assert receive([*idle, *clean], baud=CLOCK / 16)[0] == [(byte, 0) for byte in data]


def test_framing_error_and_break_are_marked_and_then_over():
    good = wave([0x42], 10)
    bad_stop = [*wave([0xF0], 10)[:90], *[0] * 10]
    items, _ = receive([*good, *bad_stop, *[1] * 5, *good], baud=CLOCK / 10)
    assert items == [(0x42, 0), (0xF0, 1), (0x42, 0)]
    items, broken = receive([*good, *[0] * 500, *[1] * 5, *good], baud=CLOCK / 10)
    assert items == [(0x42, 0), (0x00, 1), (0x42, 0)]
    assert sum(broken[100:700]) in range(390, 420)


def test_a_byte_that_nobody_takes_is_marked_in_the_next():
    levels = wave([1, 2, 3, 4], 10)
    items, _ = receive(levels, baud=CLOCK / 10, taken=lambda cycle: cycle > 250)
    assert items == [(1, 0), (3, 1), (4, 0)]


@pytest.mark.parametrize("ratio", [8, 8.333, 12.9, 104.17])
def test_transmitter_bits_are_in_time(ratio):
    """Every edge lies within a cycle of its place, counted from the byte's start; no gap between bytes."""
    dut = UartTransmitter(clock_hz=CLOCK, rates=[CLOCK / ratio])
    data = [0x55, 0x00, 0xFF, 0x93]
    levels = []

    async def feed(ctx):
        for byte in data:
            ctx.set(dut.i.payload, byte)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        for _ in range(round(ratio * 10 * (len(data) + 1))):
            levels.append((await ctx.tick().sample(dut.tx))[2])

    sim = Simulator(dut)
    sim.add_clock(1 / CLOCK)
    sim.add_testbench(feed)
    sim.add_testbench(watch)
    sim.run()
    at = levels.index(0)
    assert levels[:at] == [1] * at
    for byte in data:
        bits = [0, *((byte >> i) & 1 for i in range(8)), 1]
        for index, level in enumerate(bits):
            first, last = at + index * ratio + 1, at + (index + 1) * ratio - 1
            assert set(levels[round(first) : round(last)]) == {level}, (byte, index)
        step = round(at + 10 * ratio)
        at = next((i for i in range(step - 1, step + 3) if not levels[i]), step)
    assert levels[at:] == [1] * (len(levels) - at)


def test_transmitter_into_receiver():
    """Every byte value, at the least ratio."""
    transmitter = UartTransmitter(clock_hz=CLOCK, rates=[CLOCK / 8])
    receiver = UartReceiver(clock_hz=CLOCK, rates=[CLOCK / 8])
    m = Module()
    m.submodules += [transmitter, receiver]
    m.d.comb += receiver.rx.eq(transmitter.tx)
    items = []

    async def feed(ctx):
        await ctx.tick().repeat(10)
        for byte in range(256):
            ctx.set(transmitter.i.payload, byte)
            ctx.set(transmitter.i.valid, 1)
            await ctx.tick().until(transmitter.i.ready)
        ctx.set(transmitter.i.valid, 0)
        await ctx.tick().repeat(100)

    async def watch(ctx):
        ctx.set(receiver.o.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(receiver.o.valid, receiver.o.payload):
            if valid:
                items.append((payload.data, payload.error))

    sim = Simulator(m)
    sim.add_clock(1 / CLOCK)
    sim.add_testbench(feed)
    sim.add_testbench(watch, background=True)
    sim.run()
    assert items == [(byte, 0) for byte in range(256)]


def test_a_long_break_chooses_the_next_rate(monkeypatch):
    """Through reset and a line that is low since, short breaks and long ones: bytes at each rate, around and again."""
    monkeypatch.setattr(uart, "BREAK_SECONDS", 400 / CLOCK)
    rates = [CLOCK / 8, CLOCK / 20, CLOCK / 50]
    transmitter, receiver = (kind(clock_hz=CLOCK, rates=rates) for kind in (UartTransmitter, UartReceiver))
    chosen = LineRate(clock_hz=CLOCK, rates=3)
    m, low, sent, items = Module(), Signal(init=1), [], []
    m.submodules += [transmitter, receiver, chosen]
    m.d.comb += [receiver.rx.eq(transmitter.tx & ~low), chosen.line_break.eq(receiver.line_break)]
    m.d.comb += [transmitter.rate.eq(chosen.rate), receiver.rate.eq(chosen.rate)]

    async def feed(ctx):
        ctx.set(receiver.o.ready, 1)
        for hold in (2000, 300, 370, 500, 900, 420, 600):  # of a byte's time, the receiver knows no break yet
            await ctx.tick().repeat(hold + round(10 * CLOCK / rates[ctx.get(chosen.rate)] if sent else 0))
            ctx.set(low, 0)
            await ctx.tick().repeat(20)
            wanted = ctx.get(chosen.rate)
            ctx.set(transmitter.i.payload, 0xA5 ^ len(sent))
            ctx.set(transmitter.i.valid, 1)
            await ctx.tick().until(transmitter.i.ready)
            ctx.set(transmitter.i.valid, 0)
            await ctx.tick().repeat(round(12 * CLOCK / rates[wanted]))
            sent.append((wanted, 0xA5 ^ len(sent)))
            ctx.set(low, 1)

    async def watch(ctx):
        async for _, _, valid, payload in ctx.tick().sample(receiver.o.valid, receiver.o.payload):
            if valid and not payload.error:
                items.append(payload.data)

    sim = Simulator(m)
    sim.add_clock(1 / CLOCK)
    sim.add_testbench(feed)
    sim.add_testbench(watch, background=True)
    sim.run()
    assert [rate for rate, _ in sent] == [0, 0, 0, 1, 2, 0, 1]
    assert items == [byte for _, byte in sent]


@pytest.mark.parametrize("clock", [25e6, 50e6, 100e6, 125e6])
def test_dividers_of_several_rates(clock):
    rates = [3e6, 1e6, 115200]
    width, steps = bit_phases(clock, rates)
    assert all(abs(clock * step / 2**width / rate - 1) <= 1 / 2048 for rate, step in zip(rates, steps, strict=True))


@pytest.mark.parametrize(
    ("clock", "baud"), [(25e6, 3e6), (25e6, 1e6), (100e6, 3e6), (100e6, 115200), (100e6, 300), (80e6, 1.5e6)]
)
def test_divider_error(clock, baud):
    width, step = bit_phase(clock, baud)
    assert abs(clock * step / 2**width / baud - 1) <= 1 / 2048


def test_too_fast_a_line_is_refused():
    says = r"E2140 .*3,000,000 baud needs a clock of at least 24 MHz, not 20 MHz.*at most 2,500,000 baud"
    with pytest.raises(UsageError, match=says):
        bit_phase(20e6, 3e6)
