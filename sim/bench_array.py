"""`SystolicArray`: its sums for a stream of tiles, weights of the next tile loaded while one streams."""

from typing import Any

import cocotb
import numpy as np
from bench import config, parameters, signed, start, tick


@cocotb.test()
async def tiles(dut: Any) -> None:
    random = await start(dut)
    c, latency = config(), parameters()["latency"]
    bits = c.psum_bits

    def numbers(*shape: int) -> np.ndarray:
        values = random.integers(-128, 128, shape)
        return np.where(random.random(shape) < 0.2, random.choice([-128, 127], shape), values)

    expected: list[np.ndarray | None] = []

    def sums(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return x @ w + ((w[0::2] * w[1::2]).sum(0) if c.fast else 0)

    async def cycle(x: np.ndarray | None) -> None:
        """One cycle with an operand, or with garbage that nobody looks at."""
        shown = numbers(c.rows) if x is None else x
        dut.x.value = int.from_bytes(shown.astype(np.int8).tobytes(), "little")
        expected.append(None if x is None else sums(x, active))
        await tick(dut)
        if len(expected) >= latency:
            want = expected.pop(0)
            for column in range(c.cols) if want is not None else ():
                got = signed(getattr(dut, f"sums__{column}"), bits, f"sums[{column}]")
                assert got == want[column], f"column {column} is {got}, not {want[column]}"

    active = np.zeros((c.rows, c.cols), np.int64)
    for _ in range(14):
        following = numbers(c.rows, c.cols)
        pixels = int(random.integers(1, 12))
        # Load the next tile while the present one streams, with pauses.
        left = pixels
        for group in range(c.tile_words):
            rows = following[group * c.load_rows : (group + 1) * c.load_rows]
            dut.weights.value = int.from_bytes(rows.astype(np.int8).tobytes(), "little")
            dut.row_enable.value = 1 << group
            await cycle(numbers(c.rows) if left > 0 else None)
            left -= 1
            dut.row_enable.value = 0
            for _ in range(int(random.integers(0, 3))):
                dut.weights.value = int.from_bytes(random.bytes(c.weight_word), "little")
                await cycle(numbers(c.rows) if left > 0 else None)
                left -= 1
        while left > 0:
            await cycle(numbers(c.rows))
            left -= 1
        # The swap goes before the first operand of the new tile; the last of the old one may be beside it.
        dut.swap.value = 1
        await cycle(numbers(c.rows) if random.random() < 0.5 else None)
        dut.swap.value = 0
        active = following
        for _ in range(c.rows + 2):  # the swap walks south: only then may row 0 be loaded again
            await cycle(numbers(c.rows))
    for _ in range(latency):
        await cycle(None)
