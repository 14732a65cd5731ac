"""One node, as a session computes it."""

from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnxhw.hostops.evaluator import evaluate

NAN = np.nan


def run(
    op_type: str, operands: list[Any], version: int, outputs: int = 1, domain: str = "", **attributes: Any
) -> list[Any]:
    """The results of a node of these operands."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    values = [
        helper.make_tensor_value_info(
            name, onnx.TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for name, x in zip(names, operands, strict=True)
        if name
    ]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)], ir_version=10)
    return list(evaluate(model, {name: x for name, x in zip(names, operands, strict=True) if name}).values())


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)
