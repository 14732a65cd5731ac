"""External data: `load_external` puts the bytes of data files into the tensors that refer to them.

Files are opened component by component beneath the model's folder, never through a link, and everything is asked of the
open file, so that nothing can be exchanged between check and use.
"""

import hashlib
import os
import stat
from math import prod
from pathlib import Path

import onnx

from ..diagnostics import Diagnostic
from ..errors import InvalidModelError
from .elements import element
from .large_constants import LargeConstants
from .limits import Limits
from .location import DataLocation, location
from .payload import shape_of, title, typed_fields

CHUNK = 1 << 20
FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER_FLAGS = FILE_FLAGS | getattr(os, "O_DIRECTORY", 0)
Titled = tuple[onnx.TensorProto, str]


class DataFolder:
    """The folder of a model, open while its tensors are loaded. One data file is open at a time."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        self.root = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
        self.handle, self.size, self.path = -1, 0, ""
        self.digests: dict[str, str] = {}
        self.seen: set[str] = set()

    def close(self) -> None:
        """Close what is open."""
        self._leave()
        os.close(self.root)

    def read(self, place: DataLocation, needed: int, where: str) -> bytes:
        """`needed` bytes from their place; E3135 if the file does not have them."""
        if place.path != self.path:
            self._enter(place, where)
        if place.offset + needed > self.size:
            raise InvalidModelError(
                "E3135",
                f"needs bytes {place.offset} to {place.offset + needed} of {place.path!r}, which has {self.size}",
                where=where,
                hint="check that the data file was copied completely, and belongs to this model",
            )
        if place.checksum and self._digest() != place.checksum:
            raise InvalidModelError(
                "E3138",
                f"{place.path!r} does not have the SHA-1 {place.checksum}",
                where=where,
                hint="the data file was changed, or belongs to another model",
            )
        data = self._bytes(place.offset, needed)
        if len(data) < needed:
            raise InvalidModelError("E3135", f"{place.path!r} became shorter while it was read", where=where)
        return data

    def _bytes(self, offset: int, needed: int) -> bytes:
        """Up to `needed` bytes, in memory once; one call of the system gives at most 2 GiB."""
        with open(self.handle, "rb", closefd=False) as file:
            file.seek(offset)
            return file.read(needed)

    def _digest(self) -> str:
        if self.path not in self.digests:
            self.limits.check("E3139", "total_bytes", self.size, "bytes to check in the data file:", self.path)
            hasher, offset = hashlib.sha1(usedforsecurity=False), 0
            while part := os.pread(self.handle, CHUNK, offset):
                hasher.update(part)
                offset += len(part)
            self.digests[self.path] = hasher.hexdigest()
        return self.digests[self.path]

    def _enter(self, place: DataLocation, where: str) -> None:
        """Open a data file instead of the one that is open."""
        self._leave()
        self.seen.add(place.path)
        self.limits.check("E3140", "data_files", len(self.seen), "data files:", where)
        folder = self.root
        try:
            for part in place.parts[:-1]:
                deeper = self._open(part, FOLDER_FLAGS, folder, place, where)
                if folder != self.root:
                    os.close(folder)
                folder = deeper
            self.handle = self._open(place.parts[-1], FILE_FLAGS, folder, place, where)
        finally:
            if folder != self.root:
                os.close(folder)
        state = os.fstat(self.handle)
        if not stat.S_ISREG(state.st_mode):
            raise InvalidModelError("E3131", f"external data {place.path!r} is not a regular file", where=where)
        if state.st_nlink > 1:
            raise InvalidModelError(
                "E3130", f"external data {place.path!r} is a hard link", where=where, hint="make a copy of the file"
            )
        self.size, self.path = state.st_size, place.path

    def _open(self, part: str, flags: int, folder: int, place: DataLocation, where: str) -> int:
        try:
            if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                raise InvalidModelError(
                    "E3129",
                    f"external data {place.path!r} leads through the symbolic link {part!r}",
                    where=where,
                    hint="put the file itself beside the model",
                )
            return os.open(part, flags, dir_fd=folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidModelError(
                "E3008",
                f"external data cannot be loaded: {place.path!r}: {reason}",
                where=where,
                hint="keep the data files beside the model",
            ) from error

    def _leave(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
        self.handle, self.size, self.path = -1, 0, ""


def load_external(
    tensors: list[Titled], folder: Path | None, limits: Limits, where: str, large: LargeConstants
) -> list[Diagnostic]:
    """Load the data of all tensors that are stored outside, into them or `large`; `folder` None: the model has none,
    E3008.

    Types, shapes, locations and the sum of all sizes (E3139) are checked before the first file is opened. E3129 a
    symbolic link, E3130 a hard link, E3131 no regular file, E3132 a string tensor, E3133 data inside as well, E3135
    beyond the end of the file, E3136 a length that does not fit the shape, E3138 a checksum that differs, E3140 too
    many files.
    """
    outside = [
        (index, *item) for index, item in enumerate(tensors) if item[0].data_location == onnx.TensorProto.EXTERNAL
    ]
    warnings = [
        Diagnostic("W3103", "warning", name or title(tensor), "says where external data lies, but holds its data")
        for tensor, name in tensors
        if len(tensor.external_data) and tensor.data_location != onnx.TensorProto.EXTERNAL
    ]
    if not outside:
        return warnings
    if folder is None:
        raise InvalidModelError(
            "E3008",
            f"{outside[0][2] or title(outside[0][1])} is in an external file, but the model is given as bytes",
            where=where,
            hint="give the path of the model",
        )
    places: list[tuple[int, onnx.TensorProto, DataLocation, int, str]] = []
    total = 0
    for index, tensor, name in outside:
        label = name or title(tensor)
        place, needed = _place(tensor, limits, label)
        total += needed
        limits.check("E3139", "total_bytes", total, "bytes of external data:", where)
        places.append((index, tensor, place, needed, label))
        if place.ignored:
            what = f"external data with keys of onnxruntime that are ignored: {', '.join(place.ignored[:3])}"
            warnings.append(Diagnostic("W3102", "warning", label, what))
    data = _folder(folder, limits, where)
    try:
        for index, tensor, place, needed, label in places:
            read = data.read(place, needed, label)
            if not large.take(index, tensor, read, label):
                tensor.raw_data = read
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    finally:
        data.close()
    return warnings


def _folder(folder: Path, limits: Limits, where: str) -> DataFolder:
    try:
        return DataFolder(folder, limits)
    except OSError as error:
        raise InvalidModelError("E3008", f"the model's folder cannot be read: {error.strerror}", where=where) from error


def _place(tensor: onnx.TensorProto, limits: Limits, where: str) -> tuple[DataLocation, int]:
    """Where the data lies, and how many bytes its type and shape need."""
    kind = element(tensor.data_type, where)
    if kind.string:
        raise InvalidModelError("E3132", "is a string tensor with external data", where=where)
    if tensor.HasField("raw_data") or typed_fields(tensor):
        raise InvalidModelError("E3133", "has external data and holds data as well", where=where)
    needed = kind.raw_bytes(prod(shape_of(tensor.dims, where, limits)))
    place = location(tensor, where)
    if place.length is not None and place.length != needed:
        raise InvalidModelError(
            "E3136",
            f"has {place.length} bytes of external data, its type and shape need {needed}",
            where=where,
            hint="the data file belongs to another model, or the shape was changed",
        )
    return place, needed
