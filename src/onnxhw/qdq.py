"""Writes int8 QDQ models layer by layer: the form that quantizers emit, from float weights.

Each activation is float between its DequantizeLinear and the next operator, as the ONNX QDQ format has
it; weights are int8 per output channel (symmetric), biases int32 with scale ``s_input * s_weight``. A
fused Relu is the float operator followed by QuantizeLinear. Used by the examples, the bench and tests.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]
OPSET, IR_VERSION = 17, 8


@dataclass(frozen=True)
class Grid:
    """An int8 grid: ``real = (q - zero_point) * scale``."""

    scale: np.float32
    zero_point: int

    @classmethod
    def covering(cls, low: float, high: float) -> "Grid":
        """The asymmetric grid of 256 steps over ``low .. high``, widened to hold 0 exactly."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = np.float32((high - low) / 255 if high > low else 1.0)
        return cls(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


@dataclass(frozen=True)
class QdqValue:
    """A dequantized activation of the model under construction: its name, shape and grid."""

    name: str
    shape: tuple[int, ...]
    grid: Grid


def quantize_weights(weights: Floats, least: Floats | None = None) -> tuple[npt.NDArray[np.int8], Floats]:
    """int8 weights and one scale per output channel (axis 0), symmetric; a zero channel has the scale 1.

    `least`: the smallest scale that each channel may have.
    """
    peak = np.abs(weights.reshape(len(weights), -1)).max(1)
    wanted = peak / 127 if least is None else np.maximum(peak / 127, least)
    scales = np.where(wanted > 0, wanted, 1).astype(np.float32)
    steps = weights / scales.reshape(-1, *[1] * (weights.ndim - 1))
    return np.clip(np.rint(steps), -127, 127).astype(np.int8), scales


class QdqBuilder:
    """Collects nodes and initializers; `model` gives the checked ModelProto.

    Methods take and return `QdqValue`; `grid` is the grid of their result. Windows are 2-D, pads are
    (top, left, bottom, right).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: tuple[int, ...], grid: Grid) -> QdqValue:
        """A float32 model input, quantized at once."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self._quantized(name, name, shape, grid)

    def output(self, value: str, name: str, shape: tuple[int, ...]) -> None:
        """Make the float tensor `value` the model's output `name`."""
        self._nodes[-1].output[list(self._nodes[-1].output).index(value)] = name
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def conv(
        self,
        name: str,
        x: QdqValue,
        weights: Floats,
        bias: Floats,
        grid: Grid,
        *,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        group: int = 1,
        relu: bool = True,
    ) -> QdqValue:
        """Conv of float weights ``[O, I / group, KH, KW]``, then Relu if asked for."""
        inputs = [x.name, *self._parameters(name, x, weights, bias)]
        kernel = weights.shape[2:]
        size = [(x.shape[2 + i] + pads[i] + pads[2 + i] - kernel[i]) // strides[i] + 1 for i in (0, 1)]
        y = self._node("Conv", name, inputs, kernel_shape=kernel, strides=strides, pads=pads, group=group)
        return self._activated(name, y, (1, len(weights), *size), grid, relu)

    def gemm(
        self, name: str, x: QdqValue, weights: Floats, bias: Floats, grid: Grid, *, relu: bool = False
    ) -> QdqValue:
        """Gemm of float weights ``[O, I]`` (transB), then Relu if asked for."""
        y = self._node("Gemm", name, [x.name, *self._parameters(name, x, weights, bias)], transB=1)
        return self._activated(name, y, (1, len(weights)), grid, relu)

    def add(self, name: str, a: QdqValue, b: QdqValue, grid: Grid, *, relu: bool = False) -> QdqValue:
        """Add, then Relu if asked for."""
        return self._activated(name, self._node("Add", name, [a.name, b.name]), a.shape, grid, relu)

    def max_pool(self, name: str, x: QdqValue, size: int) -> QdqValue:
        """MaxPool of a square window with the same stride; the grid stays."""
        y = self._node("MaxPool", name, [x.name], kernel_shape=[size] * 2, strides=[size] * 2)
        return self._quantized(name, y, (*x.shape[:2], x.shape[2] // size, x.shape[3] // size), x.grid)

    def global_average_pool(self, name: str, x: QdqValue, grid: Grid) -> QdqValue:
        """GlobalAveragePool."""
        return self._quantized(name, self._node("GlobalAveragePool", name, [x.name]), (*x.shape[:2], 1, 1), grid)

    def flatten(self, name: str, x: QdqValue) -> QdqValue:
        """Flatten; the grid stays."""
        return self._quantized(name, self._node("Flatten", name, [x.name]), (1, int(np.prod(x.shape))), x.grid)

    def softmax(self, name: str, x: QdqValue) -> str:
        """Softmax in float; the name of its result, for `output`."""
        return self._node("Softmax", name, [x.name], axis=-1)

    def model(self) -> onnx.ModelProto:
        """The finished model, checked by onnx."""
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="onnxhw"
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def _node(self, op: str, name: str, inputs: list[str], **attributes: Any) -> str:
        out = f"{name}_{op.lower()}"
        self._nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def _constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def _quantized(self, name: str, tensor: str, shape: tuple[int, ...], grid: Grid) -> QdqValue:
        scale = self._constant(f"{name}_scale", np.array(grid.scale, np.float32))
        zero = self._constant(f"{name}_zero_point", np.array(grid.zero_point, np.int8))
        q, dq = f"{name}_q", f"{name}_dq"
        self._nodes.append(helper.make_node("QuantizeLinear", [tensor, scale, zero], [q], name=q))
        self._nodes.append(helper.make_node("DequantizeLinear", [q, scale, zero], [dq], name=dq))
        return QdqValue(dq, shape, grid)

    def _activated(self, name: str, tensor: str, shape: tuple[int, ...], grid: Grid, relu: bool) -> QdqValue:
        return self._quantized(name, self._node("Relu", name, [tensor]) if relu else tensor, shape, grid)

    def _parameters(self, name: str, x: QdqValue, weights: Floats, bias: Floats) -> list[str]:
        """Dequantized weights and bias: names of the two tensors."""
        q, scales = quantize_weights(weights)
        steps = (x.grid.scale * scales).astype(np.float32)
        limit = 2**31 - 1
        wide = np.clip(np.rint(bias.astype(np.float64) / steps), -limit, limit).astype(np.int32)
        out = []
        for part, values, scale in (("weight", q, scales), ("bias", wide, steps)):
            names = [
                self._constant(f"{name}_{part}_q", values),
                self._constant(f"{name}_{part}_scale", scale),
                self._constant(f"{name}_{part}_zero_point", np.zeros(len(scale), values.dtype)),
            ]
            out.append(f"{name}_{part}")
            self._nodes.append(helper.make_node("DequantizeLinear", names, out[-1:], name=out[-1], axis=0))
        return out
