"""COBS gateware against the definition in `onnxhw.driver.framing`."""

import random

import pytest
from amaranth.sim import Simulator

from onnxhw.driver.framing import cobs_decode, cobs_encode
from onnxhw.rtl.link.cobs import CobsDecoder, CobsEncoder


def frames(seed):
    """Frames near the edges: empty pieces, pieces of 253, 254 and 255 bytes, zeros at both ends."""
    rng = random.Random(seed)
    out = [b"\0", b"\0\0", b"a", b"a\0", b"\0a"]
    for size in (253, 254, 255, 508):
        body = bytes(rng.randrange(1, 256) for _ in range(size))
        out += [body, body + b"\0", b"\0" + body, body[:100] + b"\0" + body[100:]]
    out += [bytes(rng.choice((0, rng.randrange(256))) for _ in range(rng.randrange(1, 60))) for _ in range(20)]
    rng.shuffle(out)
    return out


def pump(dut, items, seed, *, slow=0.3):
    """Send items through streams `i`, `o` with random stalls on both sides; what came out."""
    got = []

    async def feed(ctx):
        rng = random.Random(seed)
        for item in items:
            while rng.random() < slow:
                await ctx.tick()
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(4000)

    async def watch(ctx):
        rng = random.Random(seed + 1)
        while True:
            ready = rng.random() >= slow
            ctx.set(dut.o.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid and ready:
                got.append(payload)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(feed)
    sim.add_testbench(watch, background=True)
    sim.run()
    return got


@pytest.mark.parametrize("slow", [0.0, 0.3])
def test_encoder(slow):
    sent = frames(1)
    items = [{"data": byte, "last": at == len(frame) - 1} for frame in sent for at, byte in enumerate(frame)]
    got = bytes(pump(CobsEncoder(depth=512), items, 2, slow=slow))
    assert got == b"".join(cobs_encode(frame) + b"\0" for frame in sent)


def decoded(items):
    """(frame, good) of each frame of the decoder's items."""
    out, body = [], bytearray()
    for item in items:
        if item.end:
            out.append((bytes(body), bool(item.good)))
            body = bytearray()
        else:
            body.append(item.data)
    return out


@pytest.mark.parametrize("slow", [0.0, 0.3])
def test_decoder(slow):
    sent = frames(3)
    line = b"".join(cobs_encode(frame) + b"\0" for frame in sent)
    got = decoded(pump(CobsDecoder(), [{"data": byte, "error": 0} for byte in line], 4, slow=slow))
    assert got == [(frame, True) for frame in sent]


def test_decoder_recovers_at_the_next_zero():
    """Whatever lies before a zero, the frame after it is read; cut frames and error items are told."""
    rng = random.Random(5)
    items, wanted = [], []
    for _ in range(60):
        noise = bytes(rng.randrange(1, 256) for _ in range(rng.randrange(1, 30)))
        items += [{"data": byte, "error": 0} for byte in noise + b"\0"]
        wanted.append(cobs_decode(noise))
        frame = bytes(rng.randrange(256) for _ in range(20))
        line = [{"data": byte, "error": 0} for byte in cobs_encode(frame) + b"\0"]
        spoil = rng.random() < 0.5
        if spoil:
            line.insert(rng.randrange(len(line)), {"data": 0, "error": 1})
        items += line
        wanted.append(None if spoil else frame)
    got = decoded(pump(CobsDecoder(), items, 6, slow=0))
    assert [frame if good else None for frame, good in got] == wanted
    assert None in wanted
