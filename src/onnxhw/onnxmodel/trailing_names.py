"""`trim`: empty names at the end of a node's inputs and outputs, which say no more than their absence."""

from collections.abc import Mapping

import onnx

from .specification.com_microsoft import defined
from .specification.signatures import Signature, canonical, newest

ALL_OR_ONE = ("", "BatchNormalization")
"""The operator of whose outputs, by its schema, there is one or all: others than the first are of the training mode."""


def trim(node: onnx.NodeProto, sets: Mapping[str, int]) -> None:
    """Drop, in place, the trailing empty names of what the operator may leave out. `sets`: imported versions by domain.

    "There are two ways to leave an optional input or output unspecified: the first, available only for trailing inputs
    and outputs, is to simply not provide that input; the second method is to use an empty string" (ONNX IR, Optional
    Inputs and Outputs). Kernels count names: one crashes of outputs that are empty. The number of variadic outputs
    means something (Split, If): they stay.
    """
    if not (node.output and not node.output[-1]) and not (node.input and not node.input[-1]):
        return
    domain = canonical(node.domain)
    known = defined(node.op_type, domain, sets.get(domain, newest().get(domain, 0)))
    least = known.least_inputs if known else 0
    while len(node.input) > least and not node.input[-1]:
        del node.input[-1]
    count = len(node.output)
    while count > 1 and not node.output[count - 1] and _may_be_absent(known, count - 1):
        count -= 1
    if count == 1 or (domain, node.op_type) != ALL_OR_ONE:
        del node.output[count:]


def _may_be_absent(known: Signature | None, index: int) -> bool:
    return known is None or (index < len(known.outputs) and known.outputs[index].option == "optional")
