"""What passes ask an operation about its channels: which are constant, which may go, in which order the others lie."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..fixed import Ints
from .windows import Window, window_size

Mask = npt.NDArray[np.bool_]
"""Of each channel whether it is left out."""
Order = npt.NDArray[np.int64]
"""Which channels stay, in their order."""

VARIES = 1 << 16
"""In the place of the value of a channel that is not known to be constant."""


def constant_planes(planes: Ints) -> Ints:
    """Per row the value that all its elements have, else `VARIES`."""
    return np.where((planes == planes[:, :1]).all(1), planes[:, 0], VARIES)


def agree(masks: Sequence[Mask], sizes: Sequence[int], y: Mask) -> None:
    """Take back what is not left out on both sides of an operation whose result is its operands' elements, one operand
    after the other; `sizes`: the pixels of each."""
    elements = np.concatenate([np.repeat(mask, size) for mask, size in zip(masks, sizes, strict=True)])
    elements &= np.repeat(y, len(elements) // len(y))
    ends = np.cumsum([len(mask) * size for mask, size in zip(masks, sizes, strict=True)])
    for mask, mine in zip((*masks, y), (*np.split(elements, ends[:-1]), elements), strict=True):
        mask &= mine.reshape(len(mask), -1).all(1)


def spans_padding(window: Window, spatial: tuple[int, int]) -> Mask:
    """``[KH, KW]``: whether a tap lies in the padding at some position of the window."""
    seen = []
    for size, axis in zip(spatial, map(window.axis, (0, 1)), strict=True):
        before, _, kernel, stride, dilation = axis
        at = np.arange(window_size(size, *axis))[:, None] * stride - before + np.arange(kernel) * dilation
        seen.append(((at < 0) | (at >= size)).any(0))
    return np.logical_or.outer(*seen)
