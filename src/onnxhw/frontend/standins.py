"""`stand_ins`: operators without a schema replaced by standard ones whose results have the same shapes.

onnx infers no shapes for com.microsoft and QONNX operators. For that purpose alone a quantized Add is an Add, and a
fake quantization is an Identity.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from .spec.signatures import canonical, newest

AXES_AS_INPUT = 18
"""The operator set from which ReduceMean takes its axes as an input."""


@dataclass(frozen=True)
class StandIn:
    """A standard operator on some of a node's inputs, with some of its attributes."""

    op_type: str
    inputs: tuple[int, int | None, int] = (0, 1, 1)
    attributes: tuple[str, ...] = ()


WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "group", "kernel_shape", "pads", "strides")
SAME = StandIn("Identity")
STAND_INS = {
    **dict.fromkeys(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold"], SAME),
    **dict.fromkeys(["QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"], SAME),
    "QuantizeLinear": StandIn("QuantizeLinear", (0, 3, 1), ("axis",)),
    "DequantizeLinear": StandIn("DequantizeLinear", (0, 3, 1), ("axis",)),
    **dict.fromkeys(["Gelu", "FastGelu", "QuickGelu", "BiasGelu"], SAME),
    **dict.fromkeys(["QLinearAdd", "QLinearMul"], StandIn("Add", (0, 6, 3))),
    "QGemm": StandIn("Gemm", (0, 6, 3), ("transA", "transB")),
    "QLinearConv": StandIn("Conv", (0, 6, 3), WINDOW),
    "FusedConv": StandIn("Conv", (0, 2, 1), WINDOW),
    "QLinearAveragePool": StandIn("AveragePool", (0, 1, 1), WINDOW),
    "QLinearGlobalAveragePool": StandIn("GlobalAveragePool"),
    "QLinearConcat": StandIn("Concat", (2, None, 3), ("axis",)),
    "QLinearReduceMean": StandIn("ReduceMean", (0, 1, 1), ("axes", "keepdims")),
}
"""By operator, for domains of which onnx has no schemas."""


def stand_ins(model: onnx.ModelProto, opset: int) -> bool:
    """Replace in place what has a stand-in; was there anything? The result is good for shapes only."""
    found = False
    domains = newest()
    for node in model.graph.node:
        stand_in = STAND_INS.get(node.op_type)
        if stand_in is None or canonical(node.domain) in domains:
            continue
        given = {attribute.name: attribute for attribute in node.attribute} if node.attribute else {}
        if "channels_last" in given and given["channels_last"].i:
            continue
        found = True
        inputs = node.input[slice(*stand_in.inputs)]
        kept = set(stand_in.attributes)
        if stand_in.op_type == "ReduceMean" and opset >= AXES_AS_INPUT:
            kept.discard("axes")
            if "axes" in given:
                axes = numpy_helper.from_array(np.array(given["axes"].ints, np.int64), f"{node.output[0]}.axes")
                model.graph.initializer.append(axes)
                inputs.append(axes.name)
        node.op_type, node.domain = stand_in.op_type, ""
        del node.input[:], node.output[1:]
        node.input.extend(inputs)
        if not kept:
            del node.attribute[:]
        for place, name in reversed(list(enumerate(given))) if kept else ():
            if name not in kept:
                del node.attribute[place]
    return found
