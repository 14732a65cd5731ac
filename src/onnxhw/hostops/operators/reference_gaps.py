"""Operators that the reference lacks or has in their newest form only, and the maps of ai.onnx.ml."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.ops.op_grid_sample import GridSample
from onnx.reference.ops.op_roi_align import RoiAlign

from .adapter import Array, HostOp, reference


def scatter(data: Array, indices: Array, updates: Array, axis: int = 0) -> Array:
    """Scatter of operator sets 9 and 10, renamed ScatterElements later."""
    result = data.copy()
    np.put_along_axis(result, np.where(indices < 0, indices + data.shape[axis], indices), updates, axis)
    return result


def upsample(x: Array, scales: Array | None = None, mode: str = "nearest", **attributes: Any) -> Array:
    """Upsample, and Resize of operator set 10: output pixel i is input position ``i / scale``.

    `nearest` takes its floor, `linear` interpolates between both neighbours. The first version has scales as attribute.
    """
    factors = np.asarray(attributes["scales"] if scales is None else scales, np.float32)
    if len(factors) != x.ndim:
        raise ValueError(f"{len(factors)} scales for {x.ndim} axes")
    if mode not in ("nearest", "linear", "bilinear"):
        raise ValueError(f"mode {mode!r} is unknown")
    if mode == "nearest" and (factors < 1).any():
        raise NotImplementedError("which pixel is nearest when shrinking is not defined before operator set 11")
    for axis, factor in enumerate(factors):
        if factor == 1:
            continue
        size = x.shape[axis]
        position = np.arange(int(np.floor(np.float32(size) * factor)), dtype=np.float32) / factor
        low = np.clip(np.floor(position).astype(np.int64), 0, size - 1)
        if mode == "nearest":
            x = np.take(x, low, axis)
            continue
        high = np.minimum(low + 1, size - 1)
        share = (position - low).astype(np.float32).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        x = (np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share).astype(x.dtype)
    return x


def roi_align(x: Array, rois: Array, batches: Array, **attributes: Any) -> Array:
    """RoiAlign before operator set 16: without the shift by half a pixel."""
    mode = "output_half_pixel"
    return np.asarray(
        reference(RoiAlign, "RoiAlign", x, rois, batches, coordinate_transformation_mode=mode, **attributes)
    )


def grid_sample(x: Array, grid: Array, mode: str = "bilinear", **attributes: Any) -> Array:
    """`grid_sample` before operator set 20, which renamed the modes."""
    modes = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    if mode not in modes:
        raise ValueError(f"mode {mode!r} is unknown")
    return grid_sample_20(x, grid, mode=modes[mode], **attributes)


def grid_sample_20(x: Array, grid: Array, **attributes: Any) -> Array:
    """GridSample in float64, of integers cut off: the reference rounds weights and places to the type of `x`."""
    wide = x.astype(np.float64), grid.astype(np.float64)
    return np.asarray(reference(GridSample, "GridSample", *wide, **attributes)).astype(x.dtype)


def one_hot(indices: Array, depth: Array, values: Array, axis: int = -1) -> Array:
    """OneHot: negative indices count from the end; those out of range give only the off value."""
    size = int(np.asarray(depth).reshape(-1)[0])
    whole = np.asarray(indices).astype(np.int64)
    position = np.where(whole < 0, whole + size, whole)
    hot = np.moveaxis(position[..., None] == np.arange(size), -1, axis)
    return np.asarray(np.where(hot, values[1], values[0]))


def lp_normalization(x: Array, axis: int = -1, p: int = 2) -> Array:
    """``x`` over its p-norm along `axis`; 0 where that norm is 0."""
    norm = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)
    return np.asarray(np.divide(x, norm, out=np.zeros_like(x), where=norm != 0), x.dtype)


def lrn(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Array:
    """``x / (bias + alpha / size * sum of squares) ** beta``, the sum over `size` channels around each one."""
    before, after = (size - 1) // 2, size // 2
    squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (before, after)] + [(0, 0)] * (x.ndim - 2))
    sums = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(-1)
    return np.asarray((x / (bias + alpha / size * sums) ** beta).astype(x.dtype))


def global_lp_pool(x: Array, p: int = 2) -> Array:
    """The p-norm over all spatial axes."""
    axes = tuple(range(2, x.ndim))
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p), x.dtype)


def optional(value: Any = None, type: Any = None) -> Any:
    """Optional: the value itself, or None for the empty one."""
    return value


def zip_map(
    x: Array, classlabels_int64s: Sequence[int] | None = None, classlabels_strings: Sequence[str] | None = None
) -> list[dict[Any, np.float32]]:
    """ZipMap: one map from label to value for each row."""
    labels = classlabels_int64s or classlabels_strings
    rows = x.reshape(-1, x.shape[-1])
    if not labels or len(labels) != rows.shape[1]:
        raise ValueError(f"{len(labels or [])} labels for {rows.shape[1]} values")
    return [dict(zip(labels, map(np.float32, row), strict=True)) for row in rows]


def category_mapper(
    x: Array,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:
    """CategoryMapper: strings to integers, or integers to strings; unknown ones to the default."""
    pairs = list(itertools.zip_longest(cats_strings, cats_int64s))
    if x.dtype.kind in "iu":
        names = {number: string for string, number in pairs}
        return np.array([names.get(int(value), default_string) for value in x.reshape(-1)], object).reshape(x.shape)
    numbers = dict(pairs)
    found = [numbers.get(str(value), default_int64) for value in x.reshape(-1)]
    return np.array(found, np.int64).reshape(x.shape)


def cast_map(x: Mapping[int, Any], cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Array:
    """CastMap: the values of a map in the order of its keys (or at its keys, if SPARSE), as one row."""
    types: dict[str, Any] = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}
    row: list[Any] = [x[key] for key in sorted(x)]
    if map_form == "SPARSE":
        row = [x.get(key, "" if cast_to == "TO_STRING" else 0) for key in range(max_map)]
    if cast_to == "TO_STRING":
        return np.array([[str(value) for value in row]], object)
    return np.array([[float(value) for value in row]], np.float64).astype(types[cast_to])


def affine_grid(theta: Array, size: Array, align_corners: int = 0) -> Array:
    """AffineGrid in float64, of the type of `theta`; an aligned axis of one element is at -1."""

    def places(count: int) -> Array:
        return -1 + (2 * np.arange(count) / max(count - 1, 1) if align_corners else (2 * np.arange(count) + 1) / count)

    axes = np.meshgrid(*(places(int(count)) for count in np.ravel(size)[2:]), indexing="ij")
    base = np.stack([*axes[::-1], np.ones_like(axes[0])], -1)
    return np.asarray(np.einsum("...j,nij->n...i", base, theta.astype(np.float64)).astype(theta.dtype))


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
        scaled = np.asarray(corners, np.float32) * np.float32(spatial_scale)
        left, top, right, bottom = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int64)
        rows = _cells(int(top), int(bottom), pooled_shape[0], size[0])
        columns = _cells(int(left), int(right), pooled_shape[1], size[1])
        for row, (up, down) in enumerate(rows):
            for column, (start, end) in enumerate(columns):
                if up < down and start < end:
                    result[number, :, row, column] = x[int(batch), :, up:down, start:end].max((1, 2))
    return result


def _cells(first: int, last: int, count: int, size: int) -> list[tuple[int, int]]:
    """The pixels of each of `count` cells from `first` to `last`, within the image."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(count)
    cells = np.arange(count, dtype=np.float32)
    starts, ends = np.floor(cells * step).astype(int).tolist(), np.ceil((cells + 1) * step).astype(int).tolist()
    pairs = zip(starts, ends, strict=True)
    return [(min(max(start + first, 0), size), min(max(end + first, 0), size)) for start, end in pairs]


OPERATORS = (
    HostOp("", "MaxRoiPool", max_roi_pool),
    HostOp("", "Scatter", scatter, until=10),
    HostOp("", "Upsample", upsample, since=7, until=9),
    HostOp("", "Resize", upsample, until=10),
    HostOp("", "RoiAlign", roi_align, until=15),
    HostOp("", "GridSample", grid_sample, until=19),
    HostOp("", "GridSample", grid_sample_20, since=20),
    HostOp("", "AffineGrid", affine_grid),
    HostOp("", "OneHot", one_hot),
    HostOp("", "LRN", lrn),
    HostOp("", "LpNormalization", lp_normalization),
    HostOp("", "GlobalLpPool", global_lp_pool),
    HostOp("", "Optional", optional),
    HostOp("ai.onnx.ml", "ZipMap", zip_map),
    HostOp("ai.onnx.ml", "CategoryMapper", category_mapper),
    HostOp("ai.onnx.ml", "CastMap", cast_map),
)
