"""`verify`: is a graph what the rest of the compiler relies on?"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite, prod

import numpy as np

from ..errors import InternalError
from .graph import Add, AveragePool, Concat, Conv, Copy, Graph, MatMul, MaxPool, Mul, Op, Piece, Reshape, Table, Tensor

INT8, INT32, FLOAT32 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32)
"""Types, as arrays have them: quicker to compare."""


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
        _CHECKS[type(op)](op, [graph.tensors[name] for name in op.inputs], graph.tensors[op.output])
    if unmade := graph.tensors.keys() - made:
        raise InternalError("E1301", "tensor is never made", where=min(unmade))
    for port in graph.outputs:
        _order(port.tensor in made, port.name, "output tensor {!r} is never made", port.tensor)


def window_size(size: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """Number of positions of a window of `kernel` taps along an axis of `size` elements."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


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


def _bounds(op: Op, lo: int, hi: int) -> None:
    _shape(-128 <= lo <= hi <= 127, op.name, "lo..hi must be a range inside -128..127, not {}..{}", lo, hi)


def _count(op: Op, inputs: list[Tensor], wanted: int) -> None:
    _shape(len(inputs) == wanted, op.name, "must have {} operands, not {}", wanted, len(inputs))


def _windows(op: Conv | MaxPool | AveragePool, kernel: tuple[int, int], x: Tensor, y: Tensor) -> None:
    top, left, bottom, right = op.pads
    _shape(min(*op.strides, *op.dilations, *kernel) >= 1, op.name, "window is not positive")
    left_out = max(0, -top) + max(0, -bottom) < x.height and max(0, -left) + max(0, -right) < x.width
    _shape(left_out, op.name, "pads {} leave nothing of the input", op.pads)
    height = window_size(x.height, top, bottom, kernel[0], op.strides[0], op.dilations[0])
    width = window_size(x.width, left, right, kernel[1], op.strides[1], op.dilations[1])
    _shape((height, width) == y.shape[2:], op.name, "result must be {} x {}, not {} x {}", height, width, *y.shape[2:])


def _conv(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, Conv)
    _count(op, inputs, 1)
    weight = op.weight
    whole = weight.dtype == INT8 and weight.ndim == 4
    _shape(whole, op.name, "weights must be int8 of rank 4, not {}", weight.dtype)
    _shape(
        op.groups >= 1 and weight.shape[0] % op.groups == 0, op.name, "groups {} do not divide the outputs", op.groups
    )
    channels = weight.shape[1] * op.groups
    _shape(channels == inputs[0].channels, op.name, "weights take {} channels, not {}", channels, inputs[0].channels)
    _shape(weight.shape[0] == y.channels, op.name, "weights make {} channels, not {}", weight.shape[0], y.channels)
    _shape(op.bias.dtype == INT32 and op.bias.shape == weight.shape[:1], op.name, "bias must be int32 [O]")
    scales = op.multiplier
    _shape(scales.dtype == FLOAT32 and scales.shape == weight.shape[:1], op.name, "multiplier must be float32 [O]")
    _shape(_positive(scales.tobytes()), op.name, "multipliers must be finite and positive")
    _windows(op, (weight.shape[2], weight.shape[3]), inputs[0], y)
    _bounds(op, op.lo, op.hi)


@lru_cache(maxsize=256)
def _positive(scales: bytes) -> bool:
    """Are these float32 finite and positive? Operations that are alike have the same."""
    values = np.frombuffer(scales, np.float32)
    return bool((np.isfinite(values) & (values > 0)).all())


def _add(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, Add)
    _count(op, inputs, 2)
    _shape(inputs[0].shape == inputs[1].shape == y.shape, op.name, "operands and result must have one shape")
    _shape(
        isfinite(op.ratio_a) and isfinite(op.ratio_b) and min(op.ratio_a, op.ratio_b) > 0,
        op.name,
        "ratio must be positive",
    )
    _bounds(op, op.lo, op.hi)


def _mul(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, Mul)
    _count(op, inputs, 2)
    for x in inputs:
        fits = x.shape == y.shape or x.shape == (1, y.channels, 1, 1)
        _shape(fits, op.name, "operand of shape {} does not broadcast to {}", x.shape, y.shape)
    _shape(isfinite(op.ratio) and op.ratio > 0, op.name, "ratio must be positive")
    _bounds(op, op.lo, op.hi)


def _mat_mul(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, MatMul)
    _count(op, inputs, 2)
    (m, k), (rows, n) = (
        x.shape[2:][:: -1 if turned else 1]
        for x, turned in zip(inputs, (op.transposed_a, op.transposed_b), strict=True)
    )
    _shape(k == rows, op.name, "a row of {} does not fit a column of {}", k, rows)
    _shape((m, n) == y.shape[2:], op.name, "result must be {} x {}, not {} x {}", m, n, y.height, y.width)
    _shape(all(x.channels == y.channels for x in inputs), op.name, "operands must have the result's channels")
    _shape(isfinite(op.multiplier) and op.multiplier > 0, op.name, "multiplier must be positive")
    _bounds(op, op.lo, op.hi)


def _max_pool(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, MaxPool)
    _count(op, inputs, 1)
    _same_scale(op, inputs, y)
    _shape(inputs[0].channels == y.channels, op.name, "pooling keeps the channels")
    _windows(op, op.kernel, inputs[0], y)


def _average_pool(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, AveragePool)
    _count(op, inputs, 1)
    _shape(inputs[0].channels == y.channels, op.name, "pooling keeps the channels")
    _shape(isfinite(op.ratio) and op.ratio > 0, op.name, "ratio must be positive")
    _windows(op, op.kernel, inputs[0], y)
    _bounds(op, op.lo, op.hi)


def _table(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, Table)
    _count(op, inputs, 1)
    _shape(op.table.shape == (256,) and op.table.dtype == np.int8, op.name, "table must be int8 [256]")
    _shape(inputs[0].shape == y.shape, op.name, "a table keeps the shape")


def _concat(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    _shape(len(inputs) >= 1, op.name, "must have an operand")
    _same_scale(op, inputs, y)
    _shape(sum(x.channels for x in inputs) == y.channels, op.name, "channels of the operands do not add up")
    _shape(all(x.shape[2:] == y.shape[2:] for x in inputs), op.name, "operands must have the result's height and width")


def _reshape(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    _count(op, inputs, 1)
    _same_scale(op, inputs, y)
    _shape(prod(inputs[0].shape) == prod(y.shape), op.name, "must keep the number of elements")


def _copy(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    assert isinstance(op, Copy)
    _shape(len(inputs) >= 1, op.name, "must have an operand")
    _same_scale(op, inputs, y)
    _shape(all(x.channels == y.channels for x in inputs), op.name, "operands must have the result's channels")
    _shape(-128 <= op.fill <= 127, op.name, "fill must be -128..127, not {}", op.fill)
    wrong = _misplaced(op.pieces, tuple(x.height * x.width for x in inputs), (y.height, y.width))
    _shape(not wrong, op.name, "{}", wrong)


@lru_cache(maxsize=1024)
def _misplaced(pieces: tuple[Piece, ...], pixels: tuple[int, ...], size: tuple[int, int]) -> str:
    """What is wrong with pieces of operands of so many `pixels` each in a result of this size; "" if nothing is."""
    written = np.zeros(size, np.int64)
    for piece in pieces:
        if not 0 <= piece.source < len(pixels):
            return f"{piece} is of no operand"
        if min(piece.rows, piece.cols, piece.dy, piece.dx) < 1:
            return f"{piece} is not a grid"
        ends = piece.y + (piece.rows - 1) * piece.dy, piece.x + (piece.cols - 1) * piece.dx
        if min(piece.y, piece.x) < 0 or ends[0] >= size[0] or ends[1] >= size[1]:
            return f"{piece} leaves the result"
        down, across = (0, (piece.rows - 1) * piece.row), (0, (piece.cols - 1) * piece.col)
        corners = [piece.start + i + j for i in down for j in across]
        if min(corners) < 0 or max(corners) >= pixels[piece.source]:
            return f"{piece} leaves its operand"
        written[piece.y : ends[0] + 1 : piece.dy, piece.x : ends[1] + 1 : piece.dx] += 1
    return "two pieces write one pixel" if int(written.max()) > 1 else ""


def _same_scale(op: Op, inputs: list[Tensor], y: Tensor) -> None:
    same = all((x.scale, x.zero_point) == (y.scale, y.zero_point) for x in inputs)
    _shape(same, op.name, "operands must have the result's scale and zero point")


_CHECKS: dict[type[Op], Callable[[Op, list[Tensor], Tensor], None]] = {
    Conv: _conv,
    Add: _add,
    Mul: _mul,
    MatMul: _mat_mul,
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    Table: _table,
    Concat: _concat,
    Reshape: _reshape,
    Copy: _copy,
}
