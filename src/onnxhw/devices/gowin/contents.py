"""Memory contents put into a routed design, without routing it again.

What nextpnr leaves is its netlist as JSON; contents are the parameters ``INIT_RAM_00`` to ``INIT_RAM_3F`` of the block
RAMs, of which every one carries its identity as an attribute. They are numbered in the order of their names.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import UsageError
from ..contents import ATTRIBUTE, located, new_contents
from ..family import BlockRamLocation
from .cells import init_word

ROWS = 64
"""Parameters of a block RAM's contents."""


def _cells(routed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The block RAMs that carry an identity, by name, in the order of their names."""
    found = (pair for module in routed["modules"].values() for pair in module.get("cells", {}).items())
    yield from sorted((name, cell) for name, cell in found if ATTRIBUTE in cell.get("attributes", {}))


def locate(routed: Mapping[str, Any]) -> list[BlockRamLocation]:
    """The block RAMs of a netlist that ``nextpnr --write`` wrote, by number."""
    # The cell is one level below the module of its tile.
    return [
        located(wid, name.rsplit(".", 1)[0], str(cell["attributes"][ATTRIBUTE]))
        for wid, (name, cell) in enumerate(_cells(routed))
    ]


def bake(routed: str, locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]) -> str:
    """The netlist with other memory contents; `UsageError` E2330 and E2331 as of `new_contents`, E2332 if it does not
    have the block RAM."""
    contents, netlist = new_contents(locations, images), json.loads(routed)
    cells = [cell for _, cell in _cells(netlist)]
    for wid, data in contents.items():
        if wid >= len(cells):
            raise UsageError("E2332", f"the configuration has no contents of block RAM {wid}")
        bits = 9 if cells[wid]["attributes"]["BSRAM_SUBTYPE"].strip() == "X9" else 8
        for row in range(ROWS):
            cells[wid]["parameters"][f"INIT_RAM_{row:02X}"] = f"{init_word(data, row, bits):0{32 * bits}b}"
    return json.dumps(netlist)
