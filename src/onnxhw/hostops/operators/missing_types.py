"""Operators on types that onnxruntime's kernels lack, where onnx's reference fails as well or is wrong."""

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any, Literal

import numpy as np
import onnx
from onnx.reference.ops.op_bernoulli import Bernoulli
from onnx.reference.ops.op_cast import cast_to
from onnx.reference.ops.op_random_normal_like import RandomNormalLike
from onnx.reference.ops.op_random_uniform_like import RandomUniformLike

from .adapter import Array, HostOp, reference


def cast(x: Array, to: int = 0, saturate: int = 1, round_mode: Any = "up") -> Array:
    """Cast. Between text and types that numpy has none for by way of float32 or int32, to integers below a byte too."""
    foreign = onnx.helper.tensor_dtype_to_np_dtype(to).isbuiltin != 1 if to != onnx.TensorProto.STRING else False
    if x.dtype.isbuiltin != 1 and (to == onnx.TensorProto.STRING or foreign):
        x = x.astype(np.int32 if "int" in x.dtype.name else np.float32)
    if x.dtype.kind in "OU" and foreign:
        x = x.astype(np.str_).astype(np.float32)
    mode = round_mode.decode() if isinstance(round_mode, bytes) else round_mode
    return np.asarray(cast_to(x, onnx.TensorProto.DataType.ValueType(to), bool(saturate), mode))


def cast_like(x: Array, target: Array, saturate: int = 1, round_mode: Any = "up") -> Array:
    """`cast` to the type of `target`."""
    text = target.dtype.kind in "OU"
    to = onnx.TensorProto.STRING if text else int(onnx.helper.np_dtype_to_tensor_dtype(target.dtype))
    return cast(x, to, saturate, round_mode)


def shape(x: Any, start: int = 0, end: int | None = None) -> Array:
    """Shape since operator set 15, of which axes are clamped to ``[0, r]``; onnx's reference clamps none."""
    sizes = np.shape(x)
    first, last = (min(max(at + len(sizes) if at < 0 else at, 0), len(sizes))
                   for at in (start or 0, len(sizes) if end is None else end))  # fmt: skip
    return np.array(sizes[first:last], np.int64)


def shrink(x: Array, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Shrink: ``x + bias`` below ``-lambd``, ``x - bias`` above `lambd`, else 0; what is no integer is cut off."""
    if x.dtype.kind in "iu":
        below, above = x < ceil(-lambd), x > floor(lambd)
        return np.where(below, _plus(x, bias), np.where(above, _plus(x, -bias), x.dtype.type(0)))
    below, above = x < -lambd, x > lambd
    return np.where(below, x + bias, np.where(above, x - bias, 0)).astype(x.dtype)


def _plus(x: Array, number: float) -> Array:
    """``x + number`` for integers, cut off towards zero; beyond the range of the type it wraps around."""
    whole = floor(number)
    added = np.array(whole & np.iinfo(np.uint64).max, np.uint64).astype(x.dtype)
    return np.asarray(x + added + ((x < -whole) & (whole != number)).astype(x.dtype))


Mode = Literal["constant", "reflect", "edge", "wrap"]


def pad(x: Array, pads: Array, value: Array | None = None, axes: Array | None = None, mode: Mode = "constant") -> Array:
    """Pad: what negative pads take away is cut off first."""
    places = [int(axis) % x.ndim for axis in axes] if axes is not None else list(range(x.ndim))
    whole = [(0, 0)] * x.ndim
    for index, axis in enumerate(places):
        whole[axis] = int(pads[index]), int(pads[index + len(places)])
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(whole, x.shape, strict=True))
    added = [(max(a, 0), max(b, 0)) for a, b in whole]
    if mode != "constant":
        return np.asarray(np.pad(x[cut], added, mode=mode))
    fill = np.zeros((), x.dtype) if value is None or np.size(value) == 0 else np.asarray(value).reshape(-1)[0]
    sizes = [b - a + sum(more) for (a, b), more in zip(((s.start, s.stop) for s in cut), added, strict=True)]
    result = np.full(sizes, fill, x.dtype)
    result[tuple(slice(a, a + s.stop - s.start) for (a, _), s in zip(added, cut, strict=True))] = x[cut]
    return result


def random_like(cls: Any, name: str) -> Callable[..., Array]:
    """A generator whose operand may be a scalar."""

    def apply(x: Array, **attributes: Any) -> Array:
        wide = np.asarray(x).reshape(-1)
        if name == "Bernoulli" and wide.dtype.isbuiltin != 1:
            attributes.setdefault("dtype", int(onnx.helper.np_dtype_to_tensor_dtype(wide.dtype)))
            wide = wide.astype(np.float32)
        return np.asarray(reference(cls, name, wide, **attributes)).reshape(np.shape(x))

    return apply


def sequence_insert(sequence: Sequence[Array], tensor: Array, position: Array | None = None) -> list[Array]:
    """SequenceInsert: at a position of ``-n .. n``, at the back by default. `ValueError` for another."""
    found, size = list(sequence), len(sequence)
    at = size if position is None else int(np.asarray(position).reshape(()))
    if not -size <= at <= size:
        raise ValueError(f"position {at} is not in -{size} .. {size}")
    found.insert(at + size if at < 0 else at, tensor)
    return found


def _ranks(x: Array) -> Array:
    """Integers in the order of the elements; NaN is behind all numbers."""
    flat = x.reshape(-1).astype(np.float32) if x.dtype.isbuiltin != 1 else x.reshape(-1)
    return np.asarray(np.unique(flat, return_inverse=True)[1]).reshape(x.shape)


def top_k(x: Array, k: Array, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """TopK with its number as an operand: of equal elements the first, and NaN above all, as the kernels have it."""
    ranks = _ranks(x)
    order = np.argsort(-ranks if largest else ranks, axis, kind="stable")
    places = np.take(order, np.arange(int(np.ravel(k)[0])), axis).astype(np.int64)
    return np.take_along_axis(x, places, axis), places


def unique(x: Array, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """Unique: of values, or of slices along an axis, in ascending order or in that of their first occurrence.

    A NaN is equal to itself and behind all numbers, as numpy has it; zeros of both signs are equal.
    """
    whole = np.asarray(x).reshape(-1) if axis is None else np.asarray(x)
    ranks = _ranks(whole)  # numpy sorts no slices of text
    _, first, inverse, counts = np.unique(ranks, True, True, True, axis=axis)
    order = np.arange(len(first)) if sorted else np.argsort(first)
    found = np.take(whole, first[order], axis=axis or 0)
    places = np.argsort(order)[inverse.reshape(-1)]
    return found, first[order].astype(np.int64), places.astype(np.int64), counts[order].astype(np.int64)


def label_encoder(x: Array, **attributes: Any) -> Array:
    """LabelEncoder since version 2: values by their keys, NaN among them, and the default of the specification."""
    keys = next(attributes[name] for name in attributes if name.startswith("keys_"))
    kind, values = next(
        (name.removeprefix("values_"), attributes[name]) for name in attributes if name.startswith("values_")
    )
    keys, table = np.asarray(keys).reshape(-1), np.asarray(values).reshape(-1)
    known = {key: value for key, value in zip(keys.tolist(), table.tolist(), strict=True) if key == key}
    other = [value for key, value in zip(keys.tolist(), table.tolist(), strict=True) if key != key]
    default = _default(kind, table, attributes)
    found = [
        known.get(key, default) if key == key else (other or [default])[0] for key in np.asarray(x).reshape(-1).tolist()
    ]
    element: Any = {"int64s": np.int64, "floats": np.float32, "strings": object}.get(kind, table.dtype)
    return np.array(found, object if table.dtype.kind in "OU" else element).reshape(np.shape(x))


def _default(kind: str, table: Array, attributes: Any) -> Any:
    given = attributes.get("default_tensor")
    if given is not None and np.size(given):
        return np.asarray(given).reshape(-1).tolist()[0]
    text = kind == "strings" or table.dtype.kind in "OU"
    if text:
        return attributes.get("default_string", "_Unused")
    return (
        attributes.get("default_float", -0.0)
        if kind == "floats" or table.dtype.kind == "f"
        else attributes.get("default_int64", -1)
    )


def dict_vectorizer(x: Any, string_vocabulary: Sequence[str] = (), int64_vocabulary: Sequence[int] = ()) -> Array:
    """DictVectorizer: one row, the values of the vocabulary in order; a missing one is 0 or empty. Reals are double:
    maps of float are onnxruntime's."""
    text = any(isinstance(value, str) for value in x.values())
    row = [x.get(key, "" if text else 0) for key in [*string_vocabulary, *int64_vocabulary]]
    whole = bool(x) and all(isinstance(value, int | np.integer) for value in x.values())
    return np.array([row], object if text else np.int64 if whole else np.float64)


def label_encoder_1(
    x: Array, classes_strings: Sequence[str] = (), default_int64: int = -1, default_string: str = "_Unused"
) -> Array:
    """LabelEncoder-1: text to its place among the classes, or places to text."""
    if np.asarray(x).dtype.kind in "OU":
        places = {name: index for index, name in enumerate(classes_strings)}
        return np.array([places.get(str(one), default_int64) for one in x.reshape(-1)], np.int64).reshape(x.shape)
    count = len(classes_strings)
    found = [classes_strings[i] if 0 <= i < count else default_string for i in x.reshape(-1).tolist()]
    return np.array(found, object).reshape(x.shape)


OPERATORS = (
    HostOp("", "Cast", cast, since=6),
    HostOp("", "CastLike", cast_like, since=15),
    HostOp("", "Pad", pad, since=11),
    HostOp("", "Bernoulli", random_like(Bernoulli, "Bernoulli")),
    HostOp("", "RandomNormalLike", random_like(RandomNormalLike, "RandomNormalLike")),
    HostOp("", "RandomUniformLike", random_like(RandomUniformLike, "RandomUniformLike")),
    HostOp("", "SequenceInsert", sequence_insert),
    HostOp("", "Shape", shape, since=15),
    HostOp("", "Shrink", shrink),
    HostOp("", "TopK", top_k, since=10),
    HostOp("", "Unique", unique),
    HostOp("ai.onnx.ml", "DictVectorizer", dict_vectorizer),
    HostOp("ai.onnx.ml", "LabelEncoder", label_encoder_1, until=1),
    HostOp("ai.onnx.ml", "LabelEncoder", label_encoder, since=2),
)
