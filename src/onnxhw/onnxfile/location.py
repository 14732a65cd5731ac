"""`DataLocation`: where a tensor says its external data lies, checked before any file is touched."""

import re
from dataclasses import dataclass

import onnx

from ..errors import InvalidModelError

KEYS = ("location", "offset", "length", "checksum")
PREPACKED = re.compile(r"prepacked_[0-9]+", re.ASCII)
"""Keys that onnxruntime adds for itself when it saves weights in its own layout; without meaning for others."""
NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
SHA1 = re.compile(r"[0-9a-fA-F]{40}", re.ASCII)
DRIVE = re.compile(r"[A-Za-z]:", re.ASCII)
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://", re.ASCII)
CONTROL = re.compile("[\0-\x1f\x7f]")
MARKER = "_ORT_MEM_ADDR_"
"""onnxruntime's mark for "the data is at this address of the process"."""


@dataclass(frozen=True)
class DataLocation:
    """Components of a path beneath the model's folder, and the bytes in that file; `length` None: as many as needed."""

    parts: tuple[str, ...]
    offset: int
    length: int | None
    checksum: str
    ignored: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path as one string."""
        return "/".join(self.parts)


def location(tensor: onnx.TensorProto, where: str) -> DataLocation:
    """The checked location of a tensor's external data.

    E3120 no location, E3121 an unknown key, E3122 a key twice, E3123 to E3128 a path that is not one beneath the
    model's folder, E3134 an offset or length that is no number, E3137 a checksum that is no SHA-1.
    """
    found: dict[str, str] = {}
    ignored = []
    for entry in tensor.external_data:
        key, value = entry.key, entry.value
        if isinstance(key, bytes) or isinstance(value, bytes):
            raise InvalidModelError("E3126", "has external data with text that is not UTF-8", where=where)
        if PREPACKED.fullmatch(key):
            ignored.append(key)
            continue
        if key not in KEYS:
            raise InvalidModelError("E3121", f"has external data with the unknown key {key[:40]!r}", where=where)
        if key in found:
            raise InvalidModelError("E3122", f"has external data with {key} twice", where=where)
        found[key] = value
    if "location" not in found:
        raise InvalidModelError("E3120", "has external data without a location", where=where)
    offset = _number(found.get("offset", "0"), "offset", where)
    length = _number(found["length"], "length", where) if "length" in found else None
    checksum = found.get("checksum", "")
    if checksum and not SHA1.fullmatch(checksum):
        raise InvalidModelError("E3137", f"has a checksum that is no SHA-1: {checksum[:50]!r}", where=where)
    return DataLocation(_parts(found["location"], where), offset, length, checksum.lower(), tuple(ignored))


def _number(text: str, name: str, where: str) -> int:
    if not NUMBER.fullmatch(text):
        raise InvalidModelError("E3134", f"has an {name} that is not a whole number: {text[:40]!r}", where=where)
    return int(text)


def _parts(path: str, where: str) -> tuple[str, ...]:
    shown = repr(path[:100])
    if MARKER in path or path.startswith("*"):
        raise InvalidModelError("E3123", f"refers to memory of the process, not to a file: {shown}", where=where)
    if URL.match(path):
        raise InvalidModelError("E3124", f"refers to a URL: {shown}", where=where, hint="download the data first")
    if path.startswith(("/", "\\")) or DRIVE.match(path):
        raise InvalidModelError(
            "E3125", f"refers to an absolute path: {shown}", where=where, hint="keep the data beside the model"
        )
    if CONTROL.search(path) or "\\" in path or len(path) > 1024:
        raise InvalidModelError("E3126", f"has a path that is not POSIX text: {shown}", where=where)
    parts = tuple(part for part in path.split("/") if part != ".")
    if ".." in parts:
        raise InvalidModelError(
            "E3127", f"refers to a path outside the model's folder: {shown}", where=where, hint="move the data there"
        )
    if not parts or "" in parts:
        raise InvalidModelError("E3128", f"has a path with an empty part: {shown}", where=where)
    return parts
