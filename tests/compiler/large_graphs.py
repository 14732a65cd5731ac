"""QDQ models that are larger than the small configurations with external memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gate_models import SAME, Net
from small_networks import SMALL

from onnxhw.config import HwConfig


def network(width: int = 12, size: int = 8) -> bytes:
    """Convolutions with a sum, a stride, a depthwise one, an average and a dense layer."""
    net = Net(7)
    y = net.conv(net.input(1, 3, size, size), width, 3, pads=SAME)
    y = net.grid(net.node("Add", y, net.conv(y, width, width, pads=SAME)), 0.1, -20)
    y = net.depthwise(net.conv(y, 2 * width, width, pads=SAME, strides=[2, 2]), 2 * width)
    return net.model(net.gemm(net.flat(net.average(net.conv(y, 2 * width, 2 * width, (1, 1)))), 2 * width, 10))


def wide_in_the_middle(channels: int = 160) -> bytes:
    """A convolution of which even one pixel has more operands than there is room for in `SMALL`, between others."""
    net = Net(8)
    y = net.conv(net.input(1, 8, 6, 6), channels, 8, (1, 1))
    y = net.conv(y, 8, channels, pads=SAME)
    return net.model(net.conv(net.conv(y, 24, 8, pads=SAME), 24, 24, (1, 1)))


def functions() -> bytes:
    """More functions of single elements than `SMALL` has tables."""
    net = Net(9)
    y = net.input(1, 8, 6, 6)
    for scale in (0.03, 0.05, 0.04, 0.06):
        y = net.grid(net.node("Sigmoid", net.conv(y, 8, 8, (1, 1))), scale / 8, -128)
    return net.model(y)


def tiny_memory(config: HwConfig = SMALL, rows: int = 4) -> HwConfig:
    """With so few rows of external memory that the network does not fit."""
    assert config.external is not None
    return replace(config, name="tiny", external=replace(config.external, rows=rows, columns=256))


def sample(shape: tuple[int, ...], seed: int) -> Mapping[str, Any]:
    """A random input of the models here."""
    return {"x0": np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)}
