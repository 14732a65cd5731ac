"""Scheduled programs: equal to the golden model on every tensor, whatever the order of the instructions."""

from pathlib import Path

import numpy as np
import pytest
from legal_orders import random_order

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu import Emulator
from onnxhw.ir.graph import Add, Conv, Graph, MaxPool, Port, Tensor
from onnxhw.partition import load
from onnxhw.presets import PRESETS
from onnxhw.sched import schedule

IC = Path(__file__).parents[3] / "shared" / "models" / "ic_resnet8_int8_qdq.onnx"
CONFIGS = [
    PRESETS["mini"],
    PRESETS["ulx3s-85f"],
    HwConfig("5x3", rows=5, cols=3, word=5, lanes=1, weight_depth=1024),
    HwConfig("two row groups", rows=4, cols=6, word=8, lanes=4),
    HwConfig("fast", rows=4, cols=6, word=6, lanes=3, inner_product="fast"),
]


def graph() -> Graph:
    rng = np.random.default_rng(3)

    def tensor(name: str, channels: int, size: int, zero: int) -> Tensor:
        return Tensor(name, (1, channels, size, size), 0.05, zero)

    def conv(name: str, x: str, y: str, inputs: int, outputs: int, kernel: int, pad: int, stride: int) -> Conv:
        return Conv(
            name, (x,), y,
            weight=rng.integers(-127, 128, (outputs, inputs, kernel, kernel)).astype(np.int8),
            bias=rng.integers(-2000, 2000, outputs).astype(np.int32),
            multiplier=rng.uniform(0.0005, 0.002, outputs).astype(np.float32),
            strides=(stride, stride), pads=(pad, pad, pad, pad),
        )  # fmt: skip

    tensors = [
        tensor("x", 7, 10, -9), tensor("a", 11, 10, 3), tensor("b", 11, 10, -2), tensor("sum", 11, 10, 5),
        tensor("pool", 11, 5, 5), tensor("y", 4, 3, 0),
    ]  # fmt: skip
    return Graph(
        "small",
        {t.name: t for t in tensors},
        [
            conv("c1", "x", "a", 7, 11, 3, 1, 1),
            conv("c2", "a", "b", 11, 11, 1, 0, 1),
            Add("add", ("a", "b"), "sum", ratio_a=0.7, ratio_b=1.1),
            MaxPool("pool", ("sum",), "pool", kernel=(2, 2), strides=(2, 2)),
            conv("c3", "pool", "y", 11, 4, 3, 1, 2),
        ],
        [Port("x", (1, 7, 10, 10), "int8", "x")],
        [Port("y", (1, 4, 3, 3), "int8", "y")],
    )


def assert_order_does_not_matter(model: Graph, config: HwConfig, seeds: int) -> None:
    emulator = Emulator(schedule(model, config))
    rng = np.random.default_rng(1)
    inputs = {
        port.tensor: rng.integers(-128, 128, model.tensors[port.tensor].shape).astype(np.int8) for port in model.inputs
    }
    wanted = golden.run(model, inputs)
    orders = [None, *(random_order(emulator.program.code, seed) for seed in range(seeds))]
    assert len({tuple(order) for order in orders if order}) > 1
    for order in orders:
        result = emulator.run(inputs, trace=True, order=order)
        assert result.cycles == emulator.program.cycles
        for name, values in result.tensors.items():
            assert np.array_equal(values, wanted[name]), name
        for name, values in result.outputs.items():
            assert np.array_equal(values, wanted[name]), name


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_a_small_graph(config: HwConfig) -> None:
    assert_order_does_not_matter(graph(), config, 6)


def test_resnet8() -> None:
    if not IC.exists():
        pytest.skip(f"{IC.name} is not there")
    assert_order_does_not_matter(load(IC), PRESETS["ulx3s-85f"], 3)
