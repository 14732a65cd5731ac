"""Device families: a package of this folder each, which has a `Family` by the name ``FAMILY``."""

import importlib

from ..board import Board, require_family
from .family import Family


def find_family(name: str) -> Family:
    """The family of that name; `UsageError` E2306 as of `require_family`."""
    require_family(name, "devices")
    found: Family = importlib.import_module(f".{name}", __name__).FAMILY
    return found


def family_of(board: Board) -> Family:
    """The family of a board's device."""
    return find_family(board.family)
