"""`surrogates`: operators without a schema replaced by standard ones whose results have the same shapes.

onnx infers no shapes for com.microsoft and QONNX operators. For that purpose alone a quantized Add is an Add, and a
fake quantization is an Identity.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from .specification.signatures import canonical, newest

QUANTIZING = 10
"""The operator set in which QuantizeLinear and DequantizeLinear came."""
IMAGE = 4
"""The rank of a batch of images."""
AXES_AS_INPUT = 18
"""The operator set from which ReduceMean takes its axes as an input."""


@dataclass(frozen=True)
class Surrogate:
    """A standard operator on some of a node's inputs, with some of its attributes."""

    op_type: str
    inputs: tuple[int, int | None, int] = (0, 1, 1)
    attributes: tuple[str, ...] = ()
    last: bool = False
    """Are the channels always last? Else `channels_last` says it."""


WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "group", "kernel_shape", "pads", "strides")
SAME = Surrogate("Identity")
SURROGATES = {
    **dict.fromkeys(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold"], SAME),
    **dict.fromkeys(["QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"], SAME),
    "QuantizeLinear": Surrogate("QuantizeLinear", (0, 3, 1), ("axis",)),
    "DequantizeLinear": Surrogate("DequantizeLinear", (0, 3, 1), ("axis",)),
    **dict.fromkeys(["Gelu", "FastGelu", "QuickGelu", "BiasGelu"], SAME),
    **dict.fromkeys(["QLinearAdd", "QLinearMul"], Surrogate("Add", (0, 6, 3))),
    "QGemm": Surrogate("Gemm", (0, 6, 3), ("transA", "transB")),
    "QLinearConv": Surrogate("Conv", (0, 6, 3), WINDOW),
    "FusedConv": Surrogate("Conv", (0, 2, 1), WINDOW),
    "QLinearAveragePool": Surrogate("AveragePool", (0, 1, 1), WINDOW),
    "QLinearGlobalAveragePool": Surrogate("GlobalAveragePool"),
    "NhwcMaxPool": Surrogate("MaxPool", (0, 1, 1), WINDOW, last=True),
    "QLinearConcat": Surrogate("Concat", (2, None, 3), ("axis",)),
    "QLinearReduceMean": Surrogate("ReduceMean", (0, 1, 1), ("axes", "keepdims")),
}
"""By operator, for domains of which onnx has no schemas."""


def surrogates(model: onnx.ModelProto, opset: int) -> bool:
    """Replace in place what has a surrogate; was there anything? The result is good for shapes only."""
    domains = newest()
    wanted = [node for node in model.graph.node
              if node.op_type in SURROGATES and canonical(node.domain) not in domains]  # fmt: skip
    last = {node.output[0]: _rank(node, model.graph) for node in wanted if _channels_last(node)}
    for node in wanted:
        surrogate = SURROGATES[node.op_type]
        absent = opset < QUANTIZING and surrogate.op_type == node.op_type
        _replace(node, SAME if absent else surrogate, model.graph, opset)
    if last:
        nodes = [one for node in model.graph.node
                 for one in (_moved(node, last[node.output[0]]) if node.output[0] in last else [node])]  # fmt: skip
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return bool(wanted)


def _channels_last(node: onnx.NodeProto) -> bool:
    return SURROGATES[node.op_type].last or any(one.name == "channels_last" and one.i for one in node.attribute)


def _rank(node: onnx.NodeProto, graph: onnx.GraphProto) -> int:
    """The rank of a node's tensors with channels: what its window or its weights have, else that of an image."""
    windows = [len(one.ints) for one in node.attribute if one.name == "kernel_shape"]
    weights = [len(tensor.dims) for tensor in graph.initializer if tensor.name in node.input[3:4]]
    return windows[0] + 2 if windows else max(weights, default=IMAGE) if "Conv" in node.op_type else IMAGE


def _moved(node: onnx.NodeProto, rank: int) -> list[onnx.NodeProto]:
    """A node whose channels come first, between Transposes from where they come last and back."""
    x, y = f"{node.output[0]}.first", f"{node.output[0]}.behind"
    before, after = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    first = onnx.helper.make_node("Transpose", [node.input[0]], [x], perm=before)
    last = onnx.helper.make_node("Transpose", [y], [node.output[0]], perm=after)
    node.input[0], node.output[0] = x, y
    return [first, node, last]


def _replace(node: onnx.NodeProto, surrogate: Surrogate, graph: onnx.GraphProto, opset: int) -> None:
    given = {attribute.name: attribute for attribute in node.attribute} if node.attribute else {}
    inputs = node.input[slice(*surrogate.inputs)]
    kept = set(surrogate.attributes)
    if surrogate.op_type == "ReduceMean" and opset >= AXES_AS_INPUT:
        kept.discard("axes")
        if "axes" in given:
            axes = numpy_helper.from_array(np.array(given["axes"].ints, np.int64), f"{node.output[0]}.axes")
            graph.initializer.append(axes)
            inputs.append(axes.name)
    node.op_type, node.domain = surrogate.op_type, ""
    del node.input[:], node.output[1:]
    node.input.extend(inputs)
    if not kept:
        del node.attribute[:]
    for place, name in reversed(list(enumerate(given))) if kept else ():
        if name not in kept:
            del node.attribute[place]
