"""``program.ohw``: a compiled model as a file.

The same program gives the same bytes. A file appears under its name only when it is complete. What is
not exactly what `save` wrote is refused by name: not a program file (E2120), damaged (E2121), another format
version (E2122), a configuration that means something else here or is not the one asked for (E2123). The messages are
declared in `schema`, and made and read in `records`.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from ..config import HwConfig
from ..errors import UsageError
from ..files import open_regular, read_regular, reason
from ..protobuf_wire import TooManyFieldsError, WireError, table, varint, walk
from .parts import Program
from .records import pack, unpack
from .schema import message

FORMAT = 7
"""Version of the container and of the instruction encoding; a file of another version is refused."""
MAGIC = "onnxhw program"
BYTES = (1 << 31) - 1
"""Largest file that is read: what protobuf reads."""
FIELDS = 1 << 20
"""Most protobuf fields of a file: each takes two bytes there and a hundred in memory. Ours have some thousands."""
_PAYLOAD = b"\x22"
"""The tag of the payload, protobuf field 4."""
_TABLES = {name: table(message(name).DESCRIPTOR) for name in ("File", "Program")}
_HEAD = bytes((0x0A, len(MAGIC))) + MAGIC.encode()
"""How every program file begins: the magic as protobuf field 1."""


# -- bytes -----------------------------------------------------------------------------------------


def dumps(program: Program) -> bytes:
    """The bytes of a program file."""
    return _wrap(bytes(pack(program).SerializeToString(deterministic=True)))


def _wrap(payload: bytes) -> bytes:
    file = message("File")
    file.magic, file.format = MAGIC, FORMAT
    file.sha256, file.payload = hashlib.sha256(payload).digest(), payload
    return bytes(file.SerializeToString(deterministic=True))


def _exact(data: bytes, file: Any) -> bool:
    """Whether the bytes are what `_wrap` makes of the payload; without a further copy of it."""
    head, payload = message("File"), file.payload
    head.magic, head.format, head.sha256 = MAGIC, file.format, hashlib.sha256(payload).digest()
    before = head.SerializeToString(deterministic=True) + (_PAYLOAD + varint(len(payload)) if payload else b"")
    return len(data) == len(before) + len(payload) and data.startswith(before)


def loads(data: bytes, where: str = "") -> Program:
    """The program of a file's bytes; `where` names the file in errors."""
    if not data.startswith(_HEAD):
        raise UsageError("E2120", "not an onnxhw program file", where=where, hint="onnxhw compile writes program.ohw")
    file = message("File")
    try:
        walk(data, _TABLES["File"], FIELDS, deep=True)
        file.ParseFromString(data)
    except (DecodeError, WireError, TooManyFieldsError):
        raise _damaged(where, "it is truncated or its fields cannot be read") from None
    if file.format != FORMAT:
        raise UsageError(
            "E2122",
            f"program format {file.format}; this release reads format {FORMAT}",
            where=where,
            hint="compile the model again",
        )
    if not _exact(data, file):  # stricter than the checksum: fields that protobuf would skip count
        raise _damaged(where, "its checksum differs or it has bytes that do not belong to it")
    record = message("Program")
    try:
        walk(file.payload, _TABLES["Program"], FIELDS, deep=True)
        record.ParseFromString(file.payload)
        return unpack(record, where)
    except TooManyFieldsError as error:
        raise _damaged(where, f"it has more than {FIELDS:,} fields") from error
    except Exception as error:  # the right checksum around anything: every kind of exception
        if isinstance(error, UsageError) and error.code == "E2123":
            raise
        raise _damaged(where, f"its contents cannot be read ({' '.join(str(error).split())[:300]})") from error


def _damaged(where: str, why: str) -> UsageError:
    return UsageError("E2121", f"damaged program file: {why}", where=where, hint="copy it or compile the model again")


# -- files -----------------------------------------------------------------------------------------


def save(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program file: completely or not at all. `UsageError` E2125 if it cannot be written."""
    path = Path(os.path.realpath(path))  # a link in a circle stays one
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError("E2125", "cannot write: not a regular file", where=str(path))
    data = dumps(program)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except OSError as error:
        raise UsageError("E2125", f"cannot write: {error.strerror or error}", where=str(path)) from error


def load(path: str | os.PathLike[str], config: HwConfig | None = None) -> Program:
    """Read a program file; with `config`, only one whose hardware parts are compiled for that configuration.

    `UsageError` E2124 if it cannot be read, else those of the module.
    """
    program = loads(_read(path), str(path))
    own = program.config
    if config is not None and own is not None and config.fingerprint != own.fingerprint:
        raise UsageError(
            "E2123",
            f"compiled for {own.name!r} ({own.fingerprint}), not for {config.name!r} ({config.fingerprint})",
            where=str(path),
            hint="compile the model for this configuration",
        )
    return program


def _read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; of one that is no program file only the beginning."""
    try:
        with open_regular(path) as file:
            begins = file.read(len(_HEAD))
        return read_regular(path, BYTES) if begins == _HEAD else begins
    except (OSError, MemoryError) as error:
        raise UsageError("E2124", f"cannot read: {reason(error) or 'not enough memory'}", where=str(path)) from error
