"""`fold`: nodes whose inputs are all known are computed now, if they are small and harmless."""

from math import prod
from typing import Any

import numpy as np
import onnx

from .blockers import BlockedError
from .context import Context
from .nodes import DEFAULT, Node
from .tensors import array, sparse_array
from .values import Const

FOLDABLE = frozenset(
    [
        "Shape",
        "Gather",
        "Unsqueeze",
        "Squeeze",
        "Concat",
        "Cast",
        "CastLike",
        "Slice",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Neg",
        "Transpose",
        "Reshape",
        "Flatten",
        "ReduceProd",
    ]
)
"""Operators whose result is about as large as their inputs."""
LARGEST = 1 << 24
"""Most elements of a folded result."""


def constant_node(node: onnx.NodeProto) -> Const | None:
    """The value of a Constant node, or None for a form that is not a number."""
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.name == "value":
            return Const(array(value))
        if attribute.name == "sparse_value":
            return Const(sparse_array(value))
        if attribute.name in ("value_float", "value_floats"):
            return Const(np.array(value, np.float32))
        if attribute.name in ("value_int", "value_ints"):
            return Const(np.array(value, np.int64))
    return None


def fold(context: Context, node: Node) -> Const | None:
    """The result of a node that needs no run, or None.

    A Shape of any value with a static shape counts: it is what shape arithmetic of exporters starts from; so does a
    CastLike of a constant to the type of any value, which functions have for their scales.
    """
    if node.op_type not in FOLDABLE or node.domain not in DEFAULT or len(node.output) != 1:
        return constant_node(node.proto) if node.key == ("", "Constant") else None
    feeds: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for index, name in enumerate(node.input):
        if not name:
            continue
        value = context.values[name]
        if isinstance(value, Const):
            feeds[name] = value.array
        elif node.op_type == "CastLike" and index == 1 and name in context.dtypes:
            feeds[name] = np.zeros((), context.dtypes[name])
        elif node.op_type == "Shape" and value.shape is not None:
            feeds[name] = np.broadcast_to(np.zeros((), np.int8), value.shape)
        else:
            return None
    if not feeds or prod(context.shapes.get(node.output[0], (0,))) > LARGEST:
        return None
    from onnx.reference import ReferenceEvaluator  # only here: it takes long to import

    try:
        results: Any = ReferenceEvaluator(node.proto, opsets={"": context.opset}).run(None, feeds)
    except Exception as error:  # the reference raises whatever numpy does
        raise BlockedError(f"cannot be computed from its constants: {' '.join(str(error).split())[:200]}") from error
    return Const(np.asarray(results[0]))
