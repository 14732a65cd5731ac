"""MaxPool, AveragePool and LpPool over any number of spatial axes, by windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .adapter import HostOp
from .windows import Pads, resolve_pads, windows

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Pool:
    """The attributes of a pooling node."""

    kernel_shape: Sequence[int]
    strides: Sequence[int] = ()
    pads: Sequence[int] | None = None
    dilations: Sequence[int] = ()
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0

    @property
    def steps(self) -> list[int]:
        """Strides, 1 by default."""
        return list(self.strides) or [1] * len(self.kernel_shape)

    @property
    def spread(self) -> list[int]:
        """Dilations, 1 by default."""
        return list(self.dilations) or [1] * len(self.kernel_shape)

    def around(self, sizes: Sequence[int]) -> tuple[Pads, Pads]:
        """Padding of the spatial axes, and how far the last windows of `ceil_mode` reach beyond it.

        A last window that would start behind the input and its padding in front is not made.
        """
        pads = resolve_pads(sizes, self.kernel_shape, self.steps, self.spread, self.auto_pad, self.pads)
        beyond: Pads = []
        for size, (before, after), kernel, step, dilation in zip(
            sizes, pads, self.kernel_shape, self.steps, self.spread, strict=True
        ):
            span = (kernel - 1) * dilation + 1
            rest = size + before + after - span
            if rest < 0:
                raise ValueError(f"a window of {span} does not fit into {size + before + after}")
            extra = -rest % step if self.ceil_mode and self.auto_pad in ("NOTSET", "VALID") else 0
            if extra and (-(-rest // step)) * step >= size + before:
                extra = 0
            beyond.append((0, extra))
        return pads, beyond

    def view(self, x: Array, fill: Any) -> Array:
        """Windows of `x`, padded with `fill`; a tap outside of input, padding and `fill` cannot be reached."""
        pads, beyond = self.around(x.shape[2:])
        total = [(a + c, b + d) for (a, b), (c, d) in zip(pads, beyond, strict=True)]
        padded = np.pad(x, [(0, 0), (0, 0), *total], constant_values=fill)
        return windows(padded, self.kernel_shape, self.steps, self.spread)


def max_pool(x: Array, storage_order: int = 0, **attributes: Any) -> tuple[Array, Array]:
    """The maximum of each window, and its index in the flattened input (columns first if `storage_order`)."""
    pool = Pool(**attributes)
    out = x.ndim - 2
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    view = pool.view(x, lowest)
    flat = view.reshape(*view.shape[: 2 + out], -1)
    order = np.arange(x.size).reshape(x.shape)
    if storage_order:
        order = np.arange(x.size).reshape(*x.shape[:2], *x.shape[:1:-1]).transpose(0, 1, *range(x.ndim - 1, 1, -1))
    positions = pool.view(order, -1).reshape(flat.shape)
    inside = positions >= 0
    best = np.where(inside, flat, lowest).argmax(-1)[..., None]
    best = np.where(np.take_along_axis(inside, best, -1), best, inside.argmax(-1)[..., None])  # where all are lowest
    return np.take_along_axis(flat, best, -1)[..., 0], np.take_along_axis(positions, best, -1)[..., 0]


def average_pool(x: Array, count_include_pad: int = 0, **attributes: Any) -> Array:
    """The mean of each window, summed in float64: over the input alone, or over its padding as well."""
    pool = Pool(**attributes)
    taps = tuple(range(-len(pool.kernel_shape), 0))
    pads, beyond = pool.around(x.shape[2:])
    ones = np.ones((1, 1, *x.shape[2:]))
    inside = np.pad(ones, [(0, 0), (0, 0), *pads], constant_values=1.0 if count_include_pad else 0.0)
    inside = np.pad(inside, [(0, 0), (0, 0), *beyond])
    counts = windows(inside, pool.kernel_shape, pool.steps, pool.spread).sum(taps)
    return np.asarray((pool.view(x.astype(np.float64), 0.0).sum(taps) / counts).astype(x.dtype))


def lp_pool(x: Array, p: int = 2, **attributes: Any) -> Array:
    """LpPool: the p-th root of the sum of ``|x| ** p`` in each window; padding adds nothing."""
    pool = Pool(**attributes)
    taps = tuple(range(-len(pool.kernel_shape), 0))
    powers = np.abs(x.astype(np.float64)) ** p
    return np.asarray((pool.view(powers, 0.0).sum(taps) ** (1 / p)).astype(x.dtype))


def global_max(x: Array) -> Array:
    """GlobalMaxPool: the maximum over all axes behind the channels, however many; onnx's reference takes two."""
    return np.asarray(x.max(axis=tuple(range(2, x.ndim)), keepdims=True))


OPERATORS = (
    HostOp("", "GlobalMaxPool", global_max),
    HostOp("", "MaxPool", max_pool),
    HostOp("", "AveragePool", average_pool),
    HostOp("", "LpPool", lp_pool, since=2),
)
