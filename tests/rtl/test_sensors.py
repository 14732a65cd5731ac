"""The parts of a device with a camera: each equal to its definition, or to the data sheet's timing."""

import itertools
from typing import Any

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from onnxhw.isa.camera import MOST_BOX, CameraSettings, Crop, average, expanded
from onnxhw.isa.ov7670 import DEVICE, REGISTERS, RESET
from onnxhw.program.camera import image_of, input_of, line_of
from onnxhw.rtl.sensors.average import BoxAverage
from onnxhw.rtl.sensors.capture import Capture
from onnxhw.rtl.sensors.quantize import Quantizer
from onnxhw.rtl.sensors.report import AnswerReport
from onnxhw.rtl.sensors.sccb import Sccb


def simulate(dut: Any, *benches: Any, background: tuple[Any, ...] = (), period: float = 1e-8) -> None:
    sim = Simulator(dut)
    sim.add_clock(period)
    for bench in benches:
        sim.add_testbench(bench)
    for bench in background:
        sim.add_testbench(bench, background=True)
    sim.run()


def settings(crop: Crop, seed: int = 0) -> CameraSettings:
    table = np.random.default_rng(seed).integers(-128, 128, (3, 256))
    return CameraSettings(crop, tuple(tuple(map(int, row)) for row in table), (0, 1))


def averaging(crop: Crop, frames: list[Any], apart: int) -> bytes:
    """Bytes of the words that `BoxAverage` and `Quantizer` make of frames, a pixel in `apart` cycles."""
    m, words, known = Module(), bytearray(), settings(crop).words()
    m.submodules.average, m.submodules.quantizer = box, quantizer = BoxAverage(), Quantizer()
    wiring.connect(m, box.o, quantizer.i)
    m.d.comb += quantizer.o.ready.eq(1)
    lasts = []

    async def camera(ctx: Any) -> None:
        for name, value in (("width", crop.width), ("height", crop.height), ("left", crop.left), ("top", crop.top),
                            ("box", crop.box), ("divisor", 2 * crop.box**2)):  # fmt: skip
            ctx.set(box.geometry[name], value)
        for frame in frames:
            ctx.set(box.begin, 1)
            await ctx.tick()
            ctx.set(box.begin, 0)
            await ctx.tick()
            for row in frame:
                for pixel in row:
                    ctx.set(box.pixel.as_value(), int(pixel))
                    ctx.set(box.valid, 1)
                    await ctx.tick()
                    ctx.set(box.valid, 0)
                    if apart > 1:
                        await ctx.tick().repeat(apart - 1)
                ctx.set(box.end_of_line, 1)
                await ctx.tick()
                ctx.set(box.end_of_line, 0)
                await ctx.tick()
        await ctx.tick().repeat(40)

    async def memory(ctx: Any) -> None:
        before = 0
        async for _, _, address in ctx.tick().sample(quantizer.addr):
            ctx.set(quantizer.data, before)
            before = known[address]

    async def watch(ctx: Any) -> None:
        async for _, _, valid, word in ctx.tick().sample(quantizer.o.valid, quantizer.o.payload):
            if valid:
                words.extend(word.word.to_bytes(4, "little"))
                lasts.append((word.last, len(words)))

    simulate(m, camera, background=(memory, watch))
    assert [at for last, at in lasts if last] == [len(words) // len(frames) * (n + 1) for n in range(len(frames))]
    return bytes(words)


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("crop", "apart"),
    [
        (Crop(3, 5, (11, 17)), 8),
        (Crop(2, 2, (5, 4)), 8),
        (Crop(2, 3, (9, 40)), 11),
        (Crop(2, 3, (4, 6)), 9),
        (Crop(4, 2, (30, 15)), 3),
    ],
)
def test_words_are_the_averages_looked_up(crop, apart):
    rng = np.random.default_rng(crop.width)
    frames = [rng.integers(0, 1 << 16, crop.frame).astype(np.uint16) for _ in range(2)]
    got = averaging(crop, frames, apart)
    wanted = b""
    for frame in frames:
        data = input_of(image_of(frame, crop), settings(crop))[0].transpose(1, 2, 0).tobytes()
        wanted += data + bytes(-len(data) % 4)
    assert got == wanted


@pytest.mark.rtl
def test_the_largest_box_fits_its_sums():
    crop, frame = Crop(1, 2, (MOST_BOX, 2 * MOST_BOX)), np.full((MOST_BOX, 2 * MOST_BOX), 0xFFFF, np.uint16)
    assert averaging(crop, [frame], 1)[:6] == input_of(image_of(frame, crop), settings(crop)).transpose(
        0, 2, 3, 1
    ).tobytes()  # fmt: skip


def test_a_frame_that_breaks_off_leaves_nothing_behind():
    crop = Crop(2, 2, (6, 6))
    frame = np.random.default_rng(1).integers(0, 1 << 16, crop.frame).astype(np.uint16)
    m = Module()
    m.submodules.box = box = BoxAverage()
    found = []
    m.d.comb += box.o.ready.eq(1)

    async def camera(ctx: Any) -> None:
        for name, value in (("width", 2), ("height", 2), ("box", 3), ("divisor", 18)):
            ctx.set(box.geometry[name], value)
        for pixels in (20, 31, 36):
            ctx.set(box.begin, 1)
            await ctx.tick()
            ctx.set(box.begin, 0)
            for number, pixel in enumerate(frame.reshape(-1)[:pixels]):
                ctx.set(box.pixel.as_value(), int(pixel))
                ctx.set(box.valid, 1)
                await ctx.tick()
                ctx.set(box.valid, 0)
                await ctx.tick().repeat(7)
                ctx.set(box.end_of_line, number % 6 == 5)
                await ctx.tick()
                ctx.set(box.end_of_line, 0)
            if pixels == 31:
                found.clear()
        await ctx.tick().repeat(20)

    async def watch(ctx: Any) -> None:
        async for _, _, valid, pixel in ctx.tick().sample(box.o.valid, box.o.payload):
            if valid:
                found.append([pixel.channels[at] for at in range(3)])

    simulate(m, camera, background=(watch,))
    assert found == image_of(frame, crop).transpose(1, 2, 0).reshape(-1, 3).tolist()


def test_averages_round_half_up_and_colours_reach_255():
    assert [average(total, 4) for total in (0, 1, 2, 5, 6, 1018, 1020)] == [0, 0, 1, 1, 2, 255, 255]
    assert expanded(0xFFFF) == (255, 255, 255)
    assert expanded(0x0821) == (8, 4, 8)


@pytest.mark.rtl
@pytest.mark.parametrize("phase", [0.1, 2.7, 5.0, 7.3, 9.9])
@pytest.mark.parametrize("half", [20.0, 40.0, 23.7])
def test_pixels_are_right_however_the_clocks_lie(half, phase):
    """Core at 100 MHz; the camera's data are there 5 ns after PCLK has fallen, and nonsense from there to 5 ns before.

    `half`: nanoseconds that each level of PCLK lasts.
    """
    rng, dut = np.random.default_rng(int(half)), Capture()
    rows = rng.integers(0, 1 << 16, (3, 5))
    found, frames, ends = [], [], []

    async def camera(ctx: Any) -> None:
        await ctx.delay((20 + phase) * 1e-9)

        async def byte(vsync: int, href: int, value: int) -> None:
            ctx.set(dut.pclk, 0)
            for vsync_, href_, d in ((rng.integers(2), rng.integers(2), rng.integers(256)), (vsync, href, value)):
                await ctx.delay(2.5e-9)
                ctx.set(dut.vsync, int(vsync_))
                ctx.set(dut.href, int(href_))
                ctx.set(dut.d, int(d))
            await ctx.delay(half * 1e-9 - 5e-9)
            ctx.set(dut.pclk, 1)
            await ctx.delay(half * 1e-9)

        for _ in range(2):
            for vsync in (0, 1, 1, 0, 0):
                await byte(vsync, 0, 0x55)
            for row in rows:
                for pixel in row:
                    await byte(0, 1, int(pixel) >> 8)
                    await byte(0, 1, int(pixel) & 0xFF)
                await byte(0, 0, 0xAA)
                await byte(0, 0, 0xAA)
        await ctx.delay(2e-7)

    async def watch(ctx: Any) -> None:
        async for _, _, valid, pixel, frame, end in ctx.tick().sample(
            dut.valid, dut.pixel.as_value(), dut.frame, dut.end_of_line
        ):
            if valid:
                found.append(pixel)
            if frame:
                frames.append(len(found))
            if end:
                ends.append(len(found))

    simulate(dut, camera, background=(watch,))
    assert found == [*rows.reshape(-1)] * 2
    assert frames == [0, 15]
    assert ends == [5, 10, 15, 20, 25, 30]


@pytest.mark.rtl
def test_registers_are_written_as_sccb_wants_it():
    """Start, 27 bits that stand while SIO_C is high, stop; SIO_C no faster than asked; pauses around the reset."""
    clock_hz, sccb_hz = 1_000_000, 50_000
    dut = Sccb(clock_hz=clock_hz, sccb_hz=sccb_hz)
    trace = []

    async def watch(ctx: Any) -> None:
        async for _, _, *levels in ctx.tick().sample(dut.sioc, dut.siod, dut.reset_n, dut.done):
            trace.append(levels)

    async def wait(ctx: Any) -> None:
        await ctx.tick().until(dut.done)
        await ctx.tick().repeat(100)

    simulate(dut, wait, background=(watch,), period=1 / clock_hz)
    writes, bits, starts, stops, rises = [], None, [], [], []
    for at, ((clock, line, *_), (new_clock, new_line, *_)) in enumerate(itertools.pairwise(trace)):
        if clock and new_clock and line != new_line:
            if line:
                assert bits is None
                bits = []
                starts.append(at)
            else:
                assert len(bits) == 28, "the rise of SIO_C before a stop counts, too"
                word = int("".join(map(str, bits[:27])), 2)
                assert word >> 18 & 1 == word >> 9 & 1 == word & 1 == 1
                assert word >> 19 == DEVICE
                writes.append((word >> 10 & 0xFF, word >> 1 & 0xFF))
                stops.append(at)
                bits = None
        if new_clock and not clock:
            rises.append(at)
            bits.append(new_line)
    assert writes == [(each.register, each.value) for each in REGISTERS]
    assert min(b - a for a, b in itertools.pairwise(rises)) >= clock_hz // sccb_hz
    released = next(at for at, levels in enumerate(trace) if levels[2])
    assert released >= 1000
    assert starts[0] - released >= 1000
    assert starts[REGISTERS.index(RESET) + 1] - stops[REGISTERS.index(RESET)] >= 1000


@pytest.mark.rtl
def test_answers_are_text():
    dut, text = AnswerReport(), bytearray()
    answers = [(0, 0), (3, 57), (10, -128), (239, 127), (100, -9), (7, -10), (20, 100)]

    async def ask(ctx: Any) -> None:
        for number, score in answers:
            ctx.set(dut.number, number)
            ctx.set(dut.score, score & 0xFF)
            ctx.set(dut.send, 1)
            await ctx.tick()
            ctx.set(dut.send, 0)
            ctx.set(dut.number, 0x55)
            await ctx.tick()
            await ctx.tick().until(dut.idle)

    async def watch(ctx: Any) -> None:
        rng = np.random.default_rng(0)
        ready = 0
        async for _, _, valid, character in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid and ready:
                text.append(character)
            ready = int(rng.integers(2))
            ctx.set(dut.o.ready, ready)

    simulate(dut, ask, background=(watch,))
    assert bytes(text) == b"".join(map(line_of, answers))
