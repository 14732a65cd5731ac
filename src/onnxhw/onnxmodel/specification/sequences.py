"""Rules of constant positions in sequences of known length: no run could compute a node with one out of range."""

from collections.abc import Mapping, Sequence

import onnx
from onnx import numpy_helper

from .findings import Findings, label
from .signatures import canonical

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
        try:
            values = numpy_helper.to_array(tensor).ravel().tolist()
        except (ValueError, TypeError, KeyError, RuntimeError, OverflowError):
            return length  # the tensor's own rules say what is wrong with it
        if len(values) == 1 and isinstance(values[0], int) and not -length <= values[0] <= most:
            what = f"position {values[0]} is not between {-length} and {most}"
            has = f"its sequence has {length or 'no'} elements"
            findings.error("E3359", label(node), f"cannot be computed of its constants: {what}, {has}")
    elif not given and most < 0:
        what = "its sequence has no elements, of which the last is to be taken away"
        findings.error("E3359", label(node), f"cannot be computed of its constants: {what}")
    return length
