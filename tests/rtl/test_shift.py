"""Shifts and turns by a signal are those of Python."""

import random
from typing import Any

import pytest
from amaranth import Module, Signal, signed
from amaranth.sim import Simulator

from onnxhw.rtl.shift import rotate_right, shift_right

WIDTH = 20


@pytest.mark.parametrize(("bits", "unit"), [(1, 1), (3, 1), (2, 8), (2, 4), (2, -8)])
def test_a_value_is_shifted_and_turned_by_units(bits: int, unit: int) -> None:
    m = Module()
    value, by, shifted, turned = Signal(WIDTH), Signal(bits), Signal(signed(WIDTH)), Signal(WIDTH)
    m.d.comb += turned.eq(rotate_right(value, unit, by))  # to the left, if the unit is negative
    m.d.comb += shifted.eq(shift_right(value, abs(unit), by))
    rng = random.Random(bits)

    async def bench(ctx: Any) -> None:
        for number in range(1 << bits):
            for _ in range(20):
                word = rng.getrandbits(WIDTH)
                ctx.set(value, word)
                ctx.set(by, number)
                await ctx.delay(1e-9)
                least = word - (1 << WIDTH) if word >> (WIDTH - 1) else word
                assert ctx.get(shifted) == least >> abs(unit) * number
                at = unit * number % WIDTH
                assert ctx.get(turned) == (word >> at | word << WIDTH - at) & ((1 << WIDTH) - 1)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
