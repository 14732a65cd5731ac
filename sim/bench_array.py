"""`SystolicArray`: its sums for a stream of tiles, weights of the next tile loaded while one streams."""

from typing import Any

import cocotb
import numpy as np
from bench import config, parameters, signed, start, tick

from onnxhw.isa.timing import weight_skew


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

    words: list[bytes] = []  # of each cycle; a byte is shown `weight_skew` cycles later

    async def cycle(x: np.ndarray | None, group: int | None = None) -> None:
        """One cycle with an operand, and a group of weight rows, or with garbage that nobody looks at."""
        if group is None:
            words.append(random.bytes(c.weight_word))
        else:
            rows = following[group * c.load_rows : (group + 1) * c.load_rows]
            words.append(rows.astype(np.int8).tobytes())
        late = [weight_skew(c, *divmod(byte, c.cols)) for byte in range(c.weight_word)]
        shown_word = bytes(words[-1 - min(cycles, len(words) - 1)][byte] for byte, cycles in enumerate(late))
        dut.weights.value = int.from_bytes(shown_word, "little")
        dut.row_enable.value = 0 if group is None else 1 << group
        shown = numbers(c.rows) if x is None else x
        dut.x.value = int.from_bytes(shown.astype(np.int8).tobytes(), "little")
        expected.append(None if x is None else sums(x, active))
        await tick(dut)
        if len(expected) >= latency:
            want = expected.pop(0)
            for column in range(c.cols) if want is not None else ():
                got = signed(getattr(dut, f"sums__{column}"), bits, f"sums[{column}]")
                assert got == want[column], f"column {column} is {got}, not {want[column]}"

    active = following = np.zeros((c.rows, c.cols), np.int64)
    for _ in range(14):
        following = numbers(c.rows, c.cols)
        pixels = int(random.integers(1, 12))
        # Load the next tile while the present one streams, with pauses.
        left = pixels
        for group in range(c.tile_words):
            await cycle(numbers(c.rows) if left > 0 else None, group)
            left -= 1
            for _ in range(int(random.integers(0, 3))):
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
