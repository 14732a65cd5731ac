"""Arithmetic of types that onnxruntime has no kernel for, or none that is safe."""

from collections.abc import Callable, Sequence

import numpy as np

from .adapter import Array, HostOp


def divide(a: Array, b: Array) -> Array:
    """Div: the quotient; of integers what remains is cut off, and the least by -1 is itself, as in two's complement.

    `ValueError` where an integer is divided by 0.
    """
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if not np.all(b):
        raise ValueError("an integer is divided by 0")
    down, rest = np.divmod(a, b)
    return np.asarray(down + ((rest != 0) & ((rest < 0) != (a < 0))).astype(a.dtype))


def _reduction(reduced: Callable[[Array, tuple[int, ...] | None, bool], Array]) -> Callable[..., Array]:
    """A reduction whose result is cut off to the operand's type."""

    def apply(
        x: Array, axes: Array | Sequence[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Array:
        over = None if axes is None or not len(axes) else tuple(int(axis) for axis in axes)
        if over is None and noop_with_empty_axes:
            over = ()
        return np.asarray(reduced(x, over, bool(keepdims))).astype(x.dtype)

    return apply


def _log_sum(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    return np.asarray(np.log(x.astype(np.float64).sum(axes, keepdims=keep)))


def _log_sum_exp(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    x = x.astype(np.float64)
    largest = x.max(axes, keepdims=True, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, 0)
    found = np.log(np.exp(x - largest).sum(axes, keepdims=True)) + largest
    return found if keep else np.asarray(found.reshape(x.sum(axes).shape))


def _sum_square(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    """A sum in the operand's own type, modulo its size for integers."""
    return np.asarray(np.square(x).sum(axes, dtype=x.dtype, keepdims=keep))


OPERATORS = (
    HostOp("", "Div", divide, since=7),
    HostOp("", "ReduceLogSum", _reduction(_log_sum)),
    HostOp("", "ReduceLogSumExp", _reduction(_log_sum_exp)),
    HostOp("", "ReduceSumSquare", _reduction(_sum_square)),
)
