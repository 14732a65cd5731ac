"""Small quantized networks with parts for the host between them."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

S = 0.125
SHAPE = [1, 4, 4, 4]


class Net:
    """Quantized values on one grid, and anything else as it comes."""

    def __init__(self, shape: Any = SHAPE) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants = [
            numpy_helper.from_array(np.float32(S), "s"),
            numpy_helper.from_array(np.int8(0), "z"),
            numpy_helper.from_array(np.arange(-8, 8, dtype=np.int8).reshape(4, 4, 1, 1), "w"),
        ]
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op_type}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def grid(self, x: str) -> str:
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, "s", "z"), "s", "z")

    def conv(self, x: str) -> str:
        return self.grid(self.node("Conv", x, self.node("DequantizeLinear", "w", "s", "z")))

    def model(self, *outputs: str, rank: int = 4) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.constants)
        domains = {node.domain for node in self.nodes} - {""}
        imports = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def mixed() -> onnx.ModelProto:
    net = Net()
    x = net.conv(net.grid("x"))
    y = net.grid(net.node("Trilu", x))
    return net.model(net.conv(net.grid(net.node("Add", x, y))), y)


def draw(shape: Any = SHAPE, seed: int = 0) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(seed).integers(-140, 140, shape) / 8).astype(np.float32)
