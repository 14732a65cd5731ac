"""Rules of constant indices into an operand of known sizes: no run could compute a node with one out of range."""

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt
import onnx
from onnx import numpy_helper

from .findings import Findings, label

Shape = tuple[int, ...]
Array = npt.NDArray[Any]
ALONG_AXIS = ("Gather", "GatherElements", "Scatter", "ScatterElements")
TUPLES = ("GatherND", "ScatterND")
LENGTHS = "ReverseSequence"
OPERATORS = frozenset([*ALONG_AXIS, *TUPLES, LENGTHS])
"""Operators of which the second operand has indices, or lengths, of the first one's elements."""


def index_rules(node: onnx.NodeProto, shape: Shape, indices: onnx.TensorProto, findings: Findings) -> None:
    """E3359 for an index that is outside of an operand of this shape. `node` is of `OPERATORS`."""
    try:
        values = numpy_helper.to_array(indices)
    except (ValueError, TypeError, KeyError, RuntimeError, OverflowError):
        return  # the tensor's own rules say what is wrong with it
    if values.dtype.kind not in "iu":
        return
    attributes = {one.name: one.i for one in node.attribute if one.type == onnx.AttributeProto.INT}
    for axis, size, found in _by_axis(node.op_type, attributes, shape, values):
        lengths = node.op_type == LENGTHS
        least, most = (0, size) if lengths else (-size, size - 1)
        wrong = found[(found < least) | (found > most)]
        if wrong.size:
            what = f"{'length' if lengths else 'index'} {int(wrong.flat[0])} is not between {least} and {most}"
            has = f"axis {axis} of its input has {size or 'no'} elements"
            findings.error("E3359", label(node), f"cannot be computed of its constants: {what}, {has}")
            return


def _by_axis(
    op_type: str, attributes: dict[str, int], shape: Shape, values: Array
) -> Iterator[tuple[int, int, Array]]:
    """Axis, its size, and the indices into it."""
    rank = len(shape)
    if op_type in TUPLES:
        first = attributes.get("batch_dims", 0) if op_type == "GatherND" else 0
        width = values.shape[-1] if values.ndim else 0
        if first >= 0 and first + width <= rank:
            yield from ((first + i, shape[first + i], values[..., i]) for i in range(width))
        return
    axis = attributes.get("time_axis" if op_type == LENGTHS else "axis", 0)
    if -rank <= axis < rank:
        yield axis % rank, shape[axis], values
