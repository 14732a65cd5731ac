"""Models of the digest gate: small networks of every kind of operation, written from fixed seeds.

Integers come from numpy's `RandomState`, whose numbers never change, and scales are rational: the bytes of a model do
not depend on the machine.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits.onnx"
SAME = [1, 1, 1, 1]
"""Pads that leave the size of what a 3 x 3 window reads."""


class Net:
    """A quantized network under construction; methods add nodes and give the name of their result."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def const(self, array: npt.ArrayLike) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def int8(self, *shape: int) -> npt.NDArray[np.int8]:
        return self.random.randint(-100, 101, shape).astype(np.int8)

    def scales(self, count: int, shift: int) -> npt.NDArray[np.float32]:
        return (self.random.randint(128, 256, count) / (1 << shift)).astype(np.float32)

    def node(self, kind: str, *operands: Any, **attributes: Any) -> str:
        names = [operand if isinstance(operand, str) else self.const(operand) for operand in operands]
        result = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [result], name=f"{kind}_{len(self.nodes)}", **attributes))
        return result

    def grid(self, x: str, scale: float = 0.05, zero: int = 0) -> str:
        """A quantizer and its inverse."""
        pair = np.float32(scale), np.int8(zero)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *pair), *pair)

    def input(self, *shape: int, zero: int = 3) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return self.grid(name, 0.05, zero)

    def weight(self, values: npt.NDArray[np.int8], axis: int = 0) -> str:
        """A constant with a scale for each index of an axis."""
        count = values.shape[axis]
        return self.node("DequantizeLinear", values, self.scales(count, 16), np.zeros(count, np.int8), axis=axis)

    def raw_conv(self, x: str, outputs: int, depth: int, kernel: tuple[int, ...], **attributes: Any) -> str:
        """A Conv that no quantizer follows; `depth` channels in each group."""
        return self.node("Conv", x, self.weight(self.int8(outputs, depth, *kernel)), **attributes)

    def conv(self, x: str, outputs: int, depth: int, kernel: tuple[int, ...] = (3, 3), **attributes: Any) -> str:
        """With a ReLU and a quantizer."""
        return self.grid(self.node("Relu", self.raw_conv(x, outputs, depth, kernel, **attributes)), 0.07, -100)

    def depthwise(self, x: str, channels: int, **attributes: Any) -> str:
        return self.conv(x, channels, 1, group=channels, pads=SAME, **attributes)

    def gemm(self, x: str, inputs: int, outputs: int, zero: int = -100) -> str:
        bias = (self.random.randint(-99, 100, outputs) / 16).astype(np.float32)
        y = self.node("Gemm", x, self.weight(self.int8(outputs, inputs)), bias, transB=1)
        return self.grid(self.node("Relu", y), 0.09, zero)

    def flat(self, x: str) -> str:
        return self.node("Flatten", x)

    def average(self, x: str) -> str:
        return self.grid(self.node("GlobalAveragePool", x), 0.03)

    def model(self, *outputs: str) -> bytes:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "gate", self.inputs, infos, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(made.SerializeToString(deterministic=True))


def convolutions() -> bytes:
    """Strides, dilations, uneven pads, groups, and a first layer of three channels."""
    net = Net(1)
    x = net.conv(net.input(1, 3, 12, 11), 10, 3, pads=SAME, strides=[2, 2])
    x = net.conv(x, 12, 5, pads=[0, 1, 2, 1], group=2)
    x = net.conv(x, 9, 12, (2, 2), dilations=[2, 1])
    return net.model(net.gemm(net.flat(net.average(x)), 9, 7))


def separable() -> bytes:
    net = Net(2)
    x = net.conv(net.input(1, 1, 14, 10), 12, 1, strides=[2, 2], pads=SAME)
    for strides in ([1, 1], [2, 2]):
        x = net.conv(net.depthwise(x, 12, strides=strides), 12, 12, (1, 1))
    return net.model(net.average(x))


def depthwise() -> bytes:
    """Windows of several sizes per channel, more channels than a word has."""
    net = Net(3)
    x = net.input(1, 20, 9, 8)
    x = net.conv(x, 20, 1, (5, 5), group=20, pads=[2, 2, 2, 2])
    return net.model(net.conv(net.depthwise(x, 20), 20, 1, (3, 1), group=20))


def residual() -> bytes:
    """Sums, and a product with the average of a whole plane."""
    net = Net(4)
    x = net.conv(net.input(1, 6, 8, 8), 8, 6, pads=SAME)
    y = net.grid(net.node("Add", net.conv(x, 8, 8, pads=SAME), x), 0.1, -7)
    gate = net.conv(net.average(y), 8, 8, (1, 1))
    y = net.grid(net.node("Mul", y, gate), 0.2, 4)
    return net.model(net.grid(net.node("Add", net.conv(y, 8, 8, (1, 1)), y), 0.15))


def pooling() -> bytes:
    net = Net(5)
    x = net.conv(net.input(1, 5, 13, 12), 11, 5, pads=SAME)
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=SAME)
    x = net.grid(net.node("AveragePool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]), 0.06, -50)
    x = net.node("AveragePool", x, kernel_shape=[2, 2], pads=SAME, count_include_pad=1)
    return net.model(net.grid(x, 0.06, -90))


def concatenation() -> bytes:
    """Branches of unequal width side by side, and parts of the result."""
    net = Net(6)
    x = net.input(1, 7, 6, 6)
    parts = [net.conv(x, count, 7, (1, 1)) for count in (5, 8, 3)]
    both = net.node("Concat", *parts, axis=1)
    cut = net.node("Slice", both, np.array([1, 0]), np.array([6, 5]), np.array([2, 3]))
    return net.model(net.conv(cut, 6, 16, (2, 2)), both)


def dense() -> bytes:
    net = Net(7)
    x, sizes = net.input(1, 40), (40, 32, 24, 8, 36)
    for inputs, outputs in pairwise(sizes):
        x = net.gemm(x, inputs, outputs)
    return net.model(x)


def staircase() -> bytes:
    """An affine function between a sum and its quantizer, and functions that become tables."""
    net = Net(8)
    x = net.raw_conv(net.input(1, 4, 7, 7), 6, 4, (3, 3))
    scale, shift = (net.random.randint(-9, 10, (6, 1, 1)).astype(np.float32) / 4 + 0.125 for _ in range(2))
    x = net.grid(net.node("Add", net.node("Mul", x, scale), shift), 0.08, 11)
    x = net.grid(net.node("LeakyRelu", x, alpha=0.25), 0.06, -3)
    return net.model(net.grid(net.node("HardSigmoid", net.conv(x, 5, 6, (1, 1))), 0.0078125, -128))


def transposed() -> bytes:
    net = Net(9)
    weight = net.weight(net.int8(4, 6, 3, 3), axis=1)
    y = net.node("ConvTranspose", net.input(1, 4, 4, 5), weight, strides=[2, 2], pads=SAME)
    return net.model(net.conv(net.grid(y, 0.1, -9), 4, 6, (1, 1)))


def products() -> bytes:
    """Matrices of activations."""
    net = Net(10)
    a, b = net.input(1, 3, 6, 10), net.input(1, 3, 10, 5, zero=-4)
    y = net.grid(net.node("MatMul", a, b), 0.3, 2)
    return net.model(net.grid(net.node("MatMul", net.node("Transpose", a, perm=[0, 1, 3, 2]), y), 0.6, -2))


def several_ends() -> bytes:
    """Three inputs and three outputs, one of which is an input of something else."""
    net = Net(11)
    a, b, c = net.input(1, 5, 6, 6), net.input(1, 5, 6, 6, zero=-8), net.input(1, 9)
    y = net.grid(net.node("Add", a, b), 0.12, 1)
    return net.model(net.conv(y, 4, 5, (1, 1)), y, net.gemm(c, 9, 3))


def parts() -> bytes:
    """The host has nodes in the middle."""
    net = Net(12)
    x = net.conv(net.input(1, 4, 6, 6), 8, 4, pads=SAME)
    x = net.grid(net.node("CumSum", x, np.array(3, np.int64)), 0.5)
    x = net.conv(x, 6, 8, (1, 1))
    x = net.grid(net.node("Einsum", x, equation="nchw->ncwh"), 0.07, -100)
    return net.model(net.conv(x, 3, 6, (1, 1)))


def large() -> bytes:
    """More weights than small presets have room for: parts that run in turn."""
    net = Net(13)
    x = net.input(1, 96)
    for _ in range(3):
        x = net.gemm(x, 96, 96)
    return net.model(x)


def idle_channels() -> bytes:
    """Channels without weights, which are constants."""
    net = Net(14)
    x = net.input(1, 6, 7, 7)
    for depth in (6, 10):
        weight = net.int8(10, depth, 3, 3)
        weight[[1, 4, 5]] = 0
        bias = (net.random.randint(-20, 20, 10) / 8).astype(np.float32)
        x = net.grid(net.node("Relu", net.node("Conv", x, net.weight(weight), bias, pads=SAME)), 0.07, -100)
    return net.model(net.conv(x, 4, 10, (1, 1)))


def sequence() -> bytes:
    """One dimension."""
    net = Net(15)
    x = net.conv(net.input(1, 4, 24), 8, 4, (5,), strides=[2], pads=[2, 2])
    x = net.node("MaxPool", net.conv(x, 10, 4, (3,), group=2), kernel_shape=[2], strides=[2])
    return net.model(net.gemm(net.flat(x), 50, 6))


def drawn(seed: int) -> Callable[[], bytes]:
    """A network of seven operations drawn by chance."""

    def build() -> bytes:
        net = Net(1000 + seed)
        draw = net.random.randint
        channels = int(draw(1, 9))
        x, side, pool = net.input(1, channels, 9, 8), (9, 8), []
        for _ in range(7):
            pool = [*pool, (x, channels, side)][-4:]
            alike = [name for name, count, size in pool if (count, size) == (channels, side)]
            other, outputs = alike[draw(len(alike))], int(draw(1, 20))
            match int(draw(8)):
                case 0 | 1:
                    x, channels = net.conv(x, outputs, channels, pads=SAME), outputs
                case 2 if min(side) > 3:
                    x = net.conv(x, outputs, channels, pads=[0, 1, 2, 1], strides=[2, 2])
                    channels, side = outputs, ((side[0] - 1) // 2 + 1, (side[1] - 1) // 2 + 1)
                case 3:
                    x = net.depthwise(x, channels)
                case 4:
                    x = net.grid(net.node("Add", x, other), 0.13, int(draw(-99, 99)))
                case 5:
                    x = net.grid(net.node("Mul", x, net.average(x)), 0.1, int(draw(-99, 99)))
                case 6 if min(side) > 2:
                    x = net.node("MaxPool", x, kernel_shape=[2, 2], pads=[0, 0, 1, 1])
                case _:
                    x, channels = net.node("Concat", x, net.conv(x, 3, channels, (1, 1)), axis=1), channels + 3
        return net.model(x)

    return build


MODELS: dict[str, Callable[[], bytes]] = {
    "digits": DIGITS.read_bytes,
    **{
        build.__name__: build
        for build in (
            convolutions, separable, depthwise, residual, pooling, concatenation, dense, staircase, transposed,
            products, several_ends, parts, large, idle_channels, sequence,
        )
    },
    **{f"drawn_{seed}": drawn(seed) for seed in range(3)},
}  # fmt: skip
"""The bytes of each model by name."""
