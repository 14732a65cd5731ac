"""Device families: a package of this folder each, which has a `Family` by the name ``FAMILY``."""

import importlib

from ..board import Board, families
from ..errors import UsageError
from .family import Family


def find_family(name: str) -> Family:
    """The family of that name; `UsageError` E2306 names those there are."""
    if name not in families():
        raise UsageError("E2306", f"no device family named {name!r}", hint=f"families: {', '.join(families())}")
    found: Family = importlib.import_module(f".{name}", __name__).FAMILY
    return found


def family_of(board: Board) -> Family:
    """The family of a board's device."""
    return find_family(board.family)
