"""Frames from SPI flash: against a memory in Python, in mode 0, asleep at first."""

from collections.abc import Callable

import pytest
from amaranth.sim import Simulator

from onnxhw.isa.flash import HEADER, HEADER_BYTES, MAGIC, byte_cycles, half_period, read_seconds
from onnxhw.rtl.link import flash_boot
from onnxhw.rtl.link.flash_boot import FlashBoot

CLOCK = 30_000_000
"""A bit of SCK takes two cycles."""
MOST_CYCLES = 20_000
"""Of a boot here; the longest takes half as many."""
OFFSET = 0x12345
FRAMES = bytes((0x80, 0x01, 0xFF, 0x5A, 0x00))


class Flash:
    """A 25-series memory whose contents begin at `offset`; asleep until it hears AB. It shows the opposite of a bit for
    `late` cycles after the clock has fallen."""

    def __init__(self, contents: bytes, offset: int = OFFSET, late: int = 0) -> None:
        self.contents, self.offset, self.late, self.unsettled = contents, offset, late, 0
        self.awake, self.high, self.bits, self.heard, self.at, self.level = False, False, 0, 0, 0, 1
        self.dummies = 0

    def step(self, cs: int, sck: int, copi: int) -> int:
        """A cycle with these pins; what it shows in the next one."""
        rises, falls, self.high = sck and not self.high, self.high and not sck, bool(sck)
        if not cs:
            self.awake |= (self.bits, self.heard) == (8, 0xAB)
            self.dummies += bool(rises and not self.awake)
            self.bits = self.heard = 0
            return 1
        if rises and self.bits < 32:
            self.bits, self.heard = self.bits + 1, self.heard << 1 | copi
            self.at = 8 * ((self.heard & 0xFFFFFF) - self.offset)
        if falls and self.bits == 32 and self.heard >> 24 == 0x03 and self.awake:
            byte = self.at // 8
            byte_there = self.contents[byte] if 0 <= byte < len(self.contents) else 0xFF
            self.level = byte_there >> (7 - self.at % 8) & 1
            self.at += 1
            self.unsettled = self.late
        shown = self.level ^ (self.unsettled > 0)
        self.unsettled = max(0, self.unsettled - 1)
        return shown


class Found:
    """What came of a boot: bytes, the cycles in which they came, whether it failed, cycles until its end."""

    def __init__(self) -> None:
        self.data, self.at, self.failed, self.cycles = bytearray(), list[int](), False, 0


def boot(
    flash: Flash,
    *,
    loaded: Callable[[bytes], bool],
    spoiled: int = -1,
    taken: Callable[[int], bool] = lambda _: True,
    clock_hz: int = CLOCK,
) -> Found:
    """Let it run to its end; the loader is `loaded` by what came, drops a frame behind `spoiled` bytes, and takes bytes
    in cycles that `taken` says."""
    dut, found = FlashBoot(clock_hz=clock_hz, offset=OFFSET), Found()

    async def bench(ctx):
        while ctx.get(dut.active):
            assert found.cycles < MOST_CYCLES
            ctx.set(dut.cipo, flash.step(ctx.get(dut.cs), ctx.get(dut.sck), ctx.get(dut.copi)))
            ctx.set(dut.o.ready, taken(found.cycles))
            ctx.set(dut.loaded, loaded(bytes(found.data)))
            if ctx.get(dut.o.valid) and ctx.get(dut.o.ready):
                found.data.append(ctx.get(dut.o.payload.data))
                found.at.append(found.cycles)
            ctx.set(dut.bad_frame, len(found.data) == spoiled)
            await ctx.tick()
            found.cycles += 1
        found.failed = bool(ctx.get(dut.failed))

    simulator = Simulator(dut)
    simulator.add_clock(1 / clock_hz)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_boot, "PATIENCE", 64)
    monkeypatch.setattr(flash_boot, "WAKE_SECONDS", 1e-6)


def image(frames: bytes = FRAMES, *, magic: int = MAGIC, length: int | None = None) -> bytes:
    return HEADER.pack(magic, len(frames) if length is None else length) + frames


def test_the_frames_arrive_one_byte_in_so_many_cycles() -> None:
    flash = Flash(image())
    found = boot(flash, loaded=lambda data: data == FRAMES)
    assert (bytes(found.data), found.failed) == (FRAMES, False)
    assert {b - a for a, b in zip(found.at, found.at[1:], strict=False)} == {byte_cycles(CLOCK)}
    assert flash.dummies == 8 * flash_boot.DUMMY_BYTES


@pytest.mark.parametrize("clock_hz", [CLOCK, 60_000_000, 110_000_000])
def test_a_bit_may_settle_until_the_last_cycle_of_its_clock(clock_hz: int) -> None:
    late = 2 * half_period(clock_hz) - 1
    found = boot(Flash(image(), late=late), loaded=lambda data: data == FRAMES, clock_hz=clock_hz)
    assert (bytes(found.data), found.failed) == (FRAMES, False)


def test_a_byte_waits_until_it_is_taken() -> None:
    found = boot(Flash(image()), loaded=lambda data: data == FRAMES, taken=lambda cycle: cycle % 97 == 0)
    assert (bytes(found.data), found.failed) == (FRAMES, False)


@pytest.mark.parametrize(
    "contents",
    [b"", image(magic=MAGIC ^ 1), image(length=0), image(length=1 << 24), bytes(HEADER_BYTES)],
    ids=["erased", "another word", "nothing in it", "longer than the memory", "zeros"],
)
def test_without_an_image_nothing_is_sent(contents: bytes) -> None:
    found = boot(Flash(contents), loaded=lambda _: True)
    assert (bytes(found.data), found.failed) == (b"", True)


def test_a_frame_that_is_dropped_ends_it() -> None:
    found = boot(Flash(image()), loaded=lambda _: False, spoiled=2)
    assert (bytes(found.data), found.failed) == (FRAMES[:2], True)


def test_a_program_that_does_not_become_complete_is_waited_for() -> None:
    found = boot(Flash(image()), loaded=lambda _: False)
    assert (bytes(found.data), found.failed) == (FRAMES, True)
    assert found.cycles - found.at[-1] >= 64


@pytest.mark.parametrize(
    ("clock_hz", "cycles"), [(25_000_000, 19), (50_000_000, 19), (100_000_000, 35), (110_000_000, 51)]
)
def test_the_clock_is_not_too_fast(clock_hz: int, cycles: int) -> None:
    assert clock_hz / (2 * half_period(clock_hz)) <= 25_000_000
    assert byte_cycles(clock_hz) == cycles
    assert read_seconds(clock_hz // cycles, clock_hz) == pytest.approx(1, rel=1e-6)
