"""`Kernel`: one layer of a QDQ model as onnxruntime's integer kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from .session import session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Kernel:
    """One Conv or Gemm of a QDQ model as onnxruntime's integer kernel in a model of its own.

    Operands are moved to uint8 (int8 values and zero points + 128): uint8 times uint8 is the pair that no x86 kernel
    saturates, with or without VNNI. A Relu before the QuantizeLinear is a maximum with the zero point, `low`.
    """

    op_type: str
    runtime: ort.InferenceSession
    low: int

    @classmethod
    def of(cls, model: onnx.ModelProto, name: str) -> "Kernel | None":
        """The node of that name with its DequantizeLinear inputs, and the QuantizeLinear behind it (or its Relu).

        None if there is no such QuantizeLinear.
        """
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        makers = {output: node for node in model.graph.node for output in node.output}
        node = next(node for node in model.graph.node if node.name == name)
        after = _consumers(model, node.output[0])
        relu = len(after) == 1 and after[0].op_type == "Relu"
        if relu:
            after = _consumers(model, after[0].output[0])
        if len(after) != 1 or after[0].op_type != "QuantizeLinear":
            return None
        scale, zero = (arrays[name] for name in after[0].input[1:3])
        x, w, bias = (makers[name] for name in node.input[:3])
        values = {
            "xs": arrays[x.input[1]],
            "xz": lifted(arrays[x.input[2]]),
            "w": lifted(arrays[w.input[0]]),
            "ws": arrays[w.input[1]],
            "wz": lifted(arrays[w.input[2]]),
            "ys": scale,
            "yz": lifted(zero),
            "b": arrays[bias.input[0]],
        }
        made = _qlinear_node(node)
        graph = helper.make_graph(
            [made],
            name,
            [helper.make_tensor_value_info("x", TensorProto.UINT8, None)],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
            [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in values.items()],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        runtime = session(helper.make_model(graph, opset_imports=opsets, ir_version=8), True)
        return cls(made.op_type, runtime, int(values["yz"]) if relu else 0)

    def run(self, x: Array) -> npt.NDArray[np.int8]:
        """The result for an int8 or uint8 operand, as the IR has it: int8."""
        operand = lifted(x)
        y = self.runtime.run(["y"], {"x": operand.reshape(len(x), -1) if self.op_type == "QGemm" else operand})[0]
        return np.asarray((np.maximum(y, self.low).astype(np.int16) - 128).astype(np.int8))


def lifted(q: Array) -> npt.NDArray[np.uint8]:
    """Integers of 8 bits as uint8: int8 values are moved by 128."""
    return q if q.dtype == np.uint8 else (q.astype(np.int16) + 128).astype(np.uint8)


def _qlinear_node(node: onnx.NodeProto) -> onnx.NodeProto:
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Conv":
        return helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **attributes)
    return helper.make_node(
        "QGemm",
        ["x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"],
        ["y"],
        domain="com.microsoft",
        transB=attributes.get("transB", 0),
    )


def _consumers(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if name in node.input]
