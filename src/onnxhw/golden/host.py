"""The host's part: from a user's arrays to int8 input tensors, and from int8 output tensors back.

Both take batches: N samples along the first axis are N independent inferences.
"""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.graph import Array8, Graph, Port
from ..ir.steps import apply

Array = npt.NDArray[Any]
SHORT = ("int4", "uint4", "int2", "uint2")
"""Integer types that numpy itself does not have."""
ROUNDED = {"QuantizeLinear", "DequantizeLinear", "Relu", "Clip", "Add", "Sub", "Mul", "Div", "ToInt8", "ToUint8"}
"""Steps that treat every element alike, and by correctly rounded operations only: a batch gives what its samples do."""
PORTION = 8192
"""Elements of a batch that are worked on together: as many as the processor's cache holds with their copies."""


def prepare(graph: Graph, feeds: Mapping[str, npt.ArrayLike]) -> dict[str, Array8]:
    """The graph's int8 input tensors ``[N, C, H, W]`` from the model's inputs by name.

    Input of shape ``(1, ...)`` is given as ``(N, ...)``. Element types are those of `of_type`.

    `UsageError` E2203 (missing or unknown input), E2204 (wrong shape or type), E2202 (NaN).
    """
    known = {port.name for port in graph.inputs}
    for name in feeds:
        if name not in known:
            raise UsageError("E2203", f"the model has no input {name!r}", hint=f"inputs: {', '.join(sorted(known))}")
    return {port.tensor: _prepare(graph, port, feeds) for port in graph.inputs}


def finish(graph: Graph, tensors: Mapping[str, Array8]) -> dict[str, Array]:
    """The model's outputs by name from the graph's int8 tensors (at least the output tensors)."""
    return {port.name: _finish(port, tensors) for port in graph.outputs}


def _prepare(graph: Graph, port: Port, feeds: Mapping[str, npt.ArrayLike]) -> Array8:
    if port.name not in feeds:
        raise UsageError(
            "E2203", f"input {port.name!r} is missing", hint=f"given: {', '.join(sorted(feeds)) or 'none'}"
        )
    values = typed(port.name, feeds[port.name], port.dtype, "E2204")
    _check_shape(port, values)
    shape = graph.tensors[port.tensor].shape
    at_once = 1
    if port.shape[:1] == (1,) and all(step["op"] in ROUNDED for step in port.steps):
        at_once = max(1, PORTION // max(1, values[:1].size))
    parts = [values] if values.shape == port.shape else [
        values[i : i + at_once] for i in range(0, len(values), at_once)
    ]  # fmt: skip
    return np.concatenate([apply(port.steps, part).reshape(-1, *shape[1:]) for part in parts]).astype(np.int8)


def typed(name: str, given: Any, dtype: str, code: str) -> Array:
    """What an input is given, as an array of its element type (`of_type`); else a `UsageError` of that code."""
    try:
        return of_type(given, dtype)
    except ValueError as error:  # lists of different lengths
        raise UsageError(code, f"input {name!r} is no array: {error}") from error
    except TypeError as error:
        hint = f"if its values are what the model means: array.astype(numpy.{dtype})"
        raise UsageError(code, f"input {name!r} {error}", hint=hint) from error


def of_type(given: Any, dtype: str) -> Array:
    """What an input of an element type is given, as an array of it. As in onnxruntime an array must have that type, in
    any byte order; Python's numbers, and lists of them, have none and get it if it holds them: floats are rounded.

    `TypeError`: it has another type; `ValueError`: it is no array.
    """
    array, wanted = np.asarray(given), np.dtype(dtype)
    if wanted.kind == "O" and array.dtype.kind in "OS":
        return np.array([_text(one) for one in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype.newbyteorder("=") == wanted or (wanted.kind == "O" and array.dtype.kind in "OUS"):
        return array.astype(wanted)
    if isinstance(given, list | tuple | int | float) and not isinstance(given, np.generic):
        kinds = {"f": "iuf", "i": "iu", "u": "iu"}.get(wanted.kind, "")
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is saturated
            if not array.size or (wanted.kind == "f" and array.dtype.kind in kinds):
                return array.astype(wanted)
            if array.dtype.kind in kinds and (array.astype(wanted) == array).all():
                return array.astype(wanted)
    raise TypeError(f"must be {wanted}, not {array.dtype}")


def _text(value: Any) -> Any:
    """Bytes as the text that they are in UTF-8, anything else as it is."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise TypeError(f"must be text in UTF-8, not {value!r}") from error


def _check_shape(port: Port, values: Array) -> None:
    batched = port.shape[:1] == (1,) and values.ndim == len(port.shape) and values.shape[1:] == port.shape[1:]
    if values.shape != port.shape and not (batched and len(values)):
        raise UsageError(
            "E2204",
            f"input {port.name!r} must have shape {list(port.shape)}, not {list(values.shape)}",
            hint="a first dimension of 1 may be larger: one inference each",
        )


def _finish(port: Port, tensors: Mapping[str, Array8]) -> Array:
    if port.tensor not in tensors:
        raise UsageError("E2203", f"output tensor {port.tensor!r} is missing")
    array = np.asarray(tensors[port.tensor])
    results = [apply(port.steps, array[i : i + 1]) for i in range(len(array))]
    if port.dtype in SHORT:
        results = [result.astype(getattr(ml_dtypes, port.dtype)) for result in results]
    return results[0] if len(results) == 1 else np.concatenate([np.atleast_1d(result) for result in results])
