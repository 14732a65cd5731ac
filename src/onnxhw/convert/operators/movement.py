"""Operators that choose, repeat and turn elements: Slice, Split, Gather, Pad, Tile, Expand, DepthToSpace, ...

Each runs once, on the numbers of its input's elements, by onnx's own reference; what comes out says where every
element of the result comes from, and `arrange` makes operations of that. A movement commutes with quantization, so it
applies to dequantized values, to integers, and to the result of an operation that waits for its QuantizeLinear.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod
from operator import mul

import numpy as np

from ... import fixed
from ...hostops.in_worker import computed
from ...ir.graph import Tensor
from ...onnxmodel.nodes import Node
from ...onnxmodel.shapes import Shape
from ..blockers import BlockedError
from ..context import Context, Handlers
from ..values import Array, AxisMoves, Ints, QuantizedView, QuantizerTarget, Unquantized, Value, form
from .arrange import arrange

SHARED = 1 << 14
"""Most elements of a movement that is remembered for nodes that move alike."""
LARGEST = 1 << 22
"""Most elements of a movement's result."""
NO_LARGER = ("DepthToSpace", "ReverseSequence", "Slice", "SpaceToDepth", "Split")
"""Whose results have no more elements than the operand."""


def move(context: Context, node: Node) -> Value | tuple[Value, ...]:
    """Any operator of this module that needs no more than its name."""
    value, indices = context.required(node, 0), _indices(context, node)
    results = tuple(
        moved(context, value, index, node.output[number] or f"{node.label}.{number}", node.label)
        for number, index in enumerate(indices)
    )
    return results if len(results) != 1 else results[0]


def pad(context: Context, node: Node) -> Value:
    """Pad: also with a constant, which must be a value that the integers can stand for; negative pads leave out."""
    found = node.attributes
    value = context.required(node, 0)
    shape = value.shape or ()
    given = context.constant(node, 1)
    listed = [int(size) for size in (found.get("pads", ()) if given is None else given.ravel())]
    chosen = context.constant(node, 3)
    axes = [int(axis) for axis in (range(len(shape)) if chosen is None else chosen.ravel())]
    if len(listed) != 2 * len(axes) or any(not -len(shape) <= axis < len(shape) for axis in axes):
        raise BlockedError(f"{len(listed)} pads do not fit {len(axes)} axes")
    ends = [(0, 0)] * len(shape)
    for number, axis in enumerate(axes):
        ends[axis] = (listed[number], listed[number + len(axes)])
    if prod(size + sum(both) for size, both in zip(shape, ends, strict=True)) > LARGEST:
        raise BlockedError(f"its result has more than {LARGEST} elements")
    scalar = context.constant(node, 2)
    constant = float(found.get("value", 0.0) if scalar is None else np.asarray(scalar, np.float64).reshape(()))
    if not np.isfinite(constant):
        raise BlockedError(f"the constant is {constant}")
    index = _padded(np.arange(prod(shape)).reshape(shape), ends, found.get("mode", "constant"))
    return moved(context, value, index, node.output[0], node.label, constant)


def _padded(index: Ints, ends: list[tuple[int, int]], mode: str) -> Ints:
    kept = tuple(
        slice(max(0, -before), size + min(0, after)) for size, (before, after) in zip(index.shape, ends, strict=True)
    )
    added = [(max(0, before), max(0, after)) for before, after in ends]
    if mode == "constant":
        return np.pad(index[kept], added, constant_values=-1)
    if min(min(both) for both in ends) < 0:
        raise BlockedError(f"negative pads in mode {mode}", "slice first")
    if mode == "edge":
        return np.pad(index, added, mode="edge")
    if mode == "wrap":
        return np.pad(index, added, mode="wrap")
    if mode == "reflect" and all(max(both) < size for both, size in zip(added, index.shape, strict=True)):
        return np.pad(index, added, mode="reflect")
    raise BlockedError(f"mode {mode} with pads {ends}", "pad by less than the input's size")


def _indices(context: Context, node: Node) -> list[Ints]:
    """Each output's elements as numbers of the first input's elements."""
    value = context.required(node, 0)
    shape = value.shape or ()
    constants = [context.constant(node, index) for index in range(1, len(node.input))]
    untold = shape if node.op_type in NO_LARGER else _enlarged(node, shape, constants)
    known = [context.shapes.get(name, untold) for name in node.output if name]
    if any(size is None for size in known):
        raise BlockedError("its result has no static shape", "simplify the model with fixed shapes (onnxsim)")
    if any(prod(size or ()) > LARGEST for size in known):
        raise BlockedError(f"its result has more than {LARGEST} elements")
    if max([prod(shape), *(constant.size for constant in constants if constant is not None)]) > SHARED:
        return _evaluated(context, node, shape, constants)
    key = _key(context, node, shape, constants)
    indices: list[Ints] | None = context.tables.get(key)
    if indices is None:
        indices = context.tables[key] = _evaluated(context, node, shape, constants)
    return indices


def _enlarged(node: Node, shape: Shape, constants: list[Array | None]) -> Shape | None:
    """The result's shape of Expand and Tile where onnx does not see it: before operator set 13 it looks at initializers
    alone, and exporters compute these sizes (``weights.expand_as(x)``). None for other operators."""
    if node.op_type not in ("Expand", "Tile") or len(constants) != 1 or constants[0] is None:
        return None
    sizes = tuple(int(size) for size in constants[0].ravel())
    if min(sizes, default=0) < 1:
        return None
    if node.op_type == "Tile":
        return tuple(map(mul, shape, sizes)) if len(sizes) == len(shape) else None
    try:
        return np.broadcast_shapes(shape, sizes)
    except ValueError:
        return None


def _key(context: Context, node: Node, shape: Shape, constants: list[Array | None]) -> tuple[Hashable, ...]:
    """What the indices depend on."""
    values = [None if x is None else (x.dtype, x.shape, x.tobytes()) for x in constants]
    return ("movement", node.op_type, context.opset, len(node.output), shape, *values, repr(node.attributes))


def _evaluated(context: Context, node: Node, shape: Shape, constants: list[Array | None]) -> list[Ints]:
    """The indices, from the operator's definition."""
    feeds: dict[str, Array] = {node.input[0]: np.arange(prod(shape)).reshape(shape)}
    feeds |= {
        name: constant for name, constant in zip(node.input[1:], constants, strict=True) if constant is not None
    }
    try:
        results = computed(node.proto, context.opset, [feeds.get(name) for name in node.input])
    except RuntimeError as error:
        raise BlockedError(f"cannot be evaluated: {' '.join(str(error).split())[:200]}") from error
    return [np.asarray(result, np.int64) for result in results]


def moved(context: Context, value: Value, index: Ints, output: str, name: str, constant: float = 0.0) -> Value:
    """`value` with its elements chosen by `index`, of the result's shape; -1 is the real (or integer) `constant`.

    `BlockedError` for values that are not on the hardware.
    """
    if not isinstance(value, (QuantizedView, Unquantized)):
        raise BlockedError("its input is not a quantized value", "quantize it before it is moved")
    if index.size == 0:
        raise BlockedError("its result has no elements")
    inner = value.moves.index
    flat = index.ravel()
    if inner is not None:
        flat = np.where(flat < 0, -1, inner.ravel()[flat])
    filled = bool((flat < 0).any())
    if isinstance(value, QuantizedView):
        fill = _fill(value, constant) if filled else 0
        tensor, moves = _placed(context, value.tensor, flat.reshape(index.shape), output, name, fill)
        return QuantizedView(tensor, moves, value.functions, value.unsigned)
    before, shape = value, form(index.shape)

    def finish(result: QuantizerTarget) -> Tensor:
        whole = before.finish(replace(result, name=f"{result.name}.whole"))
        fill = _fill_result(result, constant, bool(before.clamps)) if filled else 0
        return arrange(context, [whole], flat, shape, result.name, name, fill)

    return Unquantized(finish, AxisMoves.of(shape, index.shape), (*value.nodes, name), value.clamps)


def _placed(
    context: Context, source: Tensor, index: Ints, output: str, name: str, fill: int
) -> tuple[Tensor, AxisMoves]:
    """The tensor of a movement, and how its elements lie in the result: as its shape says, or else with the channels
    before all pixels, where the result has them at another axis (channels last, or more axes than four)."""
    try:
        tensor = arrange(context, [source], index.ravel(), form(index.shape), output, name, fill)
        return tensor, AxisMoves.of(tensor.shape, index.shape)
    except BlockedError:
        axis = channel_axis(index, source.height * source.width)
        if axis is None or index.shape[0] != 1:
            raise
    rest = [other for other in range(1, index.ndim) if other != axis]
    turned = index.transpose(0, axis, *rest)
    _, channels, *pixels = turned.shape
    tensor = arrange(context, [source], turned.ravel(), (1, channels, *_plane(pixels)), output, name, fill)
    back = (0, *(1 if other == axis else 2 + rest.index(other) for other in range(1, index.ndim)))
    return tensor, AxisMoves.of(tensor.shape, turned.shape).transpose(back, name)


def _plane(sizes: Sequence[int]) -> tuple[int, int]:
    """Rows and columns for pixels of any number of axes, as square as may be."""
    splits = [(prod(sizes[:split]), prod(sizes[split:])) for split in range(len(sizes) - 1, 0, -1)]
    return min(splits, key=max, default=(1, prod(sizes)))


def channel_axis(index: Ints, plane: int) -> int | None:
    """The axis along which alone the channel changes, of elements of a tensor with planes of this size; None if there
    is no such, or more than one. -1 in the index is a constant."""
    channel = np.where(index < 0, -1, index // plane)
    found = []
    for axis in range(1, index.ndim):
        others = tuple(other for other in range(index.ndim) if other != axis)
        most = channel.max(axis=others, keepdims=True)
        if bool(np.all((channel == most) | (channel < 0))):
            found.append(axis)
    return found[0] if len(found) == 1 else None


def _fill(value: QuantizedView, constant: float) -> int:
    """The integer that stands for a constant."""
    if value.integer:
        fill = int(constant) - (128 if value.unsigned else 0)
        if constant != int(constant) or not -128 <= fill <= 127:
            raise BlockedError(f"the constant {constant:g} is not one of the integers")
        return fill
    fits = np.flatnonzero(value.reals() == np.float32(constant)) - 128
    if not len(fits):
        raise BlockedError(
            f"the constant {constant:g} is not a value of its input's grid", "pad with zero, or quantize the result"
        )
    zero = value.tensor.zero_point
    return zero if zero in fits else int(fits[0])


def _fill_result(result: QuantizerTarget, constant: float, clamped_before: bool) -> int:
    fill = int(fixed.quantize(np.array([constant], np.float32), result.scale, result.zero_point)[0])
    if clamped_before and not result.lo <= fill <= result.hi:
        raise BlockedError(f"the constant {constant:g} is outside the clamp before it", "quantize before padding")
    return int(np.clip(fill, result.lo, result.hi))


HANDLERS: Handlers = {
    ("", "Pad"): pad,
    **{
        ("", op_type): move
        for op_type in (
            "CenterCropPad",
            "DepthToSpace",
            "Expand",
            "Gather",
            "GatherElements",
            "GatherND",
            "ReverseSequence",
            "Slice",
            "SpaceToDepth",
            "Split",
            "Tile",
        )
    },
}
