"""Sliding windows over NCHW arrays: the loop over taps that convolution and pooling share."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..ir.verify import window_size


def taps(
    x: npt.NDArray[np.generic],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    fill: float,
) -> Iterator[tuple[int, int, npt.NDArray[np.generic]]]:
    """For each tap ``(kh, kw)`` the view ``[N, C, OH, OW]`` of what it meets, `fill` in the padding."""
    height, width = x.shape[2:]
    x = x[:, :, max(0, -pads[0]) : height + min(0, pads[2]), max(0, -pads[1]) : width + min(0, pads[3])]
    top, left, bottom, right = (max(0, pad) for pad in pads)
    if max(pads) > 0:
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    rows = window_size(x.shape[2], 0, 0, kernel[0], strides[0], dilations[0])
    cols = window_size(x.shape[3], 0, 0, kernel[1], strides[1], dilations[1])
    for kh in range(kernel[0]):
        for kw in range(kernel[1]):
            y0, x0 = kh * dilations[0], kw * dilations[1]
            y1, x1 = y0 + (rows - 1) * strides[0] + 1, x0 + (cols - 1) * strides[1] + 1
            yield kh, kw, x[:, :, y0 : y1 : strides[0], x0 : x1 : strides[1]]
