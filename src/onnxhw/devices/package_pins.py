"""`require_package_pins`: the pins of a board's file are pins of its package."""

import difflib
from collections.abc import Collection

from ..board import Board
from ..board_pins import names
from ..errors import UsageError


def require_package_pins(board: Board, known: Collection[str]) -> None:
    """`UsageError` E2376 names a pin of the board's file that its package does not have for a design; `known`: those
    that it has, empty if there is no database to tell."""
    for key, pin in names(dict(board.pins)) if known else ():
        if pin not in known:
            what = f"pins.{key}: package {board.package} of {board.device} has no pin {pin!r} for a design"
            near = difflib.get_close_matches(pin.upper(), sorted(known), 3, cutoff=0.5)
            hint = f"like it: {', '.join(near)}; " if near else ""
            hint += "supply, ground and configuration pins are none; look into the maker's pin table"
            raise UsageError("E2376", what, where=f"board {board.name}", hint=hint)
