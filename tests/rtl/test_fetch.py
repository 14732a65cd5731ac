"""The fetcher: every instruction whole and when the timing says, whatever words the microcode gives."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from onnxhw.isa import UNITS
from onnxhw.isa.fields import Instruction
from onnxhw.isa.microcode import given, pack
from onnxhw.isa.timing import FETCH_OVERHEAD
from onnxhw.isa.units import STREAMING, Unit
from onnxhw.presets import PRESETS
from onnxhw.rtl.fetch import Fetcher
from onnxhw.rtl.ports import READS, by_name

CONFIG = PRESETS["ulx3s-25f"]


def code_of(kind: type[Instruction], seed: int) -> list[Instruction]:
    """Instructions without order: neighbours that are alike, differ in a field or in many."""
    rng = random.Random(seed)
    free = [spec for spec in kind.specs() if not spec.name.startswith("after_") and spec.name != "more_reads"]
    found = [kind()]
    for _ in range(12):
        chosen = rng.sample(free, rng.choice((0, 1, 1, 2, 5, len(free))))
        found.append(found[-1].but(**{spec.name: spec.unpack(rng.getrandbits(64)) for spec in chosen}))
    return found


@pytest.mark.parametrize("wait", [0, 1, 7])
@pytest.mark.parametrize("unit", list(UNITS))
def test_instructions_come_whole_and_in_time(unit: str, wait: int) -> None:
    kind = UNITS[unit]
    code = code_of(kind, wait)
    dut = Fetcher(unit, CONFIG)
    found: list[Instruction] = []
    times: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.w_en, 1)
        for address, word in enumerate([*pack(code), 1, 5]):  # behind the last: what was there before
            ctx.set(dut.w_addr, address)
            ctx.set(dut.w_data, word)
            await ctx.tick()
        ctx.set(dut.w_en, 0)
        ctx.set(dut.progress.count, len(code))
        since = -2  # whether there is an instruction is compared two cycles ahead
        while len(found) < len(code):
            before = ctx.get(dut.issue.bits)
            await ctx.tick()
            since += 1
            assert since < 100
            if ctx.get(dut.issue.valid):
                assert ctx.get(dut.issue.bits) == before, "bits stand from a cycle before they are valid on"
                times.append(since)
                for _ in range(wait):
                    await ctx.tick()
                bits = ctx.get(dut.issue.bits)
                found.append(kind.decode([bits >> 32 * w & 0xFFFFFFFF for w in range(kind.words())]))
                assert ctx.get(dut.progress.index) == len(found) - 1
                ctx.set(dut.issue.take, 1)
                await ctx.tick()
                ctx.set(dut.issue.take, 0)
                since = 0
        for _ in range(40):
            await ctx.tick()
            assert not ctx.get(dut.issue.valid), "there is none behind the last"

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == code
    assert times == [words + FETCH_OVERHEAD for words in given(code)]


ORDERS = [
    (unit, name)
    for unit in UNITS
    for name in by_name(Fetcher(unit, CONFIG).completed)
    if name != READS or unit in STREAMING
]


@pytest.mark.parametrize(("unit", "name"), ORDERS)
def test_an_instruction_waits_for_as_many_as_it_says(unit: str, name: str) -> None:
    """The number is in the last word that is read, right before the instruction could be taken."""
    field = "more_reads" if name == READS else Unit(name).after
    kind, wanted = UNITS[unit], 6
    code = [kind(), kind().but(**{field: wanted})]
    dut = Fetcher(unit, CONFIG)
    told = by_name(dut.completed)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.w_en, 1)
        for address, word in enumerate(pack(code)):
            ctx.set(dut.w_addr, address)
            ctx.set(dut.w_data, word)
            await ctx.tick()
        ctx.set(dut.w_en, 0)
        for other in told.values():  # of all others there have been enough
            ctx.set(other.count, 100)
            ctx.set(other.following, 101)
        ctx.set(told[name].count, wanted - 1)
        ctx.set(told[name].following, wanted)
        ctx.set(dut.progress.count, len(code))
        while not ctx.get(dut.issue.valid):
            await ctx.tick()
        ctx.set(dut.issue.take, 1)
        await ctx.tick()
        ctx.set(dut.issue.take, 0)
        for _ in range(40):
            await ctx.tick()
            assert not ctx.get(dut.issue.valid), "one is left"
        ctx.set(told[name].count, wanted)
        ctx.set(told[name].following, wanted + 1)
        ctx.set(told[name].grown, 1)
        await ctx.tick()
        ctx.set(told[name].grown, 0)
        assert ctx.get(dut.issue.valid), "a cycle after it is told"
        for _ in range(5):
            await ctx.tick()
            assert ctx.get(dut.issue.valid), "it goes on standing"

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
