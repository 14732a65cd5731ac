"""Each IR operation on int8 arrays ``[N, C, H, W]``, in exact integers.

A function takes the operation, its input arrays, the input tensors and the result tensor, and returns
the result's int64 values in -128..127. All arithmetic that rounds is `onnxhw.fixed`'s.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .. import fixed
from ..ir.graph import Add, Array8, AveragePool, Concat, Conv, Copy, MatMul, MaxPool, Mul, Op, Reshape, Table, Tensor
from .windows import taps

Ints = npt.NDArray[np.int64]


def centred(x: Array8, tensor: Tensor) -> Ints:
    """The values less their zero point."""
    return x.astype(np.int64) - tensor.zero_point


def accumulate(op: Conv, x: Array8, tensor: Tensor) -> Ints:
    """The sums of a convolution, without bias: int64 ``[N, O, OH, OW]``.

    Computed in floating point of a width in which every partial sum is exact, for the sake of BLAS.
    """
    reach = 128 + abs(tensor.zero_point)
    bound = int(np.abs(op.weight.astype(np.int64)).sum(axis=(1, 2, 3)).max()) * reach
    real: type[np.floating] = np.float32 if bound < 1 << 24 else np.float64
    outputs, depth, height, width = op.weight.shape
    weight = op.weight.astype(real).reshape(op.groups, outputs // op.groups, depth, height, width)
    values = x.astype(real) - real(tensor.zero_point)
    total: npt.NDArray[np.floating] | None = None
    for kh, kw, seen in taps(values, (height, width), op.strides, op.dilations, op.pads, 0):
        n, _, rows, cols = seen.shape
        pixels = seen.reshape(n, op.groups, depth, rows * cols)
        tap = weight[:, :, :, kh, kw]
        part = tap * pixels if depth == 1 else tap @ pixels
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(n, outputs, rows, cols).astype(np.int64)


def conv(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Conv`."""
    assert isinstance(op, Conv)
    sums = accumulate(op, arrays[0], inputs[0]) + op.bias.astype(np.int64)[:, None, None]
    return fixed.requantize(sums, op.multiplier[:, None, None], y.zero_point, op.lo, op.hi)


def add(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Add`."""
    assert isinstance(op, Add)
    a, b = (centred(x, tensor) for x, tensor in zip(arrays, inputs, strict=True))
    return fixed.add(a, b, op.ratio_a, op.ratio_b, y.zero_point, op.lo, op.hi)


def mul(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Mul`."""
    assert isinstance(op, Mul)
    a, b = (centred(x, tensor) for x, tensor in zip(arrays, inputs, strict=True))
    return fixed.multiply(a, b, op.ratio, y.zero_point, op.lo, op.hi)


def mat_mul(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`MatMul`."""
    assert isinstance(op, MatMul)
    a, b = (centred(x, tensor) for x, tensor in zip(arrays, inputs, strict=True))
    a, b = (x.swapaxes(2, 3) if turned else x for x, turned in ((a, op.transposed_a), (b, op.transposed_b)))
    return fixed.requantize(a @ b, op.multiplier, y.zero_point, op.lo, op.hi)


def max_pool(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`MaxPool`: the padding holds the smallest int8, which never wins against an element."""
    assert isinstance(op, MaxPool)
    best: npt.NDArray[np.generic] | None = None
    for _, _, seen in taps(arrays[0], op.kernel, op.strides, op.dilations, op.pads, -128):
        best = seen if best is None else np.maximum(best, seen)
    assert best is not None
    return best.astype(np.int64)


def average_pool(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`AveragePool`: windows are taken in groups of equal divisor."""
    assert isinstance(op, AveragePool)
    x = centred(arrays[0], inputs[0])
    sums = sum_of_taps(op, x)
    ones = np.ones((1, 1, *x.shape[2:]), np.int64)
    counts = sum_of_taps(op, ones)[0, 0]
    if op.count_pad:
        counts = np.full_like(counts, op.kernel[0] * op.kernel[1])
    out = np.empty_like(sums)
    for count in np.unique(counts):
        where = counts == count
        out[:, :, where] = fixed.average(sums[:, :, where], op.ratio, int(count), y.zero_point, op.lo, op.hi)
    return out


def sum_of_taps(op: AveragePool, x: Ints) -> Ints:
    """The sum over each window, padding counting as zeros."""
    total: Ints | None = None
    for _, _, seen in taps(x, op.kernel, op.strides, op.dilations, op.pads, 0):
        total = seen.astype(np.int64) if total is None else total + seen.astype(np.int64)
    assert total is not None
    return total


def table(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Table`."""
    assert isinstance(op, Table)
    return op.table[arrays[0].astype(np.int64) + 128].astype(np.int64)


def concat(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Concat`."""
    return np.concatenate(arrays, axis=1).astype(np.int64)


def reshape(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Reshape`."""
    return arrays[0].reshape(len(arrays[0]), *y.shape[1:]).astype(np.int64)


def copy(op: Op, arrays: list[Array8], inputs: list[Tensor], y: Tensor) -> Ints:
    """`Copy`: every pixel is looked up by its number; the last one stands for `fill`."""
    assert isinstance(op, Copy)
    pixels = [x.reshape(*x.shape[:2], -1) for x in arrays]
    fill = np.full((*arrays[0].shape[:2], 1), op.fill, np.int8)
    return np.concatenate([*pixels, fill], axis=2)[:, :, op.index(inputs, y)].astype(np.int64)


OPS: dict[type[Op], Callable[[Op, list[Array8], list[Tensor], Tensor], Ints]] = {
    Conv: conv,
    Add: add,
    Mul: mul,
    MatMul: mat_mul,
    MaxPool: max_pool,
    AveragePool: average_pool,
    Table: table,
    Concat: concat,
    Reshape: reshape,
    Copy: copy,
}
"""The function of each operation."""
