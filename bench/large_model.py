"""A quantized model of any number of nodes: what `onnxhw check` is measured with.

    python bench/large_model.py 10000 large.onnx

Residual blocks of convolutions, with an operator that only the host has in every tenth block.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIZE = 8, 8
SHAPE = [1, CHANNELS, SIZE, SIZE]


def large_model(nodes: int, host_every: int = 10, seed: int = 0) -> onnx.ModelProto:
    """A model of about `nodes` nodes (never fewer); `host_every` blocks there is a node for the host, 0: none."""
    random = np.random.default_rng(seed)
    graph = onnx.GraphProto(name=f"large-{nodes}")

    def constant(name: str, values: "np.typing.ArrayLike") -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    scale, zero = constant("scale", np.float32(0.125)), constant("zero", np.int8(0))
    weight_scale, weight_zero = constant("weight_scale", np.float32(0.0625)), constant("weight_zero", np.int8(0))

    def node(op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type}_{len(graph.node)}"
        graph.node.append(helper.make_node(op_type, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def requantize(x: str) -> str:
        return node("DequantizeLinear", node("QuantizeLinear", x, scale, zero), scale, zero)

    x = requantize("x")
    block = 0
    while len(graph.node) < nodes:
        weight = random.integers(-8, 8, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8)
        real = node("DequantizeLinear", constant(f"weight_{block}", weight), weight_scale, weight_zero)
        y = requantize(node("Relu", node("Conv", x, real)))
        if host_every and block % host_every == host_every - 1:
            y = requantize(node("Trilu", y))
        x = requantize(node("Add", x, y))
        block += 1
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE))
    graph.output.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, SHAPE))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(large_model(int(sys.argv[1])).SerializeToString())
