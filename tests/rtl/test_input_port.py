"""The input port in gateware: every write of `isa.input_port.steps`, in its cycle, or as late as others make it."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.sim import Simulator

from onnxhw.config import HwConfig
from onnxhw.isa.input_port import LANES, Region, steps, stream_words
from onnxhw.rtl.input_port import InputPort

SMALL = {"act_banks": 2, "act_depth": 64, "weight_depth": 16, "param_depth": 16}
KWS = Region(64, 13, 3, 1, 9, 3, 17, 30, fill=0x85)
PIXELS = Region(7, 3, 2, 4, 6, 3, 0, 0)
FILLED = Region(7, 3, 2, 4, 6, 3, 5, 40, fill=0x80, ends=True)


def payload(region: Region, word: int) -> dict[str, Any]:
    places = {
        name: dict(zip(("word", "lane"), divmod(getattr(region, name), word), strict=True))
        for name in ("first", "lead", "gap", "row_gap", "tail")
    }
    counts = {name: getattr(region, name) for name in ("run", "runs", "rows")}
    return {**places, **counts, "fill": region.fill or 0, "fills": region.fill is not None, "ends": region.ends}


def run(config: HwConfig, regions: Sequence[Region], data: bytes, stalls: float) -> list[tuple[int, int, int, int]]:
    """The writes that were taken: cycle, address, lanes and data; the whole stream has then been taken."""
    dut, rng = InputPort(config), random.Random(len(data))
    found: list[tuple[int, int, int, int]] = []
    left = {"regions": len(regions), "words": len(data) // LANES}

    async def feed(ctx: Any, port: Any, items: list[Any], kind: str) -> None:
        for item in items:
            while rng.random() < stalls:
                ctx.set(port.valid, 0)
                await ctx.tick()
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            left[kind] -= 1
        ctx.set(port.valid, 0)

    async def feed_regions(ctx: Any) -> None:
        await feed(ctx, dut.regions, [payload(region, config.word) for region in regions], "regions")

    async def feed_words(ctx: Any) -> None:
        words = [int.from_bytes(data[at : at + LANES], "little") for at in range(0, len(data), LANES)]
        await feed(ctx, dut.i, words, "words")

    async def watch(ctx: Any) -> None:
        for cycle in range(20_000):
            ctx.set(dut.o.ready, rng.random() >= stalls)
            _, _, valid, ready, write, idle = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload, dut.idle
            )
            if valid and ready:
                found.append((cycle, write.addr, write.en, write.data))
            if idle and not left["regions"]:
                break

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(watch)
    sim.add_testbench(feed_regions, background=True)
    sim.add_testbench(feed_words, background=True)
    sim.run()
    assert set(left.values()) == {0}
    return found


def wanted(regions: Sequence[Region], data: bytes, word: int) -> list[tuple[int, int, dict[int, int]]]:
    """Cycle, address and bytes by lane of every write."""
    begins = [sum(1 for _ in steps(regions[:number], word)) for number in range(1, len(regions))]
    found = []
    for cycle, step in enumerate(steps(regions, word)):
        fill = regions[bisect_right(begins, cycle)].fill
        if step.count:
            source = [fill] * step.count if step.source is None else data[step.source : step.source + step.count]
            found.append((cycle, step.at // word, dict(enumerate(source, step.at % word))))
    return found


@pytest.mark.rtl
@pytest.mark.parametrize("stalls", [0, 0.3])
@pytest.mark.parametrize("word", [3, 4, 8, 10, 16])
def test_writes_are_those_of_the_definition(word: int, stalls: float) -> None:
    """Fills that end in the word in which they begin or words later; runs across words; an input's last, odd bytes."""
    config = HwConfig("x", rows=word, cols=2, word=word, lanes=1, acc_bits=24, **SMALL)
    regions = [KWS, PIXELS, FILLED, Region(0, 33), Region(160, 5, ends=True), Region(3, 9, ends=True)]
    data = random.Random(word).randbytes(LANES * stream_words(regions))
    expected, found = wanted(regions, data, word), []
    for cycle, address, enable, values in run(config, regions, data, stalls):
        found.append((cycle, address, {lane: values >> 8 * lane & 255 for lane in range(word) if enable >> lane & 1}))
    assert [each[1:] for each in found] == [each[1:] for each in expected]
    if not stalls:
        begun = found[0][0] - expected[0][0]
        assert [cycle - begun for cycle, *_ in found] == [cycle for cycle, *_ in expected]
