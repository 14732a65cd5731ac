"""`verify`: is a graph what the rest of the compiler relies on?"""

from math import inf, isfinite

from ..errors import InternalError
from .graph import Graph, Op, Tensor


def verify(graph: Graph) -> None:
    """Raise `InternalError` E1301 (names, order) or E1302 (shapes, values) unless the graph is consistent.

    Needs nothing. Holds afterwards: every tensor is made exactly once, before it is used; shapes,
    scales and constants agree with each operation's definition; ports name tensors that exist.
    """
    for name, tensor in graph.tensors.items():
        _tensor(name, tensor)
    made: set[str] = set()
    for port in graph.inputs:
        _order(port.tensor in graph.tensors, port.name, "input tensor {!r} does not exist", port.tensor)
        _order(port.tensor not in made, port.name, "tensor {!r} has two input ports", port.tensor)
        made.add(port.tensor)
    names: set[str] = set()
    for op in graph.ops:
        placed = op.output in graph.tensors and op.output not in made and made.issuperset(op.inputs)
        if op.name in names or not placed:
            _disorder(op, graph, made, names)
        names.add(op.name)
        made.add(op.output)
        op.check(graph.operands(op), graph.tensors[op.output])
    if unmade := graph.tensors.keys() - made:
        raise InternalError("E1301", "tensor is never made", where=min(unmade))
    for port in graph.outputs:
        _order(port.tensor in made, port.name, "output tensor {!r} is never made", port.tensor)


def _order(holds: bool, where: str, what: str, *values: object) -> None:
    """E1301 unless it holds; `what` is only formatted then, for that takes longer than to look."""
    if not holds:
        raise InternalError("E1301", what.format(*values), where=where)


def _disorder(op: Op, graph: Graph, made: set[str], names: set[str]) -> None:
    """E1301 for an operation that is not in order."""
    _order(op.name not in names, op.name, "two operations have this name")
    for name in op.inputs:
        _order(name in made, op.name, "operand {!r} is not made before it is used", name)
    _order(op.output in graph.tensors, op.name, "result {!r} does not exist", op.output)
    _order(op.output not in made, op.name, "tensor {!r} is made twice", op.output)


def _shape(holds: bool, where: str, what: str, *values: object) -> None:
    """E1302 unless it holds."""
    if not holds:
        raise InternalError("E1302", what.format(*values), where=where)


def _tensor(name: str, tensor: Tensor) -> None:
    shape, usual = tensor.shape, name == tensor.name and -128 <= tensor.zero_point <= 127
    if usual and len(shape) == 4 and shape[0] == 1 and min(shape) >= 1 and 0 < tensor.scale < inf:
        return
    _order(name == tensor.name, name, "tensor is listed under another name than its own, {!r}", tensor.name)
    _shape(len(shape) == 4 and shape[0] == 1 and min(shape) >= 1, name, "shape must be (1, C, H, W), not {}", shape)
    _shape(isfinite(tensor.scale) and tensor.scale > 0, name, "scale must be finite and positive, not {}", tensor.scale)
    _shape(-128 <= tensor.zero_point <= 127, name, "zero point must be -128..127, not {}", tensor.zero_point)
