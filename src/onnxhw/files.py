"""Reading files that somebody else may have written: regular ones only, within a size, JSON without surprises.

A named pipe would wait for a writer, a device may never end and a sparse file may claim any size; all of these are an
`OSError` here, so that a caller that maps `OSError` to its own code needs to know nothing more.
"""

import errno
import hashlib
import json
import math
import os
import stat
import tempfile
from contextlib import suppress
from typing import Any, BinaryIO

SMALL = 16 << 20
"""Bytes of files that people or this package write as text: board files, manifests, indices. They have some kilobytes;
JSON of this size takes about a second and some hundred megabytes to read."""
CHUNK = 1 << 20
"""Bytes per further read of a file that is longer than it said."""
DEPTH = 64
"""Deepest nesting of JSON that is read; ours has four levels."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read. `OSError` if it cannot be opened, or is a directory, pipe, device or socket.

    Never waits: what is no regular file is not opened, or, if it takes the file's place meanwhile, opened without
    blocking and closed.
    """
    try:
        _require_regular(os.stat(path), path)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
        file = os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb")
    except ValueError as error:  # a null byte in the path
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from error
    try:
        _require_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; a larger one is refused before it is read.

    `OSError` as `open_regular`, and EFBIG for one that is larger.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(size + 1)
        while size <= limit and len(data) > size and (more := file.read(min(CHUNK, limit + 1 - len(data)))):
            data += more
        if max(size, len(data)) > limit:
            what = f"has {max(size, len(data)):,} bytes, more than the {limit:,} that are read"
            raise OSError(errno.EFBIG, what, os.fspath(path))
        return data


def read_text(path: str | os.PathLike[str], limit: int = SMALL) -> str:
    """The text of such a file in UTF-8; `OSError`, or `ValueError` for other bytes."""
    return read_regular(path, limit).decode("utf-8")


def read_json(path: str | os.PathLike[str], limit: int = SMALL) -> Any:
    """The value of a JSON file; `OSError`, or `ValueError` as `parse_json`."""
    return parse_json(read_text(path, limit))


def parse_json(text: str) -> Any:
    """The value of a JSON text; `ValueError` for what is none, is nested deeper than `DEPTH`, or holds numbers that are
    not finite or text that is not Unicode."""
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"its brackets are nested more than {DEPTH} deep") from None
    if "\\ud" in text.lower():  # half a surrogate pair cannot be written anywhere
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    level = [found]
    for _ in range(DEPTH):
        level = [
            item for outer in level if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]  # fmt: skip
        if not level:
            return found
    raise ValueError(f"its brackets are nested more than {DEPTH} deep")


def unwritable(folder: str | os.PathLike[str]) -> OSError | None:
    """Why no file can be made in a folder, or, if it is not there, in the nearest one above it; None if one can.

    One is made: rights alone do not tell, root has them everywhere.
    """
    place = os.fspath(folder)
    while not os.path.exists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place or os.curdir):
            return None
    except OSError as error:
        return error


def write_whole(path: str | os.PathLike[str], data: bytes, prefix: str, mode: int = 0o600) -> None:
    """Write a file completely, or not at all: by way of one beside it whose name begins with `prefix`. `OSError`."""
    handle, temporary = tempfile.mkstemp(prefix=prefix, dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a regular file of any size, in hexadecimal; `OSError` as `open_regular`."""
    state = hashlib.sha256()
    with open_regular(path) as file:
        while data := file.read(CHUNK):
            state.update(data)
    return state.hexdigest()


def reason(error: BaseException) -> str:
    """What an `OSError` or `ValueError` says, without the path, for a message that names it already."""
    return getattr(error, "strerror", None) or str(error)


def _require_regular(state: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", os.fspath(path))


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no finite number")
