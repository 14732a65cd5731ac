"""`FrameSender`: frames on the line, how fast it takes words, and when nothing waits to be sent."""

from typing import Any

from amaranth.sim import Simulator

from onnxhw.driver.framing import cobs_decode, crc32c
from onnxhw.rtl.link.frames import SETTLED, FrameSender

FULL = [0x01010101 * (number % 200 + 1) for number in range(40)]
"""Without zeros among the bytes: each would cost the encoder a cycle."""
FRAMES = [[0x01020304], [0x11223344, 0xFFFFFFFF, 7], [0], FULL]


def sent(frames: list[list[int]], pause: int) -> tuple[list[bytes], list[int], list[int], list[int]]:
    """Give a sender these frames, with a pause behind each: the frames on the line, and the cycles in which a word was
    taken, a frame's end was on the line, and nothing waited."""
    sender = FrameSender()
    line, taken, ends, idle = bytearray(), list[int](), list[int](), list[int]()

    async def feed(ctx: Any) -> None:
        for frame in frames:
            for number, word in enumerate(frame):
                ctx.set(sender.i.payload, {"word": word, "last": number == len(frame) - 1})
                ctx.set(sender.i.valid, 1)
                await ctx.tick().until(sender.i.ready)
            ctx.set(sender.i.valid, 0)
            if pause:
                await ctx.tick().repeat(pause)
        await ctx.tick().repeat(1500)

    async def watch(ctx: Any) -> None:
        ctx.set(sender.o.ready, 1)
        at = 0
        while True:
            _, _, takes, gives, byte, waits = await ctx.tick().sample(
                sender.i.valid & sender.i.ready, sender.o.valid, sender.o.payload, ~sender.idle
            )  # fmt: skip
            taken.extend([at] if takes else [])
            idle.extend([] if waits else [at])
            if gives:
                line.append(byte)
                ends.extend([] if byte else [at])
            at += 1

    sim = Simulator(sender)
    sim.add_clock(1e-6)
    sim.add_testbench(feed)
    sim.add_testbench(watch, background=True)
    sim.run()
    return [cobs_decode(piece) or b"" for piece in bytes(line).split(b"\0")[:-1]], taken, ends, idle


def on_the_line(frame: list[int]) -> bytes:
    """A frame of these words, with its CRC, before it is stuffed."""
    body = b"".join(word.to_bytes(4, "little") for word in frame)
    return body + crc32c(body).to_bytes(4, "little")


def test_frames_one_after_the_other() -> None:
    got, taken, ends, _ = sent([*FRAMES, [1]], 1500)
    assert got == [on_the_line(frame) for frame in [*FRAMES, [1]]]
    assert len(ends) == len(got)
    assert {b - a for a, b in zip(taken[-len(FULL) :], taken[-len(FULL) + 1 : -1], strict=False)} == {5}


def test_frames_without_a_pause() -> None:
    """A frame's first word is taken while the CRC of the one before is sent."""
    got, taken, ends, _ = sent(FRAMES, 0)
    assert got == [on_the_line(frame) for frame in FRAMES]
    assert taken[len(FRAMES[0])] < ends[0]


def test_idle_only_while_nothing_waits() -> None:
    _, taken, ends, idle = sent(FRAMES, 1500)
    first = 0
    for frame, end in zip(FRAMES, ends, strict=True):
        first += len(frame)
        begin = taken[first - 1] + SETTLED
        assert begin < end
        assert not [at for at in idle if begin <= at <= end], "a word waited"
        assert [at for at in idle if end < at < end + 5], "nothing waited any longer"
