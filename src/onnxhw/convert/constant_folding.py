"""`fold`: nodes whose inputs are all known are computed now, if they are small, harmless and of use."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from ..errors import InvalidModelError
from ..hostops.in_worker import RefusedError, computed
from ..onnxmodel.nodes import DEFAULT, Node
from ..onnxmodel.shapes import Shape
from ..onnxmodel.specification.findings import label
from ..onnxmodel.tensors import constant_node
from .blockers import BlockedError
from .context import Context
from .values import Const, QuantConst

FOLDABLE = frozenset(
    [
        "Shape",
        "Gather",
        "Unsqueeze",
        "Squeeze",
        "Concat",
        "Cast",
        "CastLike",
        "Slice",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Neg",
        "Transpose",
        "Reshape",
        "Flatten",
        "ReduceProd",
        "Abs",
        "And",
        "Ceil",
        "Clip",
        "Equal",
        "Floor",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mod",
        "Not",
        "Or",
        "Pow",
        "ReduceMax",
        "ReduceMin",
        "ReduceSum",
        "Round",
        "Size",
        "Sqrt",
        "Where",
        "ConstantOfShape",
        "Expand",
        "Range",
        "Tile",
    ]
)
"""Operators whose result is about as large as their inputs, or is bounded (`_most`): what shapes are computed with,
paddings and sizes included. (An Identity gives another name to the same values.)"""
BROADCASTING = frozenset(
    [
        "Gather", "Add", "Sub", "Mul", "Div", "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
        "Min", "Mod", "Or", "Pow", "Where", "Clip",
    ]
)  # fmt: skip
"""Those whose result may have as many elements as all their inputs multiplied."""
LAYOUT = frozenset(["Flatten", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"])
"""Those that leave a quantized constant, weights say, a quantized one."""
SMALL = 1 << 16
"""Elements up to which a node is folded whoever reads its result."""
MOST_STEPS = 1 << 62
"""Of a Range, as counted here."""
WIDEST = 16
"""Bytes of the largest element."""
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


def fold(context: Context, node: Node, wanted: Callable[[], bool]) -> Const | None:
    """The result of a node that needs no run, or None.

    A Shape of any value with a static shape counts: it is what shape arithmetic of exporters starts from; so does a
    CastLike of a constant to the type of any value, which functions have for their scales. `wanted`: may the hardware
    have a use for the result? A large one is computed only then.

    `InvalidModelError` E3359 for a node that cannot be computed of its constants, in no run. `BlockedError` for a node
    that is left to the host: a result beyond `Limits.folded_elements`, results that together
    are beyond `folded_bytes`, neither of which is computed, and one that cannot be computed.
    """
    if node.op_type not in FOLDABLE or node.domain not in DEFAULT or len(node.output) != 1:
        values = constant_node(node.proto) if node.key == ("", "Constant") else None
        return None if values is None else Const(values)
    feeds: dict[str, Array] = {}
    for index, name in enumerate(node.input):
        if not name:
            continue
        value = context.values[name]
        if isinstance(value, Const):
            feeds[name] = value.array
        elif isinstance(value, QuantConst) and node.op_type not in LAYOUT and value.q.size <= SMALL:
            feeds[name] = value.real()
        elif node.op_type == "CastLike" and index == 1 and name in context.dtypes:
            feeds[name] = np.zeros((), context.dtypes[name])
        elif node.op_type == "Shape" and value.shape is not None:
            return _shape(node, value.shape)
        elif node.op_type == "Size" and value.shape is not None:
            return Const(np.array(prod(value.shape), np.int64))
        else:
            return None
    if not feeds:
        return None
    _bound(context, node, feeds, wanted)
    try:
        operands = [feeds.get(name) for name in node.input]
        result = np.asarray(computed(node.proto, context.opset, operands)[0])
    except RefusedError as error:
        raise impossible(node, error) from error
    except RuntimeError as error:
        raise BlockedError(f"cannot be computed from its constants: {' '.join(str(error).split())[:200]}") from error
    context.folded += result.nbytes
    return Const(result)


def impossible(node: Node, error: RefusedError) -> InvalidModelError:
    """E3359: the constants of a node are none that its operator takes."""
    what = f"cannot be computed of its constants: {' '.join(str(error).split())[:200]}"
    return InvalidModelError("E3359", what, where=label(node.proto))


def _shape(node: Node, shape: Shape) -> Const:
    """The result of a Shape of a value that has it."""
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
    return Const(np.array(shape[start:end], np.int64))


def _bound(context: Context, node: Node, feeds: Mapping[str, Array], wanted: Callable[[], bool]) -> None:
    """`BlockedError` for a result that shall not be computed."""
    shape, dtype = context.shapes.get(node.output[0]), context.dtypes.get(node.output[0])
    elements, limits = _most(node, feeds) if shape is None else prod(shape), context.limits
    total = context.folded + elements * (np.dtype(dtype).itemsize if dtype else WIDEST)
    if elements > SMALL and not wanted():
        raise BlockedError("it is computed of constants, for the host alone")
    if elements > limits.folded_elements:
        what = f"its result has {elements} elements, the limit folded_elements is {limits.folded_elements}"
        raise BlockedError(what, f"--limit folded_elements={elements}")
    if total > limits.folded_bytes:
        what = f"computed constants would have {total} bytes, the limit folded_bytes is {limits.folded_bytes}"
        raise BlockedError(what, f"--limit folded_bytes={total}")


def _most(node: Node, feeds: Mapping[str, Array]) -> int:
    """A bound on the elements of a result whose shape is not known."""
    sizes = [max(1, array.size) for array in feeds.values()]
    if node.op_type in BROADCASTING:
        return prod(sizes)
    if node.op_type in ("ConstantOfShape", "Expand", "Tile"):  # the last input is a shape, or has repeats
        return prod(sizes[:-1]) * prod(max(1, int(size)) for size in list(feeds.values())[-1].ravel())
    if node.op_type == "Range":
        start, limit, step = (float(array.ravel()[0]) if array.size else 0.0 for array in feeds.values())
        steps = abs((limit - start) / step) if step else 0.0
        return int(min(steps, MOST_STEPS)) + 1
    return max(sum(sizes), *(array.ndim for array in feeds.values()))
