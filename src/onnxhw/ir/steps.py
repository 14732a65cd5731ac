"""Host steps: the ONNX nodes at a model's edges, executed in numpy.

A step is a dict ``{"op": ..., "name": ..., attributes...}`` of JSON values; `apply` runs one on one
sample. Float arithmetic is float32, as onnxruntime's.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import fixed
from ..errors import InternalError, UsageError
from .functions import FUNCTIONS

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Step = Mapping[str, Any]


def quantize_linear(x: Array, step: Step) -> Array:
    """`onnxhw.fixed.quantize` to int8 or uint8; a NaN is refused with E2202."""
    if np.isnan(x).any():
        raise UsageError(
            "E2202",
            "input contains NaN, which has no quantized value",
            where=step["name"],
            hint="replace NaN before running the model",
        )
    info = np.iinfo(step["dtype"])
    return fixed.quantize(x, np.float32(step["scale"]), step["zero_point"], int(info.min), int(info.max)).astype(
        step["dtype"]
    )


def dequantize_linear(x: Array, step: Step) -> Array:
    """`onnxhw.fixed.dequantize`."""
    return fixed.dequantize(x.astype(np.int64), np.float32(step["scale"]), step["zero_point"])


def to_int8(x: Array, step: Step) -> Array:
    """uint8 less 128."""
    return (x.astype(np.int16) - 128).astype(np.int8)


def to_uint8(x: Array, step: Step) -> Array:
    """int8 plus 128."""
    return (x.astype(np.int16) + 128).astype(np.uint8)


def softmax(x: Array, step: Step) -> Array:
    """``exp(x - max) / sum`` over `axes` (one axis since opset 13, all trailing ones before)."""
    axes = tuple(step["axes"])
    raised = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(raised / raised.sum(axis=axes, keepdims=True), np.float32)


def arg(x: Array, step: Step) -> Array:
    """`ArgMax` or `ArgMin`: the first index of the extreme value along `axis`, the `last` one if asked for; int64."""
    axis, last = step["axis"], step["last"]
    seen = np.flip(x, axis) if last else x
    index = (np.argmax if step["op"] == "ArgMax" else np.argmin)(seen, axis=axis, keepdims=step["keepdims"])
    return np.asarray(x.shape[axis] - 1 - index if last else index, np.int64)


def relu(x: Array, step: Step) -> Array:
    """``max(x, 0)``."""
    return np.asarray(np.maximum(x, x.dtype.type(0)))


def clip(x: Array, step: Step) -> Array:
    """``min(max(x, min), max)``; a bound that is None is absent."""
    if step["min"] is not None:
        x = np.maximum(x, np.float32(step["min"]))
    if step["max"] is not None:
        x = np.minimum(x, np.float32(step["max"]))
    return x


def arithmetic(x: Array, step: Step) -> Array:
    """`Add`, `Sub`, `Mul` or `Div` with a constant on the right (or left, if `swapped`).

    A list of them is one per channel of ``[N, C, H, W]``.
    """
    value = np.asarray(step["value"], np.float32)
    value = value.reshape(-1, 1, 1) if value.ndim else value
    a, b = (value, x) if step.get("swapped") else (x, value)
    functions: dict[str, Callable[..., Any]] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    with np.errstate(all="ignore"):  # NaN and infinity are results like others
        return np.asarray(functions[step["op"]](a, b), np.float32)


def sums(x: Array, step: Step) -> Array:
    """Integers that left in several int8: the channels in as many parts as there are `weights`, times these, added to
    `term`; as float32."""
    parts = np.split(x.astype(np.int64), len(step["weights"]), axis=1)
    whole = sum((part * weight for part, weight in zip(parts, step["weights"], strict=True)), np.int64(step["term"]))
    return np.asarray(whole, np.float32)


def reshape(x: Array, step: Step) -> Array:
    """Same elements, shape `shape`."""
    return np.asarray(x.reshape(step["shape"]))


def transpose(x: Array, step: Step) -> Array:
    """Axes permuted by `perm`."""
    return np.asarray(x.transpose(step["perm"]))


ELEMENTWISE: dict[str, Callable[[Array, Step], Array]] = {
    **FUNCTIONS,
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
    "Relu": relu,
    "Clip": clip,
    "Add": arithmetic,
    "Sub": arithmetic,
    "Mul": arithmetic,
    "Div": arithmetic,
}
"""Steps that treat every element alike: any chain of them from int8 to int8 is a 256-entry table."""

SHAPE: dict[str, Callable[[Array, Step], Array]] = {"Reshape": reshape, "Transpose": transpose}
"""Steps that only move elements."""

STEPS: dict[str, Callable[[Array, Step], Array]] = {
    **ELEMENTWISE,
    **SHAPE,
    "Softmax": softmax,
    "ArgMax": arg,
    "ArgMin": arg,
    "ToInt8": to_int8,
    "ToUint8": to_uint8,
    "Sums": sums,
}
"""All steps by name."""


ARITHMETIC = ("Add", "Sub", "Mul", "Div")


def result_shape(step: Step, shape: Shape) -> Shape:
    """The shape that a step makes of one: never of more elements. `ValueError` or `TypeError` if it takes none such."""
    kind, rank = step["op"], len(shape)
    if kind in SHAPE:
        return SHAPE[kind](np.zeros(shape, bool), step).shape  # memory that nobody touches
    if kind in ("ArgMax", "ArgMin"):
        axis = range(rank)[step["axis"]]
        return shape[:axis] + ((1,) if step["keepdims"] else ()) + shape[axis + 1 :]
    if kind == "Softmax":
        _require(0 < len({range(rank)[axis] for axis in step["axes"]}) == len(step["axes"]), "it has no such axes")
    if kind == "Sums":
        parts = len(step["weights"])
        _require(rank > 1 and parts > 0 and shape[1] % parts == 0, f"{shape} are not {parts} parts")
        return shape[0], shape[1] // parts, *shape[2:]
    if kind in ARITHMETIC and isinstance(step["value"], list):
        count = len(step["value"])
        _require(rank > 2 and count in (1, shape[-3]), f"{shape} does not have {count} channels")
    return shape


def sampled(step: Step) -> Step | None:
    """The step for a few values instead of a whole tensor, along the first axis; None for one that only moves them.
    Of a constant for each channel it has the least and the greatest."""
    kind = step["op"]
    if kind in SHAPE:
        return None
    if kind in ("ArgMax", "ArgMin"):
        return {**step, "axis": 0, "keepdims": 1}
    if kind == "Softmax":
        return {**step, "axes": [0]}
    if kind == "Sums":
        return {**step, "weights": step["weights"][:1]}
    if kind in ARITHMETIC and isinstance(step["value"], list):
        return {**step, "value": [min(step["value"]), max(step["value"])]}
    return step


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def apply(steps: Iterable[Step], x: Array) -> Array:
    """Run the steps in order on one sample."""
    for step in steps:
        if step["op"] not in STEPS:
            raise InternalError("E1310", f"no host step {step['op']!r}", where=str(step.get("name", "")))
        x = STEPS[step["op"]](x, step)
    return x
