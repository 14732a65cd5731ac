"""Resize and Upsample: to the nearest pixel, by which row and column each row and column of the result takes; linear
(`linear_resize`)."""

from math import prod
from typing import Any

import numpy as np

from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import Array, AxisMoves, Ints, QuantizedView, Value, form
from .arrange import MovementBuilder
from .linear_resize import linear_resize
from .movement import LARGEST, moved

EXACT = "use integer scales, or coordinate_transformation_mode asymmetric"


def resize(context: Context, node: Node) -> Value:
    """Resize, and Upsample, which it was before operator set 10."""
    found = node.attributes
    mode = found.get("mode", "nearest")
    if mode not in ("nearest", "linear", "bilinear"):
        raise BlockedError(f"mode {mode} computes new values", "modes nearest and linear are performed")
    value = context.required(node, 0)
    shape: Shape = value.shape or ()
    if found.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise BlockedError("keep_aspect_ratio_policy is not stretch", "give the sizes of all axes")
    recent = context.opset >= 11
    scales = context.constant(node, 2 if recent else 1)
    listed = list(found.get("scales", [])) if scales is None else scales.tolist()
    sizes = context.constant(node, 3) if recent else None
    axes = [int(axis) for axis in found.get("axes", range(len(shape)))]
    given = listed if sizes is None or listed else sizes.tolist()
    lined = all(values is None or values.ndim == 1 for values in (scales, sizes))
    if not lined or len(given) != len(axes) or any(not -len(shape) <= axis < len(shape) for axis in axes):
        raise BlockedError("its scales or sizes do not fit its axes")
    scaled, inferred = dict[int, tuple[int, np.float32]](), context.shapes.get(node.output[0])
    for number, axis in enumerate(axes):
        size = shape[axis]
        if listed:
            scale = np.float32(given[number])
            wanted = int(np.floor(size * scale))
        else:
            wanted = int(given[number])
            scale = np.float32(wanted / size)
        if wanted < 1 or not np.isfinite(scale) or (inferred is not None and wanted != inferred[axis]):
            raise BlockedError(f"its result has {wanted} elements on axis {axis}, onnx infers another number")
        scaled[axis % len(shape)] = wanted, scale
    if mode != "nearest":
        return _linear(context, node, value, scaled, recent)
    made = [scaled[axis][0] if axis in scaled else size for axis, size in enumerate(shape)]
    if max(prod(made[2:]), *made) > LARGEST:
        raise BlockedError(f"its result has more than {LARGEST} elements in a plane")
    maps = [np.arange(size) for size in shape]
    for axis, (wanted, scale) in scaled.items():
        maps[axis] = _nearest(shape[axis], wanted, scale, found, recent)
    return _taken(context, node, value, maps, node.output[0])


def _taken(context: Context, node: Node, value: Value, maps: list[Ints], output: str) -> Value:
    """The elements that `maps` choose along each axis."""
    if (planes := _planes(context, node, value, maps, output)) is not None:
        return planes
    shape = value.shape or ()
    if prod(len(chosen) for chosen in maps) > LARGEST:
        raise BlockedError(f"its result has more than {LARGEST} elements")
    index = np.arange(prod(shape)).reshape(shape)[np.ix_(*maps)]
    return moved(context, value, index, output, node.label)


def _planes(context: Context, node: Node, value: Value, maps: list[Ints], output: str) -> QuantizedView | None:
    """The rows and columns of a tensor in every channel alike, without a look at its elements; None where the channels
    move too, or elements of the tensor have moved already."""
    shape = value.shape or ()
    if not isinstance(value, QuantizedView) or value.moves.index is not None or len(shape) not in (3, 4):
        return None
    tensor = value.tensor
    alike = all(np.array_equal(chosen, np.arange(size)) for chosen, size in zip(maps[:2], shape, strict=False))
    if not alike or form(shape) != tensor.shape or not all(len(chosen) for chosen in maps):
        return None
    pixel = np.arange(prod(shape[2:])).reshape(shape[2:])[np.ix_(*maps[2:])]
    pixel = pixel.reshape(-1, pixel.shape[-1])
    builder = MovementBuilder(context, node.label, (tensor,), 0)
    made = builder.pixels([tensor], np.zeros_like(pixel), pixel, output)
    moves = AxisMoves.of(made.shape, (*shape[:2], *map(len, maps[2:])))
    return QuantizedView(made, moves, value.functions, value.unsigned)


def _linear(
    context: Context, node: Node, value: Value, scaled: dict[int, tuple[int, np.float32]], recent: bool
) -> Value:
    """Mode linear to multiples of the size, of all axes but the first two; a single row or column is repeated."""
    found, shape = node.attributes, value.shape or ()
    maps = [np.arange(size) for size in shape]
    for axis, (wanted, _) in scaled.items():
        if shape[axis] == 1 and wanted > 1 and axis > 1:
            maps[axis] = np.zeros(wanted, np.int64)
    repeated = tuple(len(chosen) for chosen in maps)
    if repeated != shape and prod(repeated) <= LARGEST:
        name = node.output[0] if all(repeated[axis] == scaled[axis][0] for axis in scaled) else f"{node.output[0]}.rows"
        value = _taken(context, node, value, maps, name)
        if name == node.output[0]:
            return value
        scaled = {axis: (wanted, scale) for axis, (wanted, scale) in scaled.items() if repeated[axis] == shape[axis]}
        shape = repeated
    factors = [1] * len(shape)
    for axis, (wanted, scale) in scaled.items():
        factors[axis] = wanted // shape[axis]
        if factors[axis] * shape[axis] != wanted or scale != factors[axis] or not factors[axis]:
            raise BlockedError(f"mode linear by {scale:g} on axis {axis}", "multiples of the size are performed")
    if max(factors[:2], default=1) > 1 or found.get("antialias", 0):
        raise BlockedError("mode linear of batch or channels, or with antialias", "height and width are performed")
    coordinates = found.get("coordinate_transformation_mode", "half_pixel" if recent else "asymmetric")
    return linear_resize(context, value, factors[2:], coordinates, node.output[0], node.label)


def _nearest(size: int, wanted: int, scale: np.float32, found: dict[str, Any], recent: bool) -> Ints:
    """Where each of `wanted` positions comes from; the same in float32 and in float64, or refused."""
    if wanted == size and scale == 1:
        return np.arange(size)
    modes = ("half_pixel", "round_prefer_floor") if recent else ("asymmetric", "floor")
    coordinates = found.get("coordinate_transformation_mode", modes[0])
    rounding = found.get("nearest_mode", modes[1])
    single, double = (
        _round(_original(np.arange(wanted, dtype=kind), size, wanted, kind(scale), coordinates), rounding)
        for kind in (np.float32, np.float64)
    )
    if not np.array_equal(single, double):
        raise BlockedError(f"rounding decides which pixel is nearest at scale {scale:g}", EXACT)
    return np.clip(single.astype(np.int64), 0, size - 1)


def _original(x: Array, size: int, wanted: int, scale: Any, mode: str) -> Array:
    """The coordinate in the input of each coordinate of the result."""
    half = x.dtype.type(0.5)
    if mode == "asymmetric":
        return np.asarray(x / scale)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and wanted > 1):
        return np.asarray((x + half) / scale - half)
    if mode == "pytorch_half_pixel":
        return np.zeros_like(x)
    if mode == "align_corners":
        return np.asarray(x * x.dtype.type(size - 1) / x.dtype.type(wanted - 1)) if wanted > 1 else np.zeros_like(x)
    if mode == "half_pixel_symmetric":
        adjustment = x.dtype.type(wanted) / (scale * x.dtype.type(size))
        offset = x.dtype.type(size) * half * (1 - adjustment)
        return np.asarray(offset + (x + half) / scale - half)
    raise BlockedError(f"coordinate_transformation_mode {mode}", EXACT)


def _round(x: Array, mode: str) -> Array:
    half = x.dtype.type(0.5)
    rounded = {
        "round_prefer_floor": np.ceil(x - half),
        "round_prefer_ceil": np.floor(x + half),
        "floor": np.floor(x),
        "ceil": np.ceil(x),
    }.get(mode)
    if rounded is None:
        raise BlockedError(f"nearest_mode {mode}")
    return np.asarray(rounded)


HANDLERS: Handlers = {("", "Resize"): resize, ("", "Upsample"): resize}
