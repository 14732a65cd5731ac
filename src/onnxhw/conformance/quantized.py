"""`quantized`: a node case of the suite in QDQ form, to be held to the host's evaluation of the same model.

    x -> Q -> DQ -> node -> Q -> DQ -> y        weights: int8 -> DQ; biases: int32 -> DQ; other operands: as they are

The suite has float operators and quantized ones alone, never a quantized network, and hardware has operations for
networks only. Every float node case whose operator has a handler becomes one here. Scales are powers of two: all
float32 operators between Q and DQ are exact then or the same on both sides, so results are compared without tolerance.
"""

from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..convert.handlers import HANDLERS
from ..convert.operators.unary import UNARY
from ..convert.values import Array
from ..hostops.evaluator import evaluate

PARAMETERS = {
    "Conv": "wb",
    "ConvTranspose": "wb",
    "Gemm": "wb",
    "MatMul": "w",
    "BatchNormalization": "cccc",
    "PRelu": "c",
    "Clip": "cc",
    "Dropout": "cc",
    "Pad": "cc",
    "Pow": "c",
    "Resize": "cc",
}
"""What the operands behind the first are in a network: weights, biases, constants. Of other operators they are data."""
SAMPLES = frozenset(
    ["Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "AveragePool", "MaxPool", "GlobalAveragePool"]
)
"""Operators that treat every sample by itself: the hardware has one at a time, so the first is taken."""
BROADCAST = frozenset(["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Clip", "PRelu", *UNARY])
"""Operators that compute element by element: data get leading dimensions of 1, the first of them the batch."""
ZERO, RESULT_ZERO = np.int8(5), np.int8(-3)
"""Zero points of operands and results."""
DATA = TensorProto.FLOAT


def quantizable(source: Any) -> bool:
    """Is it one float operator, with tensors in and out, that has a handler?"""
    graph = source.model.graph
    values = [*graph.input, *graph.output]
    if len(graph.node) != 1 or len(source.data_sets) != 1 or not graph.input:
        return False
    if graph.node[0].domain not in ("", "ai.onnx") or ("", graph.node[0].op_type) not in HANDLERS:
        return False
    if not all(value.type.HasField("tensor_type") for value in values) or _opset(source.model) < 10:
        return False
    kinds = [value.type.tensor_type.elem_type for value in values]
    first = np.asarray(array_of(source.data_sets[0][0][0]))
    return kinds[0] == DATA and kinds[len(graph.input)] == DATA and first.size > 0 and not np.isnan(first).any()


def quantized(source: Any) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """The model in QDQ form, its inputs, and what the host computes of them."""
    graph = source.model.graph
    arrays = _one_sample(graph.node[0], [np.asarray(array_of(value)) for value in source.data_sets[0][0]])
    results = [np.asarray(array_of(value)) for value in source.data_sets[0][1]]
    made = _Qdq()
    node = deepcopy(graph.node[0])
    roles = PARAMETERS.get(node.op_type, "")
    places = {value.name: index for index, value in enumerate(graph.input)}
    for position, name in enumerate(node.input):
        if name:
            role = roles[position - 1 : position] if position else ""
            node.input[position] = made.operand(name, arrays[places[name]], role)
    for position, name in enumerate(node.output):
        if name:
            node.output[position] = f"{name}_real"
    made.nodes.append(node)
    for value, array in zip(graph.output, results, strict=True):
        made.result(value.name, array)
    imports = [helper.make_opsetid("", _opset(source.model))]
    body = helper.make_graph(made.nodes, graph.name, made.inputs, made.outputs, made.constants)
    model = helper.make_model(body, opset_imports=imports, ir_version=max(source.model.ir_version, 4))
    wanted = evaluate(model, made.feeds)
    return model, [(list(made.feeds.values()), [wanted[value.name] for value in made.outputs])]


def _one_sample(node: onnx.NodeProto, arrays: list[Array]) -> list[Array]:
    """The operands with a batch of 1 where the operator lets the batch be chosen."""
    first = arrays[0]
    if node.op_type in SAMPLES and first.ndim > 1:
        whole = node.op_type == "Gemm" and any(attribute.name == "transA" for attribute in node.attribute)
        whole |= node.op_type == "Gemm" and len(arrays) > 2 and arrays[2].ndim == 2 and len(arrays[2]) > 1
        same = node.op_type == "MatMul" and (first.ndim != 2 or arrays[1].ndim != 2)
        return arrays if whole or same else [first[:1], *arrays[1:]]
    if node.op_type in BROADCAST and 0 < max(array.ndim for array in arrays) < 4:
        return [array.reshape((1,) * (4 - array.ndim) + array.shape) if array.ndim else array for array in arrays]
    return arrays


class _Qdq:
    """The model under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, Array] = {}
        self.scales: list[np.float32] = []

    def operand(self, name: str, array: Array, role: str) -> str:
        """The value that the node reads: quantized data, a weight, a bias, or a constant."""
        if name in self.feeds:
            return f"{name}_real"
        if array.dtype != np.float32 or role == "c":
            return self.constant(name, array)
        scale = _scale(array)
        if role == "b":
            scale = self.scales[0] * self.scales[1]
            return self.dequantized(name, np.rint(array / scale).astype(np.int32), scale, np.int32(0))
        self.scales.append(scale)
        if role == "w":
            return self.dequantized(name, np.clip(np.rint(array / scale), -127, 127).astype(np.int8), scale, np.int8(0))
        self.feeds[name] = array
        self.inputs.append(helper.make_tensor_value_info(name, DATA, array.shape))
        self.grid(name, f"{name}_real", scale, ZERO)
        return f"{name}_real"

    def result(self, name: str, array: Array) -> None:
        """An output, quantized if it is real."""
        if array.dtype == np.float32:
            self.grid(f"{name}_real", name, _scale(array), RESULT_ZERO)
        else:
            self.nodes.append(helper.make_node("Identity", [f"{name}_real"], [name]))
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def grid(self, x: str, y: str, scale: np.float32, zero: np.int8) -> None:
        """``x -> Q -> DQ -> y``."""
        grid = [self.constant(f"{y}_scale", scale), self.constant(f"{y}_zero", zero)]
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *grid], [f"{y}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{y}_q", *grid], [y]))

    def dequantized(self, name: str, q: Array, scale: np.float32, zero: Any) -> str:
        """A constant on a grid."""
        operands = [self.constant(f"{name}_q", q), self.constant(f"{name}_scale", np.float32(scale))]
        operands.append(self.constant(f"{name}_zero", zero))
        self.nodes.append(helper.make_node("DequantizeLinear", operands, [f"{name}_real"]))
        return f"{name}_real"

    def constant(self, name: str, array: Any) -> str:
        """An initializer."""
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name


def _scale(array: Array) -> np.float32:
    """The power of two for which the finite values fill 100 of the 128 steps at most."""
    finite = np.abs(array[np.isfinite(array)])
    peak = float(finite.max(initial=0.0))
    return np.float32(2.0 ** np.ceil(np.log2(peak / 100))) if peak > 1e-30 else np.float32(1)


def _opset(model: onnx.ModelProto) -> int:
    return max(int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def array_of(value: Any) -> Any:
    """A value of the suite: the array of a tensor, others as they are."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
