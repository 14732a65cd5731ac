"""One tensor's payload: `check` compares it with its type and shape, `decode` makes the array.

Nothing is allocated by what a tensor says of itself: element counts are compared with the limits, then with the
bytes that are really there.
"""

from collections.abc import Sequence
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from ..errors import InvalidModelError
from .elements import ELEMENTS, Element, element, reinterpret, unpack
from .limits import DEFAULT, Limits

TYPED = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
LARGEST = (1 << 63) - 1
PIECE = 1 << 20
"""Elements that are looked at together."""
WIDEST = 16
"""Most bytes of an element."""
_typed = attrgetter(*TYPED)


def title(tensor: onnx.TensorProto) -> str:
    """What a message calls the tensor."""
    return f"tensor {tensor.name!r}"


def typed_fields(tensor: onnx.TensorProto) -> list[str]:
    """The fields other than ``raw_data`` that hold data."""
    return [name for name, entries in zip(TYPED, _typed(tensor), strict=True) if len(entries)]


def shape_of(dims: Sequence[int], where: str, limits: Limits = DEFAULT) -> tuple[int, ...]:
    """A checked shape: E3151 a negative size, E3152 a product beyond 64 bits, E3112 or E3113 beyond a limit."""
    limits.check("E3113", "tensor_rank", len(dims), "dimensions:", where)
    shape = tuple(dims)
    if shape and min(shape) < 0:
        raise InvalidModelError("E3151", f"has a negative dimension in {list(shape)}", where=where)
    elements = prod(shape)
    if elements > limits.tensor_elements or not elements:
        # numpy cannot make an empty array of impossible size either, and counts in bytes
        if prod(max(size, 1) for size in shape) > (LARGEST if elements else LARGEST // WIDEST):
            raise InvalidModelError("E3152", f"has a shape beyond 64 bits: {list(shape)}", where=where)
        limits.check("E3112", "tensor_elements", elements, "elements:", where)
    return shape


def storage(tensor: onnx.TensorProto, kind: Element, where: str) -> str:
    """The one field that holds the data: ``raw_data``, the type's own field, or empty if there is none.

    E3155 two fields hold data, E3156 a field that is not this type's, E3158 a segment of a larger tensor.
    """
    if tensor.HasField("segment"):
        raise InvalidModelError("E3158", "is a segment of a larger tensor", where=where, hint="save tensors whole")
    raw = tensor.HasField("raw_data")
    if raw and not any(_typed(tensor)) and not kind.string:
        return "raw_data"
    fields = typed_fields(tensor)
    if len(fields) + raw > 1:
        names = ", ".join([*fields, *["raw_data"] * raw])
        raise InvalidModelError("E3155", f"has more than one payload: {names}", where=where)
    if raw and kind.string:
        raise InvalidModelError("E3156", "is a string tensor with raw_data", where=where, hint="use string_data")
    if fields and fields[0] != kind.field:
        raise InvalidModelError("E3156", f"is {kind.name} with data in {fields[0]}, not {kind.field}", where=where)
    return "raw_data" if raw else fields[0] if fields else ""


def check(tensor: onnx.TensorProto, limits: Limits = DEFAULT, where: str = "") -> int:
    """The bytes that the decoded tensor takes, once its payload was found to fit; see `decode` for the errors."""
    where = where or title(tensor)
    kind = element(tensor.data_type, where)
    elements = prod(shape_of(tensor.dims, where, limits))
    field = storage(tensor, kind, where)
    if field == "raw_data":
        _length(len(tensor.raw_data), kind.raw_bytes(elements), "bytes of raw_data", where)
        if kind.name == "BOOL":
            _flags(np.frombuffer(tensor.raw_data, np.uint8), where)
    else:
        found = len(getattr(tensor, field)) if field else 0
        _length(found, kind.typed_entries(elements), f"entries of {kind.field}", where)
        if kind.string:
            _strings(tensor, where)
        elif kind.entries is not None and found:
            _entries(tensor, kind, where)
    return elements * kind.dtype.itemsize


def decode(tensor: onnx.TensorProto, limits: Limits = DEFAULT, where: str = "") -> npt.NDArray[Any]:
    """The values of a tensor, read-only; strings as Python strings, narrow types as those of ml_dtypes.

    `InvalidModelError`: E3150 no such type, E3151 and E3152 no such shape, E3153 too little data, E3154 too much,
    E3155 two payloads, E3156 the wrong field, E3157 a value that the type does not have, E3158 a segment,
    E3159 text that is not UTF-8; `LimitError` E3112, E3113.
    """
    where = where or title(tensor)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InvalidModelError("E3008", "is in an external file that was not loaded", where=where)
    check(tensor, limits, where)
    return unpacked(tensor, where)


def finite(tensor: onnx.TensorProto) -> bool:
    """Is no element of a checked tensor NaN or infinite? Text and types that have neither are."""
    return not ELEMENTS[tensor.data_type].fractions or all_finite(unpacked(tensor))


def all_finite(values: npt.NDArray[Any]) -> bool:
    """Is no element NaN or infinite? Looked at piece by piece, so that this takes no memory to speak of."""
    flat = values.reshape(-1)
    return all(bool(np.isfinite(flat[at : at + PIECE]).all()) for at in range(0, flat.size, PIECE))


def seen(tensor: onnx.TensorProto, data: bytes, where: str) -> npt.NDArray[Any]:
    """The read-only array in `data`, which lies outside the tensor and has as many bytes as its type and shape need:
    elements of at least 8 bits. E3157 and E3158 as of `decode`."""
    kind = ELEMENTS[tensor.data_type]
    storage(tensor, kind, where)
    if kind.name == "BOOL":
        _flags(np.frombuffer(data, np.uint8), where)
    values = _raw(data, kind, prod(tensor.dims)).reshape(tuple(tensor.dims))
    values.flags.writeable = False
    return values


def unpacked(tensor: onnx.TensorProto, where: str = "") -> npt.NDArray[Any]:
    """The values of a tensor in which `check` found nothing wrong; as of `decode`."""
    kind, shape = ELEMENTS[tensor.data_type], tuple(tensor.dims)
    elements = prod(shape)
    if kind.string:
        text = np.empty(elements, object)
        text[:] = _strings(tensor, where)
        values: npt.NDArray[Any] = text
    elif tensor.HasField("raw_data"):
        values = _raw(tensor.raw_data, kind, elements)
    elif kind.entries is not None:
        values = _narrow(_entries(tensor, kind, where), kind, elements)
    elif kind.per_entry == 0:
        part = np.float32 if kind.field == "float_data" else np.float64
        values = np.array(getattr(tensor, kind.field), part).view(kind.dtype)
    else:
        values = np.array(getattr(tensor, kind.field), kind.dtype)
    values = values.reshape(shape)
    values.flags.writeable = False
    return values


def _raw(data: bytes, kind: Element, elements: int) -> npt.NDArray[Any]:
    if kind.bits < 8:
        return reinterpret(unpack(np.frombuffer(data, np.uint8), kind, elements), kind)
    if kind.dtype.isbuiltin == 1:
        return np.frombuffer(data, kind.dtype.newbyteorder("<")).astype(kind.dtype, copy=False)
    return np.frombuffer(data, f"<u{kind.bits // 8}").view(kind.dtype)


def _narrow(entries: npt.NDArray[np.int64], kind: Element, elements: int) -> npt.NDArray[Any]:
    """Values from entries of an integer field, already in range."""
    if kind.per_entry > 1:
        return reinterpret(unpack(entries.astype(np.uint8), kind, elements), kind)
    if kind.dtype.kind in "iub":
        return entries.astype(kind.dtype)
    return entries.astype(np.uint16 if kind.bits == 16 else np.uint8).view(kind.dtype)  # patterns, not numbers


def _entries(tensor: onnx.TensorProto, kind: Element, where: str) -> npt.NDArray[np.int64]:
    """The entries of the integer field, in range: E3157 if not."""
    assert kind.entries is not None
    low, high = kind.entries
    wide = np.uint64 if kind.field == "uint64_data" else np.int64
    values = np.array(getattr(tensor, kind.field), wide)
    if values.size and (values.min() < low or values.max() > high):
        worst = int(values.min()) if values.min() < low else int(values.max())
        raise InvalidModelError("E3157", f"has the value {worst}, {kind.name} holds {low} to {high}", where=where)
    return values.astype(np.int64)


def _flags(values: npt.NDArray[np.uint8], where: str) -> None:
    if values.size and values.max() > 1:
        raise InvalidModelError("E3157", f"has the value {values.max()}, BOOL holds 0 to 1", where=where)


def _strings(tensor: onnx.TensorProto, where: str) -> list[str]:
    try:
        return [text.decode() for text in tensor.string_data]
    except UnicodeDecodeError as error:
        raise InvalidModelError("E3159", "has text that is not UTF-8", where=where) from error


def _length(found: int, needed: int, what: str, where: str) -> None:
    if found != needed:
        code, word = ("E3153", "too few") if found < needed else ("E3154", "too many")
        raise InvalidModelError(
            code, f"has {word} {what}: {found} instead of {needed}", where=where, hint="its type or shape is wrong"
        )
