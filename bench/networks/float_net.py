"""`FloatNet`: a float ONNX model operator by operator, as exporters write it, with deterministic random weights."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

ACTIVATIONS = ("", "Relu", "Relu6", "SiLU", "HardSwish", "HardSigmoid*x", "clip(x+3)/6*x")
"""Ways of writing an activation: as an operator, or as what exporters make of it."""


class FloatNet:
    """A model of one input ``x``; every method returns the name of the value that it adds.

    Weights are normal with the variance that keeps the values' (He), so that quantization finds usual ranges.
    """

    def __init__(self, *shape: int | str, seed: int = 0, opset: int = 17) -> None:
        self.random, self.opset = np.random.default_rng(seed), opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.channels: dict[str, int] = {"x": int(shape[1])}
        self.shape = shape

    def const(self, values: npt.ArrayLike) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, *inputs: str, outputs: int = 1, channels: int = 0, **attributes: Any) -> str:
        """Any operator; of several results the first, the others end in ``_1``, ``_2``. `channels`: of the results, by
        default those of the first operand."""
        name = f"{kind.lower()}{len(self.nodes)}"
        names = [name, *(f"{name}_{n}" for n in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, **attributes))
        self.channels |= dict.fromkeys(names, channels or self.channels[inputs[0]])
        return name

    def conv(
        self, x: str, channels: int, kernel: int = 3, stride: int = 1, act: str = "Relu", *,
        groups: int = 1, rank: int = 2, dilation: int = 1, pads: Sequence[int] | None = None,
    ) -> str:  # fmt: skip
        """A convolution with bias, padded so that stride 1 keeps the size, and an activation."""
        depth = self.channels[x] // groups
        weight = self._normal(channels, depth, *(kernel,) * rank)
        bias = self.const(self.random.normal(0, 0.1, channels).astype(np.float32))
        y = self.node(
            "Conv", x, weight, bias, channels=channels, kernel_shape=[kernel] * rank, strides=[stride] * rank,
            dilations=[dilation] * rank, pads=list(pads or [dilation * (kernel // 2)] * 2 * rank), group=groups,
        )  # fmt: skip
        return self.activation(y, act)

    def depthwise(self, x: str, kernel: int = 3, stride: int = 1, act: str = "Relu", **more: Any) -> str:
        """A depthwise convolution."""
        channels = self.channels[x]
        return self.conv(x, channels, kernel, stride, act, groups=channels, **more)

    def upconv(self, x: str, channels: int) -> str:
        """ConvTranspose 2 x 2 with stride 2."""
        weight = self._normal(self.channels[x], channels, 2, 2, fan_in=self.channels[x])
        return self.node("ConvTranspose", x, weight, channels=channels, kernel_shape=[2, 2], strides=[2, 2])

    def activation(self, x: str, act: str) -> str:
        """One of `ACTIVATIONS`."""
        if act == "Relu6":
            return self.node("Clip", x, self.const(np.float32(0)), self.const(np.float32(6)))
        if act == "SiLU":
            return self.node("Mul", x, self.node("Sigmoid", x))
        if act == "HardSigmoid*x":
            return self.node("Mul", x, self.node("HardSigmoid", x, alpha=1 / 6, beta=0.5))
        if act == "clip(x+3)/6*x":
            moved = self.node("Add", x, self.const(np.float32(3)))
            cut = self.node("Clip", moved, self.const(np.float32(0)), self.const(np.float32(6)))
            return self.node("Div", self.node("Mul", x, cut), self.const(np.float32(6)))
        return self.node(act, x) if act else x

    def add(self, a: str, b: str) -> str:
        """A sum."""
        return self.node("Add", a, b)

    def concat(self, *parts: str) -> str:
        """Along the channels."""
        return self.node("Concat", *parts, channels=sum(self.channels[part] for part in parts), axis=1)

    def max_pool(self, x: str, kernel: int, stride: int, pad: int = 0, ceil: int = 0) -> str:
        """A maximum over squares."""
        return self.node(
            "MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil
        )  # fmt: skip

    def resize(self, x: str, factor: int = 2, mode: str = "nearest") -> str:
        """Larger by a factor."""
        how = {"nearest": ("asymmetric", "floor"), "linear": ("half_pixel", "floor")}[mode]
        scales = self.const(np.array([1, 1, factor, factor], np.float32))
        return self.node(
            "Resize", x, "", scales, mode=mode, coordinate_transformation_mode=how[0], nearest_mode=how[1]
        )  # fmt: skip

    def squeeze_excite(self, x: str, reduced: int) -> str:
        """Squeeze-and-excite: a number per channel, of all channels' averages."""
        y = self.conv(self.node("GlobalAveragePool", x), reduced, 1)
        y = self.node("HardSigmoid", self.conv(y, self.channels[x], 1, act=""), alpha=1 / 6, beta=0.5)
        return self.node("Mul", x, y)

    def classifier(self, x: str, classes: int) -> str:
        """Global average, Flatten, Gemm."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)
        return self.dense(flat, classes)

    def dense(self, x: str, units: int) -> str:
        """Gemm."""
        weight = self._normal(units, self.channels[x])
        bias = self.const(self.random.normal(0, 0.1, units).astype(np.float32))
        return self.node("Gemm", x, weight, bias, channels=units, transB=1)

    def model(self, name: str, *outputs: str) -> onnx.ModelProto:
        """The model with these outputs."""
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(self.shape))],
            [onnx.ValueInfoProto(name=each) for each in outputs], self.constants,
        )  # fmt: skip
        for value in graph.output:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)

    def _normal(self, *shape: int, fan_in: int = 0) -> str:
        spread = np.sqrt(2 / (fan_in or prod(shape[1:])))
        return self.const(self.random.normal(0, spread, shape).astype(np.float32))
