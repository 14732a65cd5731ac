"""Device families: a package of this folder each, which has a `Family` by the name ``FAMILY``."""

import importlib

from ..board import Board, families, require_family
from ..errors import UsageError
from .family import DevicePart, Family


def find_family(name: str) -> Family:
    """The family of that name; `UsageError` E2306 as of `require_family`."""
    require_family(name, "devices")
    found: Family = importlib.import_module(f".{name}", __name__).FAMILY
    return found


def find_part(device: str) -> tuple[Family, DevicePart]:
    """The family that knows a device, and what it knows of it; `UsageError` E2371 names the devices there are."""
    known: list[str] = []
    for name in families():
        parts = (family := find_family(name)).parts()
        if device in parts:
            return family, parts[device]
        known += parts
    raise UsageError("E2371", f"device {device!r} is not supported", hint=f"device: {', '.join(known)}")


def family_of(board: Board) -> Family:
    """The family of a board's device."""
    return find_family(board.family)
