"""`float_model` and `qdq_model`: a rewritten graph as an ONNX model, in float or in QDQ form.

value -> QuantizeLinear -> DequantizeLinear -> consumers       int8, per tensor
weight_q -> DequantizeLinear(axis)                             int8, per output channel, zero point 0
bias_q -> DequantizeLinear(axis)                               int32, scale = input scale * weight scale
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from .. import fixed
from ..onnxmodel.in_worker import infer_shapes
from ..qdq import Grid, quantize_weights
from .floatgraph import Array, Doubles, FloatGraph, FloatLayer, Floats, unique
from .plan import QuantizationPlan

BIAS_BITS = 22
"""A weight scale is never so small that the bias would have more: its sums stay within the requantizer's 24 bits."""
OUTLIER = 2.0**-20
"""A channel whose weights are smaller than this share of the layer's largest gets the scale of that share."""


def float_model(graph: FloatGraph) -> onnx.ModelProto:
    """The folded model, in float; its values have the names of the graph."""
    constants, nodes, taken = dict(graph.constants), [], graph.names()
    for layer in graph.layers:
        names = []
        for part, values in (("weight", layer.weight), ("bias", layer.bias)):
            if values is not None:
                names.append(unique(f"{layer.output}/{part}", taken))
                constants[names[-1]] = values
        nodes.append(_with_inputs(layer, [layer.node.input[0], *names]) if names else layer.node)
    return graph.model(nodes, constants)


@dataclass(frozen=True)
class QdqModel:
    """A QDQ model. `names`: what consumers read instead of a quantized value of the graph. `results`: what a layer
    writes, before quantization, by the layer's output name; `biases`: the real values of its integer bias."""

    model: onnx.ModelProto
    names: dict[str, str]
    results: dict[str, str]
    biases: dict[str, Doubles]


def qdq_model(graph: FloatGraph, plan: QuantizationPlan, grids: Mapping[str, Grid]) -> QdqModel:
    """The quantized model, checked by onnx."""
    writer = _Writer(graph, plan, grids)
    return QdqModel(writer.model(), writer.names, writer.results, writer.biases)


class _Writer:
    """Walks the graph and collects nodes and constants."""

    def __init__(self, graph: FloatGraph, plan: QuantizationPlan, grids: Mapping[str, Grid]) -> None:
        self.graph, self.plan, self.grids = graph, plan, grids
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.outputs = {value.name for value in graph.outputs}
        self.names: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.biases: dict[str, Doubles] = {}
        self._taken = graph.names()

    def model(self) -> onnx.ModelProto:
        """The checked model."""
        for value in self.graph.inputs:
            if value.name in self.plan.group:
                self._quantized(value.name, value.name)
        for layer in self.graph.layers:
            self._layer(layer)
        return _checked(self.graph.model(self.nodes, self.constants))

    def _layer(self, layer: FloatLayer) -> None:
        inputs = [self.names.get(name, name) for name in layer.node.input]
        if layer.weight is not None:
            inputs = [inputs[0], *self._parameters(layer)]
        elif layer.output in self.plan.biases:
            inputs[1] = self._bias(layer)
        node = _with_inputs(layer, inputs)
        for index, name in enumerate(node.output):
            if name in self.plan.group and name in self.outputs:
                node.output[index] = self._name(f"{name}_float")
        self.nodes.append(node)
        self.results[layer.output] = node.output[0]
        for name, written in zip(layer.node.output, node.output, strict=True):
            if name in self.plan.group:
                self._quantized(name, written)

    def _quantized(self, name: str, written: str) -> None:
        """Quantize the float value `written`; consumers of `name` read the dequantized one from now on."""
        grid = self.grids[self.plan.group[name]]
        self.names[name] = name if name in self.outputs else self._name(f"{name}_dequantized")
        scale = self._constant(f"{name}_scale", np.array(grid.scale, np.float32))
        zero = self._constant(f"{name}_zero_point", np.array(grid.zero_point, np.int8))
        q = self._name(f"{name}_quantized")
        self.nodes.append(helper.make_node("QuantizeLinear", [written, scale, zero], [q], name=q))
        self.nodes.append(helper.make_node("DequantizeLinear", [q, scale, zero], [self.names[name]], name=f"{q}/DQ"))

    def _parameters(self, layer: FloatLayer) -> list[str]:
        """Dequantized weight and bias of an affine layer: the names of one or two values."""
        assert layer.weight is not None
        if layer.output not in self.plan.layers:  # its operand or its result cannot be quantized
            parts = (("weight", layer.weight), ("bias", layer.bias))
            return [self._constant(f"{layer.output}/{part}", values) for part, values in parts if values is not None]
        q, scales, grid = self._weights(layer)
        names = [self._dequantize(f"{layer.output}/weight", q, scales, layer.axis)]
        if layer.bias is not None:
            names.append(self._integer_bias(layer.output, layer.bias, scales, grid))
        return names

    def _weights(self, layer: FloatLayer) -> tuple[Array, Floats, Grid]:
        """int8 weights, their scales, and the grid of the operand."""
        assert layer.weight is not None
        added = next((name for name, before in self.plan.biases.items() if before is layer), None)
        bias = layer.bias if added is None else self._added_bias(added)
        grid, out = (self.grids[self.plan.group[name]] for name in (layer.node.input[0], self.plan.result(layer)))
        return *layer_weights(layer.weight, bias, layer.axis, grid, out), grid

    def _added_bias(self, name: str) -> Floats:
        """The constant that the Add `name` adds."""
        add = next(layer for layer in self.graph.layers if layer.output == name)
        return self.graph.constants[add.node.input[1]]

    def _bias(self, layer: FloatLayer) -> str:
        """The bias that an Add gives to the MatMul before it."""
        before = self.plan.biases[layer.output]
        _, scales, grid = self._weights(before)
        return self._integer_bias(before.output, self._added_bias(layer.output), scales, grid)

    def _integer_bias(self, output: str, bias: Floats, scales: Floats, grid: Grid) -> str:
        steps = (grid.scale * scales).astype(np.float32)
        limit = 2**31 - 1
        q = np.clip(np.rint(bias.astype(np.float64) / steps), -limit, limit).astype(np.int32)
        self.biases[output] = q.astype(np.float64) * steps
        return self._dequantize(f"{output}/bias", q, steps, 0)

    def _dequantize(self, wanted: str, q: Array, scales: Floats, axis: int) -> str:
        name = self._name(wanted)
        names = [
            self._constant(f"{name}_quantized", q),
            self._constant(f"{name}_scale", scales),
            self._constant(f"{name}_zero_point", np.zeros(len(scales), q.dtype)),
        ]
        self.nodes.append(helper.make_node("DequantizeLinear", names, [name], name=f"{name}/DQ", axis=axis))
        return name

    def _constant(self, wanted: str, value: Array) -> str:
        name = self._name(wanted)
        self.constants[name] = value
        return name

    def _name(self, wanted: str) -> str:
        return unique(wanted, self._taken)


def layer_weights(weight: Floats, bias: Floats | None, axis: int, grid: Grid, out: Grid) -> tuple[Array, Floats]:
    """int8 weights and one scale per output channel on `axis`, for an operand on `grid` and a result on `out`.

    ``max |w| / 127``, but not so small that the bias needs more than `BIAS_BITS`, nor that the sums of a channel may
    exceed the requantizer's operand before they saturate the result, nor next to nothing beside other channels.
    """
    first = np.moveaxis(weight, axis, 0)
    rows = np.abs(first.reshape(len(first), -1).astype(np.float64))
    operand, result = float(grid.scale), float(out.scale)
    real = np.zeros(len(first)) if bias is None else np.abs(bias.astype(np.float64)) / operand
    least = np.maximum(rows.max() * OUTLIER / 127, real / 2.0**BIAS_BITS)
    never_exceeds = (rows.sum(1) * 256 + real) * 2 / fixed.SUM_MAX
    saturates = np.full(len(first), 257 * result / operand / fixed.SUM_MAX)
    least = np.maximum(least, np.minimum(never_exceeds, saturates))
    q, scales = quantize_weights(first, least.astype(np.float32))
    return np.moveaxis(q, 0, axis), scales


def _checked(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, found good by onnx's checker; outputs that had no shape have the one that onnx infers.

    The checker wants a rank of every output: those whose rank nobody knows are left out of what it sees.
    """
    if any(_rankless(value) for value in model.graph.output):
        inferred = {value.name: value for value in infer_shapes(model).graph.output}
        for value in model.graph.output:
            if _rankless(value):
                value.type.CopyFrom(inferred[value.name].type)
    seen = deepcopy(model)
    del seen.graph.output[:]
    seen.graph.output.extend(value for value in model.graph.output if not _rankless(value))
    onnx.checker.check_model(seen, full_check=True)
    return model


def _rankless(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"))


def _with_inputs(layer: FloatLayer, inputs: list[str]) -> onnx.NodeProto:
    node = deepcopy(layer.node)
    node.input[:] = inputs
    return node
