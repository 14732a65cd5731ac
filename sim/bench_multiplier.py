"""`Multiplier`: ``p = a * b`` 3 cycles later, every cycle, and never unknown."""

from itertools import product
from typing import Any

import cocotb
from bench import drive, edgy, parameters, signed, start, tick


@cocotb.test()
async def products(dut: Any) -> None:
    random = await start(dut)
    a_bits, b_bits = parameters()["a_bits"], parameters()["b_bits"]
    latency, expected = parameters()["latency"], []
    ends = [(-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1) for bits in (a_bits, b_bits)]
    pairs = [*product(*ends), *((edgy(random, a_bits)[0], edgy(random, b_bits)[0]) for _ in range(600))]
    for a, b in pairs:
        drive(dut.a, a, a_bits)
        drive(dut.b, b, b_bits)
        expected.append(a * b)
        await tick(dut)
        if len(expected) >= latency:
            want = expected.pop(0)
            got = signed(dut.p, a_bits + b_bits, "p")
            assert got == want, f"p is {got}, not {want}"
