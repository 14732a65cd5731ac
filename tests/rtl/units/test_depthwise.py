"""The depthwise unit by itself equals its definition; scheduled layers on it equal the golden model in the core."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from core_bench import CompiledBench

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu import Machine
from onnxhw.ir.graph import Conv, Graph, Port, Tensor
from onnxhw.ir.windows import window_size
from onnxhw.isa.timing import MEMORY, weight_skew
from onnxhw.rtl.kernel_window import KernelWindow, WindowCounter
from onnxhw.sched import array_lowering, schedule

pytestmark = pytest.mark.rtl

SIZES = {"act_banks": 2, "act_depth": 128, "weight_depth": 512, "acc_depth": 64, "param_depth": 256, "tables": 1}
WHOLE = HwConfig("W4 C5", rows=4, cols=5, word=4, lanes=2, depthwise=16, **SIZES)
HALF = HwConfig("W8 C6", rows=8, cols=6, word=8, lanes=2, load_rows=8, depthwise=12, **SIZES)


TILE = dataclasses.replace(WHOLE, name="whole tiles", load_rows=4)


@pytest.mark.parametrize(("config", "columns"), [(WHOLE, 3), (WHOLE, 4), (WHOLE, 16), (TILE, 6)])
def test_unit(config: HwConfig, columns: int) -> None:
    """Two strips behind each other without a gap, weights loaded during the first."""
    rng = np.random.default_rng(columns)
    lanes, rows = config.depthwise_lanes, 5
    x = rng.choice([-128, 127, *range(-5, 5)], (2, rows, columns, lanes)).astype(np.int8)
    w = rng.choice([-128, 127, *range(-5, 5)], (2, 3, 3, lanes)).astype(np.int8)
    images = np.zeros((2, config.depthwise_words * config.weight_word), np.uint8)
    images[:, : 9 * lanes] = w.reshape(2, -1).view(np.uint8)
    words = images.reshape(2, config.depthwise_words, config.weight_word)
    unit = KernelWindow(config)
    found: list[list[int]] = []
    start, pixels = 20, rows * columns

    async def testbench(ctx: Any) -> None:
        for cycle in range(start + 2 * pixels + unit.latency):
            strip, pixel = divmod(cycle - start, pixels)
            ahead = cycle + MEMORY + 1 - start
            ctx.set(unit.column, max(0, ahead) % columns)
            ctx.set(unit.valid, 0 <= cycle + 1 - start < 2 * pixels)
            ctx.set(unit.swap, pixel == pixels - 1)
            if 0 <= strip < 2:
                ctx.set(unit.x, int.from_bytes(x[strip].reshape(-1, lanes)[pixel].tobytes(), "little"))
            step = cycle - start + 10 if cycle < start else cycle - start - 1
            tile = 0 if cycle < start else 1
            ctx.set(unit.load, 0 <= step + 1 < len(words[0]))
            weights = rng.integers(0, 256, config.weight_word).astype(np.uint8)
            for byte in range(config.weight_word):
                own = step - weight_skew(config, *divmod(byte, config.cols))
                if 0 <= own < len(words[0]):
                    weights[byte] = words[tile][own, byte]
            ctx.set(unit.weights, int.from_bytes(weights.tobytes(), "little"))
            if cycle >= start + unit.latency:
                found.append([ctx.get(s) for s in unit.sums])
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    sums = np.array(found).reshape(2, rows, columns, lanes)
    for strip in range(2):
        for row in range(2, rows):
            for column in range(2, columns):
                window = x[strip, row - 2 : row + 1, column - 2 : column + 1].astype(int)
                assert sums[strip, row, column].tolist() == (window * w[strip]).sum((0, 1)).tolist()


def test_counter() -> None:
    counter, rows, columns, strides = WindowCounter(9), 8, 9, (2, 3)
    hits: list[tuple[int, int]] = []

    async def testbench(ctx: Any) -> None:
        ctx.set(counter.stride_rows, strides[0])
        ctx.set(counter.stride_columns, strides[1])
        ctx.set(counter.start, 1)
        await ctx.tick()
        ctx.set(counter.start, 0)
        for number in range(2 * rows * columns):
            row, column = divmod(number % (rows * columns), columns)
            await ctx.tick()  # nothing moves without a step
            ctx.set(counter.step, 1)
            ctx.set(counter.last_column, column == columns - 1)
            ctx.set(counter.last, column == columns - 1 and row == rows - 1)
            assert ctx.get(counter.column) == column
            if ctx.get(counter.hit):
                hits.append((row, column))
            await ctx.tick()
            ctx.set(counter.step, 0)

    simulator = Simulator(counter)
    simulator.add_clock(1e-8)
    simulator.add_testbench(testbench)
    simulator.run()
    once = [(row, column) for row in range(2, rows, strides[0]) for column in range(2, columns, strides[1])]
    assert hits == 2 * once


LAYERS = [
    # channels, height, width, kernel, strides, pads
    (6, 5, 6, (3, 3), (1, 1), (1, 1, 1, 1)),
    (9, 6, 7, (3, 3), (2, 2), (0, 0, 1, 1)),
    (5, 7, 4, (3, 1), (3, 1), (1, 0, 2, 0)),
    (5, 1, 20, (1, 3), (1, 2), (0, 2, 0, 1)),
    (4, 1, 1, (3, 3), (1, 1), (1, 1, 1, 1)),
    (3, 6, 5, (5, 4), (1, 1), (2, 0, 2, 3)),
]


def network(rng: np.random.Generator, layer: Any) -> Graph:
    """A pointwise convolution, and a convolution of the layer's shape per channel, so that both units take turns."""
    channels, height, width, kernel, strides, pads = layer
    rows = window_size(height, pads[0], pads[2], kernel[0], strides[0], 1)
    cols = window_size(width, pads[1], pads[3], kernel[1], strides[1], 1)
    shapes = {"x": (1, 3, height, width), "a": (1, channels, height, width), "y": (1, channels, rows, cols)}
    tensors = {name: Tensor(name, shape, 0.05, int(rng.integers(-99, 99))) for name, shape in shapes.items()}

    def conv(x: str, y: str, depth: int, size: tuple[int, int], **fields: Any) -> Conv:
        return Conv(
            y, (x,), y,
            weight=rng.choice([-128, 127, *range(-40, 40)], (channels, depth, *size)).astype(np.int8),
            bias=rng.integers(-9000, 9000, channels).astype(np.int32),
            multiplier=rng.uniform(0.002, 0.01, channels).astype(np.float32), **fields,
        )  # fmt: skip

    ops = [conv("x", "a", 3, (1, 1)), conv("a", "y", 1, kernel, strides=strides, pads=pads, groups=channels)]
    ports = [Port(name, shapes[name], "int8", name) for name in ("x", "y")]
    return Graph("net", tensors, ops, ports[:1], ports[1:])


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("config", [WHOLE, HALF], ids=lambda config: config.name)
def test_layers(config: HwConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_lowering, "cycles_alone", lambda works, config: works[0].on_array)
    rng = np.random.default_rng(7)
    cases, wanted = [], []
    for layer in LAYERS:
        graph = network(rng, layer)
        program = schedule(graph, config)
        assert program.code["depthwise"]
        x = rng.choice([-128, 127, *range(-40, 40)], graph.tensors["x"].shape).astype(np.int8)
        machine = Machine(config)
        machine.write(program.tensors["x"].place, x)
        cases.append((program, machine.act))
        wanted.append(golden.run(graph, {"x": x})["y"])
    results = iter(wanted)

    def check(program: Any, before: Any, registers: dict[str, int], after: Any) -> None:
        machine = Machine(config)
        machine.act[:] = after
        np.testing.assert_array_equal(machine.read(program.tensors["y"].place), next(results))
        assert registers["cycles"] == program.cycles

    CompiledBench(config).each(cases, check)
