"""The input port in gateware: every write of `isa.input_port.steps`, in its cycle, or as late as others make it."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.sim import Simulator

from onnxhw.config import HwConfig
from onnxhw.isa.input_port import LANES, InputRegion, steps, stream_words, table_words
from onnxhw.rtl.input_path import InputPath

SMALL = {"act_banks": 2, "act_depth": 64, "weight_depth": 16, "param_depth": 16}
KWS = InputRegion(64, 13, 3, 1, 9, 3, 17, 30, fill=0x85)
PIXELS = InputRegion(7, 3, 2, 4, 6, 3, 0, 0)
FILLED = InputRegion(7, 3, 2, 4, 6, 3, 5, 40, fill=0x80, ends=True)


def run(
    config: HwConfig, regions: Sequence[InputRegion], data: bytes, stalls: float, times: int
) -> list[tuple[int, int, int, int]]:
    """The writes of the inputs, sent so often: cycle, address, lanes and data."""
    dut, rng = InputPath(config), random.Random(len(data))
    found: list[tuple[int, int, int, int]] = []
    words = [int.from_bytes(data[at : at + LANES], "little") for at in range(0, len(data), LANES)]

    async def feed(ctx: Any) -> None:
        for address, word in enumerate(table_words(regions, config.word)):
            ctx.set(dut.table_addr, address)
            ctx.set(dut.table_data, word)
            ctx.set(dut.table_en, 1)
            await ctx.tick()
        ctx.set(dut.table_en, 0)
        for number in range(times):
            for at, word in enumerate(words):
                while ctx.get(dut.full) or rng.random() < stalls:
                    ctx.set(dut.w_en, 0)
                    await ctx.tick()
                ctx.set(dut.w_data, word)
                ctx.set(dut.begins, at == 0)
                ctx.set(dut.w_en, 1)
                await ctx.tick()
                ctx.set(dut.begins, 0)
            ctx.set(dut.w_en, 0)
            await ctx.tick().repeat(3)
            await ctx.tick().until(~dut.busy)
            assert ctx.get(dut.complete) == 1, number
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(50)  # nothing else is written

    async def watch(ctx: Any) -> None:
        cycle = 0
        while True:
            ctx.set(dut.o.ready, rng.random() >= stalls)
            _, _, valid, taken, write = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload)
            cycle += 1
            if valid and taken:
                found.append((cycle, write.addr, write.en, write.data))

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(feed)
    sim.add_testbench(watch, background=True)
    sim.run()
    return found


def wanted(regions: Sequence[InputRegion], data: bytes, word: int) -> list[tuple[int, int, dict[int, int]]]:
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
def test_a_run_of_no_bytes_takes_one() -> None:
    """Whatever a table says, a word is taken after four runs at most: no frame keeps the link busy for long."""
    config = HwConfig("x", rows=4, cols=2, word=4, lanes=1, acc_bits=24, **SMALL)
    empty, single = (InputRegion(0, length, 3, 2, 1, 2, ends=True) for length in (0, 1))
    data = bytes(range(1, 1 + LANES))
    assert run(config, [empty], data, 0, 1) == run(config, [single], data, 0, 1)


@pytest.mark.rtl
@pytest.mark.parametrize("stalls", [0, 0.3])
@pytest.mark.parametrize("word", [3, 4, 8, 10, 16])
def test_writes_are_those_of_the_definition(word: int, stalls: float) -> None:
    """Fills that end in the word in which they begin or words later; runs across words; an input's last, odd bytes, and
    one that ends with a word; and the same inputs for a second time."""
    config = HwConfig("x", rows=word, cols=2, word=word, lanes=1, acc_bits=24, **SMALL)
    regions = [KWS, PIXELS, FILLED, InputRegion(0, 33), InputRegion(160, 5, ends=True), InputRegion(200, 8, ends=True),
               InputRegion(3, 9, ends=True)]  # fmt: skip
    compare(config, regions, 2, stalls)


@pytest.mark.rtl
@pytest.mark.parametrize("first", range(4))
def test_runs_of_any_length_end_where_they_should(first: int) -> None:
    """Whatever is left in the low bits of a run's counter when the last sixteen begin."""
    config = HwConfig("x", rows=4, cols=2, word=4, lanes=1, acc_bits=24, **SMALL)
    for lengths in (range(13, 20), range(20, 27), range(31, 38)):
        compare(config, [InputRegion(first, length, ends=True) for length in lengths], 1, 0)


def compare(config: HwConfig, regions: Sequence[InputRegion], times: int, stalls: float) -> None:
    """All writes are those of the definition; without stalls in their cycles, too."""
    word = config.word
    data = random.Random(word).randbytes(LANES * stream_words(regions))
    expected, found = wanted(regions, data, word), []
    for cycle, address, enable, values in run(config, regions, data, stalls, times):
        found.append((cycle, address, {lane: values >> 8 * lane & 255 for lane in range(word) if enable >> lane & 1}))
    assert [each[1:] for each in found] == times * [each[1:] for each in expected]
    if not stalls:
        for number in range(times):
            these = found[number * len(expected) :][: len(expected)]
            begun = these[0][0] - expected[0][0]
            assert [cycle - begun for cycle, *_ in these] == [cycle for cycle, *_ in expected]
