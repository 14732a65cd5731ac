"""Pins of the Gowin parts: which a package has, and the electrical settings of those that a board file declares."""

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...board import Board
from ..package_pins import require_package_pins
from . import parts

ATTRIBUTES = {
    # A line that nobody drives is idle, not an endless break.
    "input": {"PULL_MODE": "UP"},
    "high": {"PULL_MODE": "DOWN"},
    "low": {"PULL_MODE": "UP"},
}
"""Settings by what a pin is (`onnxhw.devices.declared.Attributes`), as the constraint file writes them."""
CONFIGURATION = {"TMS", "TCK", "TDI", "TDO", "RECONFIG_N", "READY", "DONE", "MCLK", "MCS_N", "MO", "MI", "SCLK", "SI",
                 "SO", "SSPI_CS_N", "FASTRD_N", "DIN", "DOUT", "CLKHOLD_N"}  # fmt: skip
"""Functions of pins with which the device is configured: gowin_pack gives none of them to a design unless asked."""


@lru_cache(maxsize=1)
def _database(path: Path) -> Any:
    """Apicula's database of the die, from which nextpnr's own is made. It takes a second."""
    return importlib.import_module("apycula.chipdb").load_chipdb(str(path))


def package_pins(part: str) -> frozenset[str]:
    """The pins of a part that a design may use; empty if the database is not there to tell, which is looked up anew
    each time: it may be installed while a server runs."""
    found = importlib.util.find_spec("apycula")
    if found is None or not found.submodule_search_locations:
        return frozenset()
    database = _database(Path(found.submodule_search_locations[0]) / f"{parts.FAMILY}.msgpack.xz")
    if part not in database.packages:
        return frozenset()
    package, device, _ = database.packages[part]
    pins = database.pinout[device][package]
    return frozenset(pin for pin, (_, functions) in pins.items() if not CONFIGURATION.intersection(functions))


def check_pins(board: Board) -> None:
    """`UsageError` E2376 names a pin of the board's file that its package does not have for a design."""
    require_package_pins(board, package_pins(parts.part_number(board)))
