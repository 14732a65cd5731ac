"""`fold_normalizations`: a float model rewritten so that each affine layer has its final weights.

Constant -> initializer                        nodes of known inputs -> their results
Identity, Dropout -> nothing                   MatMul of a matrix -> Gemm; Gemm -> alpha = beta = transB = 1
Conv -> BatchNormalization, Mul, Add ... -> Conv     y = a * x + b per channel joins the layer before
BatchNormalization alone -> Conv 1x1, group C

All folding is done in float64 and rounded to float32 once.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..hostops.evaluator import Evaluator
from ..onnxmodel.batching_rules import RANDOM
from .floatgraph import Array, Doubles, FloatGraph, FloatLayer

LARGEST_FOLDED = 1 << 24
"""Elements of a result that is computed ahead."""


def fold_normalizations(graph: FloatGraph) -> None:
    """Rewrite in place; names of the values that remain do not change."""
    _bypass(graph)
    _constants(graph)
    for layer in graph.layers:
        _parameters(graph, layer)
    _channel_affine(graph)


def _bypass(graph: FloatGraph) -> None:
    """Identity -> nothing, Dropout -> nothing, unless its result is an output or a subgraph's."""
    kept, renamed = [], dict[str, str]()
    pinned = {value.name for value in graph.outputs} | graph.captured
    for layer in graph.layers:
        node = layer.node
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        if node.op_type in ("Add", "Mul") and not node.domain and node.input[0] in graph.constants:
            node.input[0], node.input[1] = node.input[1], node.input[0]
        plain = node.op_type == "Identity" or (
            node.op_type == "Dropout" and len(node.output) == 1 and _inference(graph, node)
        )
        if plain and not node.domain and layer.output not in pinned:
            renamed[layer.output] = node.input[0]
        else:
            kept.append(layer)
    graph.layers = kept


def _inference(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    training = node.input[2] if len(node.input) > 2 else ""
    return not training or (training in graph.constants and not graph.constants[training].any())


def _constants(graph: FloatGraph) -> None:
    """Nodes whose inputs are all known -> constants."""
    kept = []
    for layer in graph.layers:
        node = layer.node
        sizes = [graph.shapes.get(name) for name in node.output if name]
        known = all(not name or name in graph.constants for name in node.input)
        small = all(shape is not None and prod(shape) <= LARGEST_FOLDED for shape in sizes)
        has_graph = any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute)
        if node.domain or not known or not small or has_graph or node.op_type in RANDOM:
            kept.append(layer)
            continue
        try:
            graph.constants.update(_evaluate(graph, node))
        except Exception:  # what the host cannot compute stays a node, for the runner to judge
            kept.append(layer)
    graph.layers = kept


def _evaluate(graph: FloatGraph, node: onnx.NodeProto) -> dict[str, Array]:
    outputs = [name for name in node.output if name]
    initializers = [numpy_helper.from_array(graph.constants[name], name) for name in dict.fromkeys(node.input) if name]
    body = helper.make_graph(
        [node], "constant", [], [helper.make_empty_tensor_value_info(o) for o in outputs], initializers
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", graph.opset)])
    results = Evaluator(model).run(None, {})
    return {name: np.asarray(result) for name, result in zip(outputs, results, strict=True)}


def _parameters(graph: FloatGraph, layer: FloatLayer) -> None:
    """Give an affine layer its weight and bias, if they are constant float32."""
    node, found = layer.node, layer.attributes()
    constants = [graph.constants.get(name) for name in node.input[1:] if name]
    if (
        node.domain
        or node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul")
        or not graph.is_float(node.input[0])
    ):
        return
    if any(value is None or value.dtype != np.float32 for value in constants):
        return
    weight = constants[0]
    bias = constants[1] if len(constants) > 1 else None
    assert weight is not None
    rank = len(graph.shapes[node.input[0]])
    if node.op_type == "Conv":
        layer.weight, layer.bias = weight, np.zeros(len(weight), np.float32) if bias is None else bias
    elif node.op_type == "ConvTranspose" and found.get("group", 1) == 1:
        layer.weight, layer.axis = weight, 1
        layer.bias = np.zeros(weight.shape[1], np.float32) if bias is None else bias
    elif node.op_type == "Gemm" and not found.get("transA", 0):
        matrix = weight if found.get("transB", 0) else weight.T
        _gemm(layer, matrix, bias, found.get("alpha", 1.0), found.get("beta", 1.0))
    elif node.op_type == "MatMul" and weight.ndim == 2 and rank == 2:
        _gemm(layer, weight.T, None, 1.0, 1.0)
    elif node.op_type == "MatMul" and weight.ndim == 2 and rank > 2:
        layer.weight, layer.axis = weight, 1


def _gemm(layer: FloatLayer, matrix: Array, bias: Array | None, alpha: float, beta: float) -> None:
    outputs = len(matrix)
    if bias is not None and (bias.size not in (1, outputs) or max(bias.shape, default=1) != bias.size):
        return
    shift = np.zeros(outputs) if bias is None else np.broadcast_to(bias.ravel().astype(np.float64) * beta, (outputs,))
    node = layer.node
    layer.weight = np.ascontiguousarray((matrix.astype(np.float64) * alpha).astype(np.float32))
    layer.bias = shift.astype(np.float32)
    layer.node = helper.make_node("Gemm", list(node.input[:2]), list(node.output), name=node.name, transB=1)


# -- y = a * x + b per channel -------------------------------------------------------------------------


@dataclass(frozen=True)
class ChannelAffine:
    """``y = a * x + b``; `a` and `b` are ``[C]`` along axis 1 of `x`."""

    x: str
    a: Doubles
    b: Doubles


def _channel_affine(graph: FloatGraph) -> None:
    uses = graph.uses()
    kept: list[FloatLayer] = []
    made: dict[str, FloatLayer] = {}
    for layer in graph.layers:
        found = _normalization(graph, layer) or _arithmetic(graph, layer)
        before = made.get(found.x) if found is not None else None
        if found is not None and before is not None and before.bias is not None and uses[found.x] == 1:
            _join(before, found)
            before.node.output[0] = layer.output
            made[layer.output] = before
            continue
        if found is not None and _stands_alone(graph, layer, found):
            layer = _depthwise(graph, layer, found)
        kept.append(layer)
        made[layer.output] = layer
    graph.layers = kept


def _join(before: FloatLayer, found: ChannelAffine) -> None:
    assert before.weight is not None
    assert before.bias is not None
    along = [-1 if axis == before.axis else 1 for axis in range(before.weight.ndim)]
    before.weight = (before.weight.astype(np.float64) * found.a.reshape(along)).astype(np.float32)
    before.bias = (before.bias.astype(np.float64) * found.a + found.b).astype(np.float32)


def _stands_alone(graph: FloatGraph, layer: FloatLayer, found: ChannelAffine) -> bool:
    """Is it worth a convolution: one or two spatial axes, and different constants per channel (or a normalization)?"""
    scalar = layer.node.op_type != "BatchNormalization" and np.unique(found.a).size == np.unique(found.b).size == 1
    return len(graph.shapes[found.x]) in (3, 4) and not scalar


def _depthwise(graph: FloatGraph, layer: FloatLayer, found: ChannelAffine) -> FloatLayer:
    channels, rank = len(found.a), len(graph.shapes[found.x]) - 2
    node = helper.make_node(
        "Conv", [found.x, ""], [layer.output], name=layer.node.name, kernel_shape=[1] * rank, group=channels
    )
    weight = found.a.astype(np.float32).reshape(channels, 1, *[1] * rank)
    return FloatLayer(node, weight, found.b.astype(np.float32))


def _normalization(graph: FloatGraph, layer: FloatLayer) -> ChannelAffine | None:
    node, found = layer.node, layer.attributes()
    if node.op_type != "BatchNormalization" or node.domain or found.get("training_mode", 0) or len(node.output) > 1:
        return None
    if not graph.is_float(node.input[0]) or any(name not in graph.constants for name in node.input[1:]):
        return None
    scale, shift, mean, variance = (graph.constants[name].astype(np.float64) for name in node.input[1:])
    a = scale / np.sqrt(variance + found.get("epsilon", 1e-5))
    return ChannelAffine(node.input[0], a, shift - mean * a)


def _arithmetic(graph: FloatGraph, layer: FloatLayer) -> ChannelAffine | None:
    """Add, Sub, Mul or Div with a constant per channel."""
    node = layer.node
    if node.op_type not in ("Add", "Sub", "Mul", "Div") or node.domain:
        return None
    known = [name in graph.constants for name in node.input]
    if sum(known) != 1:
        return None
    x, constant = node.input[known.index(False)], graph.constants[node.input[known.index(True)]]
    if not graph.is_float(x) or constant.dtype != np.float32 or graph.shapes.get(layer.output) != graph.shapes[x]:
        return None
    values = _per_channel(constant, graph.shapes[x])
    if values is None or not np.isfinite(values).all() or (node.op_type == "Div" and (known[0] or not values.all())):
        return None
    ones, zeros = np.ones_like(values), np.zeros_like(values)
    if node.op_type in ("Mul", "Div"):
        return ChannelAffine(x, values if node.op_type == "Mul" else 1 / values, zeros)
    turned = node.op_type == "Sub" and known[0]
    return ChannelAffine(x, -ones if turned else ones, values if turned or node.op_type == "Add" else -values)


def _per_channel(constant: Array, shape: tuple[int, ...]) -> Doubles | None:
    """``[C]`` values along axis 1 of `shape`, or None if the constant varies along another axis."""
    if len(shape) < 2 or constant.ndim > len(shape):
        return None
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if any(size != 1 for axis, size in enumerate(aligned.shape) if axis != 1) or aligned.size not in (1, shape[1]):
        return None
    return np.broadcast_to(aligned.ravel().astype(np.float64), (shape[1],))
