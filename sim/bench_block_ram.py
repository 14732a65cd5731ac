"""`BlockRam`: byte-lane writes, reads 2 cycles later, against an array.

The same address is not read in the cycle in which it is written: the device does not define the result.
"""

from typing import Any

import cocotb
from bench import known, parameters, start, tick


@cocotb.test()
async def reads_and_writes(dut: Any) -> None:
    random = await start(dut)
    width, depth, granularity = (parameters()[name] for name in ("width", "depth", "granularity"))
    lanes = width // granularity
    model, expected = [0] * depth, []
    for step in range(1500):
        near = 8 if step % 200 < 120 else depth  # few addresses most of the time, so that reads meet writes
        write, read = int(random.integers(near)), int(random.integers(near))
        enable = int(random.integers(1 << lanes)) if random.random() < 0.7 and write != read else 0
        data = int.from_bytes(random.bytes(-(-width // 8)), "little") & ((1 << width) - 1)
        dut.w_addr.value, dut.w_data.value, dut.w_en.value, dut.r_addr.value = write, data, enable, read
        expected.append(model[read])
        for lane in range(lanes):
            if enable >> lane & 1:
                mask = ((1 << granularity) - 1) << (lane * granularity)
                model[write] = model[write] & ~mask | data & mask
        await tick(dut)
        if len(expected) >= parameters()["latency"]:
            want = expected.pop(0)
            got = known(dut.r_data, "r_data")
            assert got == want, f"r_data is {got:#x}, not {want:#x}"
