"""Sliding windows over any number of spatial axes, and convolution by them."""

from collections.abc import Sequence

import numpy as np

from ...onnxmodel.pooling import resolve_pads
from .adapter import Array


def windows(x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """View ``[N, C, *out, *kernel]`` of ``x[N, C, *in]``."""
    axes = tuple(range(2, x.ndim))
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(kernel, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axis=axes)
    steps = [slice(None, None, stride) for stride in strides]
    taps = [slice(None, None, dilation) for dilation in dilations]
    return np.asarray(view[(slice(None), slice(None), *steps, *taps)])


def convolve(
    x: Array,
    w: Array,
    group: int = 1,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    pads: Sequence[int] | None = None,
) -> Array:
    """Convolution ``[N, M, *out]`` of ``x[N, C, *in]`` with ``w[M, C / group, *kernel]``, padded with zeros.

    The sums are matrix products in the operands' own type; float64 is exact for integers below 2^53.
    """
    spatial, kernel = x.ndim - 2, w.shape[2:]
    if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        raise ValueError(f"{x.shape[1]} channels and weights {w.shape} do not make {group} groups")
    strides, dilations = strides or [1] * spatial, dilations or [1] * spatial
    around = resolve_pads(x.shape[2:], kernel, strides, dilations, auto_pad, pads)
    view = windows(np.pad(x, [(0, 0), (0, 0), *around]), kernel, strides, dilations)
    out, taps = view.shape[2 : 2 + spatial], int(np.prod(kernel)) * w.shape[1]
    grouped = view.reshape(x.shape[0], group, w.shape[1], *out, *kernel)
    columns = np.moveaxis(grouped, 2, 2 + spatial).reshape(x.shape[0], group, int(np.prod(out)), taps)
    matrices = w.reshape(group, w.shape[0] // group, taps).transpose(0, 2, 1)
    return np.asarray((columns @ matrices).swapaxes(2, 3).reshape(x.shape[0], w.shape[0], *out))
