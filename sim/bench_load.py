"""`LoadUnit`: every tile of every instruction, in order, none before the array has taken the one before."""

from typing import Any

import cocotb
import numpy as np
from bench import config, known, parameters, start, tick

from onnxhw.isa import Load


@cocotb.test()
async def streams_tiles(dut: Any) -> None:
    random = await start(dut)
    c, delay = config(), parameters()["delay"]
    memory = [random.bytes(c.weight_word) for _ in range(c.weight_depth)]
    for address, word in enumerate(memory):
        dut.w_addr.value, dut.w_data.value = address, int.from_bytes(word, "little")
        dut.w_en.value = (1 << c.weight_word) - 1
        await tick(dut)
    dut.w_en.value = 0
    program = []
    for _ in range(8):
        count = int(random.integers(1, 5))
        program.append(Load(base=int(random.integers(c.weight_depth - count * c.tile_words)), tiles=count))
    wanted = [
        (step, memory[load.base + tile * c.tile_words + step])
        for load in program
        for tile in range(load.tiles)
        for step in range(c.tile_words)
    ]
    tiles = sum(load.tiles for load in program)
    ends, last_steps = [], []  # cycles in which an instruction was done, and in which its last weights came
    lasts = np.cumsum([load.tiles * c.tile_words for load in program]).tolist()
    waiting, seen, started, taken, owed = list(program), 0, 0, 0, 0
    for cycle in range(6000):
        valid = bool(waiting) and random.random() < 0.5
        dut.valid.value = int(valid)
        dut.bits.value = sum(word << (32 * i) for i, word in enumerate(waiting[0].encode())) if valid else 0
        take_tile = owed > 0 and random.random() < 0.15
        dut.taken.value = int(take_tile)
        await tick_low(dut)
        if known(dut.take, "take"):
            assert valid, "take without valid"
            waiting.pop(0)
        if known(dut.started, "started"):
            assert started == taken or started == 0, f"tile {started} starts when {taken} have been taken"
            started += 1
            owed += 1
        taken, owed = taken + take_tile, owed - take_tile
        ends += [cycle] * known(dut.done, "done")
        enable = known(dut.row_enable, "row_enable")
        if enable:
            step, word = wanted[seen]
            assert enable == 1 << step, f"step {seen}: row_enable is {enable:#b}"
            got = known(dut.weights, "weights").to_bytes(c.weight_word, "little")
            assert got == word, f"step {seen}: weights are {got.hex()}, not {word.hex()}"
            seen += 1
            last_steps += [cycle] * (seen in lasts)
        await tick(dut)
        if seen == len(wanted) and not waiting:
            break
    assert (seen, started) == (len(wanted), tiles), (seen, started)
    assert ends == [cycle - delay for cycle in last_steps], (ends, last_steps)


async def tick_low(dut: Any) -> None:
    """Let combinational outputs follow the inputs of this cycle."""
    from cocotb.triggers import Timer

    await Timer(1, unit="ns")
