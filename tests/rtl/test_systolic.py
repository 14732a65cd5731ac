"""The systolic array: every sum, and weights that change as fast as the timing allows but no faster."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from onnxhw.config import HwConfig
from onnxhw.isa.timing import LOAD_TO_SHADOW, STREAM_TO_SWAP, array_pipeline, shadow_free, shadow_ready, weight_skew
from onnxhw.rtl.systolic import SystolicArray

pytestmark = pytest.mark.rtl
TILES = 4


def hardware(rows: int, cols: int, load_rows: int, inner_product: str) -> HwConfig:
    name = f"{inner_product} {rows}x{cols}, {load_rows} a cycle"
    return HwConfig(name, rows, cols, rows, 1, load_rows, inner_product=inner_product)


GEOMETRIES = [
    hardware(1, 2, 1, "plain"), hardware(5, 3, 1, "plain"), hardware(6, 2, 3, "plain"), hardware(16, 8, 2, "plain"),
    hardware(6, 4, 6, "plain"),
    hardware(2, 1, 1, "fast"), hardware(4, 3, 1, "fast"), hardware(4, 3, 4, "fast"), hardware(6, 5, 2, "fast"),
    hardware(6, 5, 3, "fast"), hardware(16, 2, 16, "fast"), hardware(16, 16, 1, "fast"), hardware(16, 16, 2, "fast"),
    hardware(16, 16, 4, "fast"),
]  # fmt: skip


def sums(x: np.ndarray, w: np.ndarray, config: HwConfig) -> np.ndarray:
    """The definition in `isa.instructions.Array`."""
    extra = sum(w[r] * w[r + 1] for r in range(0, config.rows, 2)) if config.inner_product == "fast" else 0
    return x @ w + extra


def is_exact(config: HwConfig, *, free: int, ready: int) -> bool:
    """Whether all sums are right if loads start `free` cycles after a tile does, and tiles `ready` after their load."""
    rng = np.random.default_rng(config.rows * 100 + config.cols)
    w = rng.choice([-128, -127, 127, *rng.integers(-128, 128, 9)], (TILES, config.rows, config.cols)).astype(np.int64)
    w[:2] = -128  # the largest sums there are
    loads, starts = [], []
    for n in range(TILES):
        loads.append(starts[-1] + free if n else 0)
        starts.append(loads[-1] + max(ready, config.tile_words - free))
    length = starts[-1] + STREAM_TO_SWAP + config.rows + 6
    x = rng.choice([-128, 127, *rng.integers(-128, 128, 6)], (length, config.rows)).astype(np.int64)
    x[: starts[1] + STREAM_TO_SWAP + 1] = -128
    found = np.zeros((length, config.cols), np.int64)
    array = SystolicArray(config)
    latency = array_pipeline(config)

    def word(values: np.ndarray) -> int:
        return int.from_bytes(values.astype(np.int8).tobytes(), "little")

    async def bench(ctx) -> None:
        for cycle in range(length + latency):
            ctx.set(array.x, word(x[min(cycle, length - 1)]))
            ctx.set(array.swap, cycle - STREAM_TO_SWAP in starts)
            steps = {cycle - start - LOAD_TO_SHADOW: tile for tile, start in enumerate(loads)}
            ctx.set(array.row_enable, sum(1 << step for step in range(config.tile_words) if step in steps))
            weights = rng.integers(-128, 128, (config.load_rows, config.cols))
            for row, column in np.ndindex(weights.shape):
                for step in range(config.tile_words):
                    if step + weight_skew(config, row, column) in steps:
                        tile = steps[step + weight_skew(config, row, column)]
                        weights[row, column] = w[tile, step * config.load_rows + row, column]
            ctx.set(array.weights, word(weights))
            if cycle >= latency:
                found[cycle - latency] = [ctx.get(total) for total in array.sums]
            await ctx.tick()

    simulator = Simulator(array)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    for n, start in enumerate(starts):
        end = starts[n + 1] + STREAM_TO_SWAP + 1 if n + 1 < TILES else length
        span = slice(start + STREAM_TO_SWAP + 1, end)
        if not np.array_equal(found[span], sums(x[span], w[n], config)):
            return False
    return True


@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda config: config.name)
def test_sums_are_exact_at_the_fastest_change_of_weights(config: HwConfig) -> None:
    assert is_exact(config, free=shadow_free(config), ready=shadow_ready(config))


@pytest.mark.parametrize("config", GEOMETRIES[2:], ids=lambda config: config.name)
def test_a_cycle_less_is_too_few(config: HwConfig) -> None:
    assert not is_exact(config, free=shadow_free(config) - 1, ready=max(shadow_ready(config), config.tile_words + 1))
    if shadow_ready(config) > 1:
        assert not is_exact(config, free=config.tile_words, ready=shadow_ready(config) - 1)
