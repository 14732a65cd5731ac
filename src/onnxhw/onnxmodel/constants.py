"""`KnownConstants`: small values that are known without running the model, through a few harmless operators."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

Array = npt.NDArray[Any]

SMALL = 64
"""Elements of a value that is kept."""
BROADCASTING = 7
"""The operator set from which arithmetic broadcasts as numpy does."""
OPERATORS: dict[str, Callable[..., Any]] = {
    "Identity": np.array,
    "Not": np.logical_not,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
}
"""What is computed, of known integers and booleans."""


@dataclass
class KnownConstants:
    """Known values by name, in a graph and those around it; `hidden`: names that mean something else here."""

    opset: int
    values: dict[str, Array] = field(default_factory=dict)
    outer: "KnownConstants | None" = None
    hidden: frozenset[str] = frozenset()

    def get(self, name: str) -> Array | None:
        """The value, if it is known."""
        if name in self.values or name in self.hidden or self.outer is None:
            return self.values.get(name)
        return self.outer.get(name)

    def add(self, name: str, tensor: onnx.TensorProto) -> None:
        """A tensor under a name, if it is small and in the file."""
        external = tensor.data_location == onnx.TensorProto.EXTERNAL
        if external or min(tensor.dims, default=0) < 0 or prod(tensor.dims) > SMALL:
            return
        try:
            self.values[name] = np.asarray(numpy_helper.to_array(tensor))
        except (ValueError, TypeError, KeyError, RuntimeError, OverflowError):
            return  # the rules of tensors say what is wrong with it

    def node(self, node: onnx.NodeProto) -> None:
        """What a node adds: a Constant, or an operator on known values."""
        if node.domain or len(node.output) != 1:
            return
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
                    self.add(node.output[0], attribute.t)
                elif attribute.name == "value_int":
                    self.values[node.output[0]] = np.array(attribute.i, np.int64)
            return
        compute = _cast(node) if node.op_type == "Cast" else OPERATORS.get(node.op_type)
        operands = [self.get(name) for name in node.input]
        if compute is None or not operands or self.opset < BROADCASTING:
            return
        known = [value for value in operands if value is not None and value.dtype.kind in "iub"]
        if len(known) != len(operands):
            return
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(compute(*known))
        except (ValueError, TypeError):
            return  # shape inference says what is wrong with it
        if result.size <= SMALL:
            self.values[node.output[0]] = result


def _cast(node: onnx.NodeProto) -> Callable[..., Any] | None:
    """A Cast to an integer or a boolean."""
    target = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    if target not in onnx.helper.get_all_tensor_dtypes():
        return None
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(target))
    return (lambda value: value.astype(kind)) if kind.kind in "iub" else None
