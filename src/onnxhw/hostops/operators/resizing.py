"""Resize where onnx's reference lacks tf_half_pixel_for_nn (operator sets 11 and 12), or is wrong."""

from typing import Any

import numpy as np
from onnx.reference.ops.op_resize import Resize

from .adapter import Array, HostOp, reference


def _neighbours(places: Array, mode: str, nearest_mode: str, a: float) -> tuple[Array, Array]:
    """Indices and weights ``[out, taps]`` of the elements that are taken for each place; indices may be outside."""
    if mode == "nearest":
        if nearest_mode in ("floor", "ceil"):
            return (np.floor if nearest_mode == "floor" else np.ceil)(places)[:, None], np.ones((len(places), 1))
        up = nearest_mode == "round_prefer_ceil"
        return (np.floor(places + 0.5) if up else np.ceil(places - 0.5))[:, None], np.ones((len(places), 1))
    taps = np.arange(2) if mode == "linear" else np.arange(-1, 3)
    indices = np.floor(places)[:, None] + taps
    distance = np.abs(places[:, None] - indices)
    if mode == "linear":
        return indices, 1 - distance
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return indices, np.where(distance <= 1, near, far)


def referred(
    x: Array, roi: Array | None, scales: Array | None = None, sizes: Array | None = None, **attributes: Any
) -> Array:
    """Resize by onnx's reference, which takes -0.5 for 0 where a pytorch_half_pixel axis gets one element: such an axis
    is cut to its first element before. (With antialias others contribute, and the axis is left.)"""
    given = sizes if sizes is not None and np.size(sizes) else scales
    half = attributes.get("coordinate_transformation_mode") == "pytorch_half_pixel"
    stretched = attributes.get("keep_aspect_ratio_policy") in (None, "stretch")
    if given is not None and half and stretched and not attributes.get("antialias"):
        factors, whole = np.array(given), given is sizes
        for place, axis in enumerate(attributes.get("axes") or range(x.ndim)):
            if x.shape[axis] > 1 and (factors[place] if whole else int(x.shape[axis] * factors[place])) == 1:
                x, factors[place] = x.take([0], axis), 1
        scales, sizes = (scales, factors) if whole else (factors, sizes)
    return np.asarray(reference(Resize, "Resize", x, roi, scales, sizes, **attributes))


def resize(x: Array, roi: Array | None, scales: Array | None, sizes: Array | None = None, **attributes: Any) -> Array:
    """Resize of operator sets 11 and 12: with tf_half_pixel_for_nn element i is at ``(i + 0.5) / scale``.

    Axis by axis; one of scale 1 stays as it is. Integers are cut off, as onnxruntime does. Other coordinates are left
    to onnx's reference.
    """
    if attributes.get("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return referred(x, roi, scales, sizes, **attributes)
    own = np.array(x.shape)
    if sizes is not None and np.size(sizes):
        lengths, factors = np.ravel(sizes), np.ravel(sizes) / own
    else:
        factors = np.ravel(np.asarray(scales))
        lengths = np.floor(own * factors).astype(int)
    mode, nearest = attributes.get("mode", "nearest"), attributes.get("nearest_mode", "round_prefer_floor")
    found = x if mode == "nearest" else x.astype(np.float64)
    for axis, (size, factor, length) in enumerate(zip(x.shape, factors, lengths, strict=True)):
        if factor == 1:
            continue
        places = (np.arange(length) + 0.5) / factor
        indices, weights = _neighbours(places, mode, nearest, attributes.get("cubic_coeff_a", -0.75))
        if attributes.get("exclude_outside", 0):
            weights = weights * ((indices >= 0) & (indices < size))
            weights = weights / weights.sum(1, keepdims=True)
        taken = np.take(found, np.clip(indices, 0, size - 1).astype(int), axis=axis)
        if mode == "nearest":
            found = taken.squeeze(axis + 1)
        else:
            found = np.einsum("iojk,oj->iok", taken.reshape(-1, *weights.shape, int(np.prod(found.shape[axis + 1 :]))),
                              weights).reshape(*found.shape[:axis], length, *found.shape[axis + 1 :])  # fmt: skip
    return np.asarray(found.astype(x.dtype))


OPERATORS = (HostOp("", "Resize", resize, since=11, until=12), HostOp("", "Resize", referred, since=13))
