"""`LoadUnit`: every tile of every instruction, in order, none before the array has taken the one before."""

from typing import Any

import cocotb
import numpy as np
from bench import config, known, parameters, start, tick

from onnxhw.isa import Load
from onnxhw.isa.timing import shadow_free, weight_skew


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
        count, columns = int(random.integers(1, 5)), int(random.integers(1, 4))
        step = count * c.tile_words
        base = int(random.integers(c.weight_depth - columns * step))
        program.append(Load(base=base, tiles=count, nt_n=columns, nt_step=step))
    wanted = [
        (step, memory[load.base + tile * c.tile_words + column * load.nt_step + step])
        for load in program
        for tile in range(load.tiles)
        for column in range(load.nt_n)
        for step in range(c.tile_words)
    ]
    tiles = sum(load.tiles * load.nt_n for load in program)
    late = [weight_skew(c, *divmod(byte, c.cols)) for byte in range(c.weight_word)]
    due: dict[int, dict[int, int]] = {}  # of each cycle to come: bytes of the weights
    ends, last_steps = [], []  # cycles in which an instruction was done, and in which its last weights came
    lasts = np.cumsum([load.tiles * load.nt_n * c.tile_words for load in program]).tolist()
    waiting, seen, started, taken, owed = list(program), 0, 0, 0, 0
    for cycle in range(6000):
        valid = bool(waiting) and random.random() < 0.5
        dut.issue__valid.value = int(valid)
        dut.issue__bits.value = sum(word << (32 * i) for i, word in enumerate(waiting[0].encode())) if valid else 0
        take_tile = owed > 0 and random.random() < 0.15
        dut.tiles__array__taken.value = int(take_tile)
        await tick_low(dut)
        if known(dut.issue__take, "take"):
            assert valid, "take without valid"
            waiting.pop(0)
        if known(dut.tiles__array__started, "started"):
            now_taken = taken + (take_tile if shadow_free(c) == 0 else 0)
            assert started == now_taken or started == 0, f"tile {started} starts when {now_taken} have been taken"
            started += 1
            owed += 1
        taken, owed = taken + take_tile, owed - take_tile
        ends += [cycle] * known(dut.status__done, "done")
        enable = known(dut.tiles__array__enable, "enable")
        if enable:
            step, word = wanted[seen]
            assert enable == 1 << step, f"step {seen}: enable is {enable:#b}"
            for byte, cycles in enumerate(late):
                due.setdefault(cycle + cycles, {})[byte] = word[byte]
            seen += 1
            last_steps += [cycle] * (seen in lasts)
        if now := due.pop(cycle, {}):
            got = known(dut.tiles__array__weights, "weights").to_bytes(c.weight_word, "little")
            for byte, value in now.items():
                assert got[byte] == value, f"step {seen}: weight {byte} is {got[byte]:#x}, not {value:#x}"
        await tick(dut)
        if seen == len(wanted) and not waiting and not due:
            break
    assert (seen, started, due) == (len(wanted), tiles, {}), (seen, started, due)
    assert ends == [cycle - delay for cycle in last_steps], (ends, last_steps)


async def tick_low(dut: Any) -> None:
    """Let combinational outputs follow the inputs of this cycle."""
    from cocotb.triggers import Timer

    await Timer(1, unit="ns")
