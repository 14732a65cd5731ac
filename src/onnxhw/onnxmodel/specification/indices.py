"""Rules of constant indices into operands of known sizes, and of constant positions in sequences of known length.

No run could compute a node with one out of range.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import onnx
from onnx import numpy_helper

from .findings import Findings, label
from .signatures import canonical

Shape = tuple[int, ...]
Array = npt.NDArray[Any]
ALONG_AXIS = ("Gather", "GatherElements", "Scatter", "ScatterElements")
TUPLES = ("GatherND", "ScatterND")
LENGTHS = "ReverseSequence"
OPERATORS = frozenset([*ALONG_AXIS, *TUPLES, LENGTHS])
"""Operators of which the second operand has indices, or lengths, of the first one's elements."""


def decoded(tensor: onnx.TensorProto) -> Array | None:
    """The values of a constant; None if it is damaged, which the tensor's own rules say."""
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, RuntimeError, OverflowError):
        return None


def index_rules(node: onnx.NodeProto, shape: Shape, indices: onnx.TensorProto, findings: Findings) -> None:
    """E3359 for an index that is outside of an operand of this shape. `node` is of `OPERATORS`."""
    values = decoded(indices)
    if values is None or values.dtype.kind not in "iu":
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


SEQUENCES = frozenset(["SequenceAt", "SequenceErase", "SequenceInsert"])
"""Operators with a position in a sequence."""
LARGEST = 64
"""Elements of a constant that is looked at."""


def sequence_rules(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, onnx.TensorProto], findings: Findings
) -> None:
    """E3359 for a position that a sequence does not have, of nodes of one graph in their order."""
    lengths: dict[str, int] = {}
    for node in nodes:
        if canonical(node.domain) or not node.output:
            continue
        length = _length(node, lengths, constants, findings)
        if length is not None:
            lengths[node.output[0]] = length


def _length(
    node: onnx.NodeProto, lengths: Mapping[str, int], constants: Mapping[str, onnx.TensorProto], findings: Findings
) -> int | None:
    """The length of the sequence that a node makes, None where it makes none, or one of unknown length."""
    if node.op_type in ("SequenceConstruct", "SequenceEmpty"):
        return len(node.input)
    if node.op_type == "SplitToSequence":
        sizes = constants.get(node.input[1]) if len(node.input) > 1 else None
        return sizes.dims[0] if sizes is not None and len(sizes.dims) == 1 else None
    length = lengths.get(node.input[0]) if node.input else None
    if length is None:
        return None
    if node.op_type == "Identity":
        return length
    if node.op_type == "SequenceAt":
        _position(node, 1, length, length - 1, constants, findings)
    elif node.op_type == "SequenceErase":
        return _position(node, 1, length, length - 1, constants, findings) - 1
    elif node.op_type == "SequenceInsert":
        return _position(node, 2, length, length, constants, findings) + 1
    return None


def _position(
    node: onnx.NodeProto, operand: int, length: int, most: int, constants: Mapping[str, onnx.TensorProto],
    findings: Findings,
) -> int:  # fmt: skip
    """The length; E3359 if the operand is a constant outside of ``-length .. most``, or there is no last element."""
    given = node.input[operand] if operand < len(node.input) else ""
    tensor = constants.get(given)
    if tensor is not None and not (tensor.dims and max(tensor.dims) > LARGEST):
        array = decoded(tensor)
        values = [] if array is None else array.ravel().tolist()
        if len(values) == 1 and isinstance(values[0], int) and not -length <= values[0] <= most:
            what = f"position {values[0]} is not between {-length} and {most}"
            has = f"its sequence has {length or 'no'} elements"
            findings.error("E3359", label(node), f"cannot be computed of its constants: {what}, {has}")
    elif not given and most < 0:
        what = "its sequence has no elements, of which the last is to be taken away"
        findings.error("E3359", label(node), f"cannot be computed of its constants: {what}")
    return length
