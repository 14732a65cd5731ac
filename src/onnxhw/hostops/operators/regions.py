"""MaxRoiPool: the maximum of each cell of a grid over a region of an image."""

from collections.abc import Sequence

import numpy as np

from .adapter import Array, HostOp

F = np.float32


def max_roi_pool(x: Array, rois: Array, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Array:
    """``(regions, channels, *pooled_shape)``: each region ``batch, x1, y1, x2, y2``, in pixels after `spatial_scale`.

    The operator's text leaves the arithmetic open; it is onnxruntime's, which is that of Fast R-CNN: corners are
    rounded and belong to the region, cells reach from the floor to the ceiling of their part of it, and one that lies
    wholly outside of the image is 0. ValueError for a region of an image that there is not.
    """
    size = x.shape[2:]
    result = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for number, (batch, *corners) in enumerate(rois):
        if not 0 <= batch < len(x):
            raise ValueError(f"region {number} is of image {int(batch)} of {len(x)}")
        scaled = np.asarray(corners, F) * F(spatial_scale)
        left, top, right, bottom = np.trunc(scaled + np.copysign(F(0.5), scaled)).astype(np.int64)
        rows = _cells(int(top), int(bottom), pooled_shape[0], size[0])
        columns = _cells(int(left), int(right), pooled_shape[1], size[1])
        for row, (up, down) in enumerate(rows):
            for column, (start, end) in enumerate(columns):
                if up < down and start < end:
                    result[number, :, row, column] = x[int(batch), :, up:down, start:end].max((1, 2))
    return result


def _cells(first: int, last: int, count: int, size: int) -> list[tuple[int, int]]:
    """The pixels of each of `count` cells from `first` to `last`, within the image."""
    step = F(max(last - first + 1, 1)) / F(count)
    ends = [(int(np.floor(F(cell) * step)), int(np.ceil(F(cell + 1) * step))) for cell in range(count)]
    return [(min(max(start + first, 0), size), min(max(end + first, 0), size)) for start, end in ends]


OPERATORS = (HostOp("", "MaxRoiPool", max_roi_pool),)
