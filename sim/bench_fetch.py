"""`Fetcher`: each instruction once, in order, given words + overhead cycles after the last, and never too early."""

from typing import Any

import cocotb
from bench import known, parameters, start, tick

from onnxhw.isa import UNITS, Load
from onnxhw.isa.microcode import given, pack


@cocotb.test()
async def fetches_in_order(dut: Any) -> None:
    random = await start(dut)
    overhead = parameters()["overhead"]
    program = [
        Load(
            base=int(random.integers(1 << 24)) if i % 3 else 7,
            tiles=int(random.integers(1 << 16)) if i % 2 else 9,
            **{f"after_{unit}": int(random.integers(4)) * i // 4 for unit in UNITS},
        )
        for i in range(20)
    ]
    # The unit is held in reset while its program is written.
    dut.rst.value = 1
    for address, word in enumerate(pack(program)):
        dut.w_addr.value, dut.w_data.value, dut.w_en.value = address, word, 1
        await tick(dut)
    dut.w_en.value, dut.progress__count.value = 0, len(program)
    await tick(dut)
    dut.rst.value = 0

    words = given(program)
    completed = dict.fromkeys(UNITS, 0)
    since, index, idle = 0, 0, 0
    taking = False
    for _ in range(5000):
        for unit in UNITS:
            grows = random.random() < 0.05 and completed[unit] < len(program)
            completed[unit] += grows
            getattr(dut, f"completed__{unit}__count").value = completed[unit]
            getattr(dut, f"completed__{unit}__following").value = completed[unit] + 1
            getattr(dut, f"completed__{unit}__grown").value = int(grows)
        before = dict(completed)
        dut.issue__take.value = int(taking)
        await tick(dut)
        since = 0 if taking else since + 1
        index += taking
        taking = False
        valid = known(dut.issue__valid, "valid")
        if index == len(program):
            assert not valid, "an instruction after the last"
            idle += 1
            if idle > 40:
                break
            continue
        if valid:
            instruction = program[index]
            got = known(dut.issue__bits, "bits")
            want = sum(word << (32 * i) for i, word in enumerate(instruction.encode()))
            assert got == want, f"instruction {index} is {got:#x}, not {want:#x}"
            assert known(dut.progress__index, "index") == index
            assert since >= words[index] + overhead, f"instruction {index} is valid after {since} cycles"
            assert all(before[unit] >= getattr(instruction, f"after_{unit}") for unit in UNITS), f"{index} is too early"
            taking = random.random() < 0.3
        elif since > words[index] + overhead + 1:
            late = [unit for unit in UNITS if before[unit] < getattr(program[index], f"after_{unit}")]
            in_time = since <= words[index] + overhead + 2
            assert late or in_time, f"instruction {index} is not valid after {since} cycles"
    assert index == len(program), f"{index} of {len(program)} instructions"
