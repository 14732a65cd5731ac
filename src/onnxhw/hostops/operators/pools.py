"""MaxPool, AveragePool and LpPool over any number of spatial axes, by windows."""

from typing import Any

import numpy as np

from ...onnxmodel.pooling import PoolAttributes
from .adapter import Array, HostOp
from .windows import windows


def view(pool: PoolAttributes, x: Array, fill: Any) -> Array:
    """Windows of `x`, padded with `fill`; a tap outside of input, padding and `fill` cannot be reached."""
    pads, beyond = pool.around(x.shape[2:])
    total = [(a + c, b + d) for (a, b), (c, d) in zip(pads, beyond, strict=True)]
    padded = np.pad(x, [(0, 0), (0, 0), *total], constant_values=fill)
    return windows(padded, pool.kernel_shape, pool.steps, pool.spread)


def max_pool(x: Array, storage_order: int = 0, **attributes: Any) -> tuple[Array, Array]:
    """The maximum of each window, and its index in the flattened input (columns first if `storage_order`)."""
    pool = PoolAttributes(**attributes)
    out = x.ndim - 2
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    seen = view(pool, x, lowest)
    flat = seen.reshape(*seen.shape[: 2 + out], -1)
    order = np.arange(x.size).reshape(x.shape)
    if storage_order:
        order = np.arange(x.size).reshape(*x.shape[:2], *x.shape[:1:-1]).transpose(0, 1, *range(x.ndim - 1, 1, -1))
    positions = view(pool, order, -1).reshape(flat.shape)
    inside = positions >= 0
    best = np.where(inside, flat, lowest).argmax(-1)[..., None]
    best = np.where(np.take_along_axis(inside, best, -1), best, inside.argmax(-1)[..., None])  # where all are lowest
    return np.take_along_axis(flat, best, -1)[..., 0], np.take_along_axis(positions, best, -1)[..., 0]


def average_pool(x: Array, count_include_pad: int = 0, **attributes: Any) -> Array:
    """The mean of each window, summed in float64: over the input alone, or over its padding as well."""
    pool = PoolAttributes(**attributes)
    taps = tuple(range(-len(pool.kernel_shape), 0))
    pads, beyond = pool.around(x.shape[2:])
    ones = np.ones((1, 1, *x.shape[2:]))
    inside = np.pad(ones, [(0, 0), (0, 0), *pads], constant_values=1.0 if count_include_pad else 0.0)
    inside = np.pad(inside, [(0, 0), (0, 0), *beyond])
    counts = windows(inside, pool.kernel_shape, pool.steps, pool.spread).sum(taps)
    return np.asarray((view(pool, x.astype(np.float64), 0.0).sum(taps) / counts).astype(x.dtype))


def lp_pool(x: Array, p: int = 2, **attributes: Any) -> Array:
    """LpPool: the p-th root of the sum of ``|x| ** p`` in each window; padding adds nothing."""
    pool = PoolAttributes(**attributes)
    taps = tuple(range(-len(pool.kernel_shape), 0))
    powers = np.abs(x.astype(np.float64)) ** p
    return np.asarray((view(pool, powers, 0.0).sum(taps) ** (1 / p)).astype(x.dtype))


def global_max(x: Array) -> Array:
    """GlobalMaxPool: the maximum over all axes behind the channels, however many; onnx's reference takes two."""
    return np.asarray(x.max(axis=tuple(range(2, x.ndim)), keepdims=True))


OPERATORS = (
    HostOp("", "GlobalMaxPool", global_max),
    HostOp("", "MaxPool", max_pool),
    HostOp("", "AveragePool", average_pool),
    HostOp("", "LpPool", lp_pool, since=2),
)
