"""`Stored`: an array of numbers in a file, read row by row; `stored_arrays`: those of an .npy or .npz file.

What a header claims is held against the file's size before anything is read, and no more is read than is asked for: an
.npz of a few megabytes can hold gigabytes.
"""

import zipfile
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ..errors import UsageError
from ..files import open_regular, reason
from .formula import Array

Refuse = Callable[[str], UsageError]
"""Makes the error of a text that says what is wrong."""

VERSIONS = ((1, 0), (2, 0), (3, 0))
"""Of the format of .npy files."""
DIMENSIONS = 32
"""Most axes of an array: numpy before its release 2 has no more."""
HEADER = 1 << 14
"""Most bytes of an array's header; numpy writes 118."""
LARGEST = 1 << 32
"""Most bytes of an array that are read at once; a compressed file of a few megabytes can hold them."""
CHUNK = 1 << 24
"""Most bytes read at a time; memory grows with what is there, not with what is claimed."""
ZIP, NPY, PICKLE = b"PK", npy.MAGIC_PREFIX, b"\x80"
"""How the files begin."""


def assigned(path: Path) -> str:
    """What to do about a path of the form NAME=FILE that is not there; empty for another one."""
    name, _, file = path.name.partition("=")
    if not file or path.exists():
        return ""
    return f"give the file alone, {file}; of several inputs an .npz: numpy.savez('inputs.npz', {name}=array, ...)"


class Stored:
    """An array of which ``[start:stop]`` reads rows, and ``[:]`` all (of an array without axes, too).

    `opened` opens the bytes of an .npy file, `size` is how many there are, `what` is how messages name the array. In
    Fortran's order any row takes the whole array. `refuse` for what is damaged, holds objects or exceeds memory.
    """

    def __init__(self, opened: Callable[[], IO[bytes]], size: int, what: str, refuse: Refuse) -> None:
        self._what, self._refuse = what, refuse
        self._all: Array | None = None
        self._stream: IO[bytes] | None = None
        try:
            self._stream = opened()
            version = npy.read_magic(self._stream)
            if version not in VERSIONS:
                raise ValueError("a version that there is not")
            length = int.from_bytes(self._stream.read(2 if version == (1, 0) else 4), "little")
            if length > HEADER:
                raise ValueError("a header of so many bytes")
            self._stream.seek(0)
            npy.read_magic(self._stream)
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self._fortran, self.dtype = read_header(self._stream)
            self._begin = self._stream.tell()
        except Exception as error:  # numpy, zipfile and zlib raise many kinds for damaged files
            raise refuse(f"{what} is damaged or truncated") from error
        if self.dtype.hasobject:
            raise refuse(f"{what} holds Python objects, not numbers")
        sizes = [max(1, length) for length in self.shape]  # numpy refuses the others' product, where one is 0 too
        whole = all(type(length) is int for length in self.shape)
        if not whole or len(sizes) > DIMENSIONS or prod(sizes) * max(1, self.dtype.itemsize) >= 1 << 62:
            raise refuse(f"{what} has a shape that no array has: {str(list(self.shape))[:80]}")
        if self.dtype.kind in "mMV":  # V: records, arrays as elements, mere bytes
            raise refuse(f"{what} holds dates or records, not numbers")
        self.bytes = prod(self.shape) * self.dtype.itemsize
        if any(length < 0 for length in self.shape) or self._begin + self.bytes > size:
            claim = f"{self.dtype} {list(self.shape)} takes {self.bytes:,} bytes, {size - self._begin:,} are there"
            raise refuse(f"{what} is damaged or truncated: {claim}")
        try:
            np.broadcast_to(np.zeros((), self.dtype), self.shape)
        except Exception as error:  # more axes or elements than numpy has, elements of no bytes
            raise refuse(f"{what} has a shape that no array has: {str(self.shape)[:200]}") from error
        if self.dtype.itemsize == 0 and prod(self.shape) > size:
            raise refuse(f"{what} has {prod(self.shape):,} elements of no bytes")

    def __del__(self) -> None:
        if self._stream is not None:
            self._stream.close()

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Array:
        if self.ndim == 0 or self._fortran:
            if self._all is None:
                order: Any = "F" if self._fortran else "C"
                self._all = np.ndarray(self.shape, self.dtype, self._read(0, self.bytes), order=order)
            return self._all[rows] if self.ndim else self._all
        start, stop, _ = rows.indices(len(self))
        row = prod(self.shape[1:]) * self.dtype.itemsize
        count = max(0, stop - start)
        return np.ndarray((count, *self.shape[1:]), self.dtype, self._read(start * row, count * row))

    def _read(self, start: int, count: int) -> bytearray:
        """So many bytes of the array's; `refuse` if they are not there."""
        if count > LARGEST:
            raise self._refuse(f"{count:,} bytes of {self._what} are more than are read at once: ask for fewer samples")
        data = bytearray()
        assert self._stream is not None
        try:
            self._stream.seek(self._begin + start)
            while len(data) < count and (more := self._stream.read(min(CHUNK, count - len(data)))):
                data += more
        except MemoryError as error:
            asked = f"{count:,} bytes of {self._what} are more than memory holds: ask for fewer samples"
            raise self._refuse(asked) from error
        except Exception as error:
            raise self._refuse(f"{self._what} is damaged or truncated") from error
        if len(data) < count:
            raise self._refuse(f"{self._what} is damaged or truncated")
        return data


def stored_arrays(path: Path, refuse: Refuse) -> "Stored | StoredArrays":
    """The array of an .npy file, or those of an .npz; which of the two it is, its content says."""
    try:
        with open_regular(path) as file:
            start = file.read(len(NPY))
    except OSError as error:
        raise refuse(f"cannot be read: {reason(error)}") from error
    if start.startswith(NPY):
        return Stored(lambda: open_regular(path), path.stat().st_size, "it", refuse)
    if not start.startswith(ZIP):
        what = "is empty" if not start else "is a pickle, which is not loaded" if start.startswith(PICKLE) else ""
        raise refuse(what or "is neither an .npy nor an .npz file")
    return StoredArrays(path, refuse)


class StoredArrays:
    """The arrays of an .npz by name; what is not asked for is not looked at."""

    def __init__(self, path: Path, refuse: Refuse) -> None:
        self._refuse = refuse
        try:
            self._archive = zipfile.ZipFile(open_regular(path))
        except Exception as error:  # zipfile raises many kinds for damaged files
            raise refuse("is a damaged or truncated .npz file") from error
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self._members:
                raise refuse(f"has two arrays {name[:60]!r}: which of them is meant, nothing says")
            self._members[name] = info
        self.names = list(self._members)
        """Those of all arrays."""

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Stored:
        """One of them; refused if it is none."""
        info = self._members[name]
        return Stored(lambda: self._archive.open(info), info.file_size, f"its array {name!r}", self._refuse)
