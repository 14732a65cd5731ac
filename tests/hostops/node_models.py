"""Models of one node, as the host runs them."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnxhw.errors import OnnxhwError
from onnxhw.hostops.evaluator import evaluate


def one_node(
    op_type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] = {"y": None},
    opset: int = 21,
    domain: str = "",
    names: Sequence[str] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """One node; outputs by name with their declared (type, shape), None for no declaration."""
    node = helper.make_node(op_type, list(names or inputs), list(outputs), "it", domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if x.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(x.dtype),
            x.shape,
        )
        for name, x in inputs.items()
    ]
    ends = [
        onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, *kind)
        for name, kind in outputs.items()
    ]
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(helper.make_graph([node], "m", given, ends), opset_imports=imports, ir_version=10)


def run_node(op_type: str, inputs: Mapping[str, Any], count: int = 1, **more: Any) -> list[Any]:
    names = {f"y{i}": None for i in range(count)}
    return list(evaluate(one_node(op_type, inputs, names, **more), inputs).values())


def code_of(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> str:
    with pytest.raises(OnnxhwError) as caught:
        evaluate(model, feeds)
    return caught.value.code
