"""`convert`: from a checked ONNX model to an IR graph, node by node in the model's order."""

from collections.abc import Callable

import numpy as np
import onnx

from ..errors import InternalError, UnsupportedError
from ..ir.graph import Graph, Port
from .blockers import BlockedError, Blocker, UnsupportedNodesError
from .context import Context, label
from .fold import fold
from .load import unknown_operators
from .ops import affine, edge, elementwise, layout, pool
from .quant import qdq
from .shapes import Shape
from .tensors import array, dtype
from .values import Const, Fed, Held, Hosted, Pending, QuantConst, Unknown, Value

Handler = Callable[[Context, onnx.NodeProto], Value]

HANDLERS: dict[str, Handler] = {
    "QuantizeLinear": qdq.quantize,
    "DequantizeLinear": qdq.dequantize,
    "Conv": affine.conv,
    "Gemm": affine.gemm,
    "MatMul": affine.matmul,
    "Add": elementwise.arithmetic,
    "Sub": elementwise.arithmetic,
    "Mul": elementwise.arithmetic,
    "Div": elementwise.arithmetic,
    "Relu": elementwise.unary,
    "Sigmoid": elementwise.unary,
    "Tanh": elementwise.unary,
    "LeakyRelu": elementwise.unary,
    "Clip": elementwise.clip,
    "MaxPool": pool.max_pool,
    "GlobalMaxPool": pool.max_pool,
    "AveragePool": pool.average_pool,
    "GlobalAveragePool": pool.average_pool,
    "ReduceMean": pool.reduce_mean,
    "Flatten": layout.reshape,
    "Reshape": layout.reshape,
    "Squeeze": layout.reshape,
    "Unsqueeze": layout.reshape,
    "Transpose": layout.transpose,
    "Identity": layout.identity,
    "Dropout": layout.identity,
    "Concat": layout.concat,
    "Softmax": edge.softmax,
}
"""What can be converted, by operator of the default domain (Q and DQ also of com.microsoft)."""

SUPPORTED = f"supported: {', '.join(sorted(HANDLERS))}"

QUANTIZERS = frozenset(
    [
        "QuantizeLinear",
        "QLinearConv",
        "QLinearMatMul",
        "QGemm",
        "ConvInteger",
        "MatMulInteger",
        "Quant",
        "IntQuant",
        "BipolarQuant",
    ]
)
"""A model without any of these is not quantized."""


def convert(model: onnx.ModelProto, shapes: dict[str, Shape], where: str = "model") -> Graph:
    """The IR graph of a model whose shapes are known.

    Raises `UnsupportedNodesError` E4001 with every blocker, `UnsupportedError` E4002 for a float model,
    `InvalidModelError` E302x and E303x for contradictory quantization or windows.
    """
    source = model.graph
    if not any(node.op_type in QUANTIZERS for node in source.node):
        if unknown := unknown_operators(model):  # quantizing would not help
            raise UnsupportedNodesError([_unsupported(node) for node in unknown], where)
        raise UnsupportedError(
            "E4002",
            "the model is not quantized: it has no QuantizeLinear node",
            where=where,
            hint="quantize it to int8 in QDQ format, e.g. with onnxruntime.quantization.quantize_static",
        )
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    context = Context(Graph(source.name or "model", {}, [], [], []), opset, shapes)
    for tensor in source.initializer:
        context.values[tensor.name] = Const(array(tensor))
    for value in source.input:
        if value.name not in context.values:
            shape = shapes[value.name]
            context.values[value.name] = Fed(value.name, shape, dtype(value), shape)
    blockers: list[Blocker] = []
    context.op_types = {label(node): node.op_type for node in source.node}
    with np.errstate(all="ignore"):  # what leaves float32's range is found by its value, not by a warning
        for node in source.node:
            _node(context, node, blockers)
    for value in source.output:
        _output(context, value, blockers)
    if blockers:
        raise UnsupportedNodesError(blockers, where)
    if not context.graph.ops:
        raise UnsupportedError("E4006", "no node of the model runs on the accelerator", where=where)
    return context.graph


def _node(context: Context, node: onnx.NodeProto, blockers: list[Blocker]) -> None:
    for output in node.output:
        context.values[output] = Unknown(context.shapes.get(output))
    operands = [context.values[name] for name in node.input if name]
    try:
        folded = fold(context, node)
        if folded is not None:
            context.values[node.output[0]] = folded
            return
        handler = _handler(node)
        if not any(isinstance(value, Unknown) for value in operands):
            context.values[node.output[0]] = _checked(context, node, handler(context, node))
        elif node.op_type == "QuantizeLinear" and node.output[0] in context.shapes:
            context.values[node.output[0]] = qdq.placeholder(context, node)
    except BlockedError as blocked:
        # A QuantizeLinear that completes an operation speaks for that operation.
        pending = next((value for value in operands if isinstance(value, Pending)), None)
        name = pending.nodes[0] if pending is not None and node.op_type == "QuantizeLinear" else label(node)
        blockers.append(Blocker(name, context.op_types.get(name, node.op_type), blocked.reason, blocked.hint))


def _checked(context: Context, node: onnx.NodeProto, value: Value) -> Value:
    """The value, if its shape is the one that onnx infers."""
    inferred = context.shapes.get(node.output[0])
    if inferred is not None and value.shape != inferred:
        raise InternalError("E1303", f"result has shape {value.shape}, onnx infers {inferred}", where=label(node))
    return value


def _handler(node: onnx.NodeProto) -> Handler:
    contrib = node.domain == "com.microsoft" and node.op_type in ("QuantizeLinear", "DequantizeLinear")
    if node.domain not in ("", "ai.onnx") and not contrib:
        raise BlockedError(f"domain {node.domain!r} is not supported", "convert the model to QDQ format")
    handler = HANDLERS.get(node.op_type)
    if handler is None:
        raise BlockedError("this operator is not supported", SUPPORTED)
    return handler


def _unsupported(node: onnx.NodeProto) -> Blocker:
    """A node whose operator neither ONNX nor this release knows."""
    return Blocker(label(node), node.op_type, "ONNX knows no such operator", SUPPORTED)


def _output(context: Context, value: onnx.ValueInfoProto, blockers: list[Blocker]) -> None:
    name = value.name
    known = context.values[name]
    if isinstance(known, (Held, Hosted)):
        steps = known.steps() if isinstance(known, Held) else known.steps
        context.graph.outputs.append(Port(name, known.shape, dtype(value), known.tensor.name, steps))
    elif isinstance(known, Pending):
        blockers.append(
            Blocker(
                known.nodes[0],
                context.op_types.get(known.nodes[0], ""),
                f"its result is the float output {name!r}",
                "put QuantizeLinear and DequantizeLinear on the model's outputs",
            )
        )
    elif isinstance(known, (Const, QuantConst, Fed)):
        kind = "an input" if isinstance(known, Fed) else "a constant"
        blockers.append(Blocker(name, "output", f"output {name!r} is {kind} of the model", "remove this output"))
