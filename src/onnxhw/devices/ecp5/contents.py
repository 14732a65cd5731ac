"""Memory contents put into a routed design, without routing it again.

nextpnr numbers the block RAMs of a design (WID) and writes their contents, 2048 bytes of 9 bits each, as
``.bram_init`` sections of its textual configuration. Which number belongs to which part of which memory is read
from the routed netlist (`locate`), where every block RAM of `onnxhw.rtl.cells.BlockRam` carries its identity as an
attribute; `bake` then replaces contents. Packing the result takes seconds.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import UsageError
from ..contents import ATTRIBUTE, located, new_contents
from ..family import BlockRamLocation

SECTION = re.compile(r"^\.bram_init (\d+)\n((?:[0-9a-f ]+\n)+)", re.MULTILINE)
PER_LINE = 8


def locate(routed: Mapping[str, Any]) -> list[BlockRamLocation]:
    """The block RAMs of a netlist that ``nextpnr-ecp5 --write`` wrote, by number."""
    found = []
    for module in routed["modules"].values():
        for name, cell in module.get("cells", {}).items():
            identity = cell.get("attributes", {}).get(ATTRIBUTE)
            if cell.get("type") != "DP16KD" or identity is None:
                continue
            found.append(located(int(str(cell["attributes"]["WID"]).strip(), 2), name, str(identity)))
    return sorted(found, key=lambda location: location.wid)


def bake(config: str, locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]) -> str:
    """The textual configuration with other memory contents.

    `images` are words from address 0 on, by the memory's name or path; the rest of a memory becomes 0, memories that
    are not named stay as they are. Raises `UsageError` E2330 for a memory that the design does not have, E2331 for an
    image that is too long or a word that is too wide, E2332 if the configuration does not have the block RAM.
    """
    contents = new_contents(locations, images)
    done = set()

    def replace(match: re.Match[str]) -> str:
        wid = int(match[1])
        if wid not in contents:
            return match[0]
        done.add(wid)
        return f".bram_init {wid}\n{section(contents[wid])}"

    text = SECTION.sub(replace, config)
    missing = sorted(set(contents) - done)
    if missing:
        raise UsageError("E2332", f"the configuration has no contents of block RAM {missing[0]}")
    return text


def section(data: Sequence[int]) -> str:
    """The lines of a ``.bram_init`` section."""
    rows = range(0, len(data), PER_LINE)
    return "".join(" ".join(f"{value:03x}" for value in data[row : row + PER_LINE]) + "\n" for row in rows)
