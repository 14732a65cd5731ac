"""The model file as a container: `read_file`, and `parse` with the checks that need no look into the graph."""

import os
import stat
from collections import Counter

import onnx
from google.protobuf.message import DecodeError

from ..diagnostics import Diagnostic
from ..errors import InvalidModelError
from ..protobuf_wire import TooManyFieldsError, WireError, table, walk
from .limits import Limits

PROTOBUF_BYTES = (1 << 31) - 1
"""Largest message that protobuf reads."""
PROTOBUF_DEPTH = 100
"""Deepest message that protobuf reads."""
SMALL = 1 << 22
"""Files up to this size are parsed without counting all their fields: the library makes less than 512 MiB of them."""
MODEL = table(onnx.ModelProto.DESCRIPTOR)
TOP = onnx.ModelProto.DESCRIPTOR.fields_by_number
SINGULAR = frozenset(number for number, entry in TOP.items() if not entry.is_repeated)
COMPLETE = "check that the file was copied or downloaded completely"


def read_file(path: str | os.PathLike[str], limits: Limits) -> bytes:
    """The bytes of a regular file.

    E3001 cannot be read, E3002 a directory, E3003 not a regular file, E3004 larger than protobuf reads, E3110 beyond
    the limit file_bytes.
    """
    where = str(path)
    if not where:
        raise InvalidModelError("E3001", "cannot be read: its path is empty")
    try:
        # Not blocking: opening a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as file:
            state = os.fstat(handle)
            if stat.S_ISDIR(state.st_mode):
                raise IsADirectoryError
            if not stat.S_ISREG(state.st_mode):
                raise InvalidModelError("E3003", "is not a regular file", where=where)
            size = state.st_size
            if size > PROTOBUF_BYTES:
                hint = "save the weights as external data"
                raise InvalidModelError("E3004", f"is larger than 2 GiB ({size} bytes)", where=where, hint=hint)
            limits.check("E3110", "file_bytes", size, "bytes:", where)
            return file.read(size)
    except IsADirectoryError as error:
        raise InvalidModelError(
            "E3002", "is a directory, not a model file", where=where, hint="give the .onnx file inside it"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidModelError("E3001", f"cannot be read: {reason}", where=where) from error


def parse(data: bytes, where: str, limits: Limits) -> tuple[onnx.ModelProto, list[Diagnostic]]:
    """The message, without fields that ONNX does not have.

    E3005 empty, E3006 not ONNX or truncated, E3007 no graph, E3100 two models in one file, E3101 messages too deep,
    E3102 fields that are no model's, E3108 too many fields; W3101 unknown fields within.
    """
    if not data:
        raise InvalidModelError("E3005", "is empty", where=where)
    limits.check("E3110", "file_bytes", len(data), "bytes:", where)
    _outline(data, where, limits)
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except (DecodeError, ValueError) as error:
        raise _unreadable(data, where, limits) from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise InvalidModelError("E3007", "is not an ONNX model: it has no graph with nodes and outputs", where=where)
    before = model.ByteSize()
    model.DiscardUnknownFields()
    dropped = before - model.ByteSize()
    if not dropped:
        return model, []
    what = f"{dropped} bytes are in fields that ONNX {onnx.__version__} does not have, and are ignored"
    return model, [Diagnostic("W3101", "warning", where, what)]


def _outline(data: bytes, where: str, limits: Limits) -> None:
    """Check the outermost fields; of a large file, count all of them."""
    try:
        outline = walk(data, MODEL, limits.fields, deep=len(data) > SMALL)
    except WireError as error:
        raise InvalidModelError(
            "E3006", f"is not an ONNX model, or is truncated: {error}", where=where, hint=COMPLETE
        ) from error
    except TooManyFieldsError:
        limits.check("E3108", "fields", limits.fields + 1, "fields, at least:", where)
        raise
    if outline.depth > PROTOBUF_DEPTH:
        raise _deep(where)
    repeated = [number for number, times in Counter(outline.top).items() if times > 1 and number in SINGULAR]
    if repeated:
        names = ", ".join(TOP[number].name for number in repeated)
        raise InvalidModelError(
            "E3100", f"has more than one {names}: two models in one file", where=where, hint=COMPLETE
        )
    unknown = sorted(set(outline.top) - set(TOP))
    if unknown:
        raise InvalidModelError(
            "E3102",
            f"has bytes that belong to no model: fields {unknown[:5]}",
            where=where,
            hint="cut what was appended to the file, or install a newer onnx package",
        )


def _unreadable(data: bytes, where: str, limits: Limits) -> InvalidModelError:
    """Why protobuf refuses the bytes; `MemoryError` if it had no memory for them, which it does not say."""
    bytearray(2 * len(data))
    reason = ""
    try:
        if walk(data, MODEL, limits.fields, deep=True).depth > PROTOBUF_DEPTH:
            return _deep(where)
    except WireError as error:
        reason = f": {error}"
    except TooManyFieldsError:
        pass  # the reason stays unknown
    return InvalidModelError("E3006", f"is not an ONNX model, or is truncated{reason}", where=where, hint=COMPLETE)


def _deep(where: str) -> InvalidModelError:
    return InvalidModelError("E3101", f"has messages nested deeper than {PROTOBUF_DEPTH}", where=where)
