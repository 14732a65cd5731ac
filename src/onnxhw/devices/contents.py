"""Which block RAM of a routed design holds what of which memory, and what it holds when memories get other contents."""

from collections.abc import Mapping, Sequence

from ..errors import UsageError
from . import block_ram
from .family import BlockRamLocation, memories

ATTRIBUTE = "ONNXHW_MEMORY"
"""Attribute of a block RAM cell: ``name:width:depth:granularity:tile``, of which `located` reads the place."""


def located(wid: int, cell: str, identity: str) -> BlockRamLocation:
    """The place of a block RAM by its number, its cell's name in the hierarchy and its `ATTRIBUTE`."""
    label, width, depth, granularity, tile = identity.strip().rsplit(":", 4)
    path = cell.rsplit(".", 1)[0]
    return BlockRamLocation(wid, path, label, int(width), int(depth), int(granularity), int(tile))


def new_contents(
    locations: Sequence[BlockRamLocation], images: Mapping[str, Sequence[int]]
) -> dict[int, list[int]]:
    """The nine-bit bytes (`block_ram.contents`) of every block RAM whose memory has an image, by its number.

    `images` are as for `Family.bake`. Raises `UsageError` E2330 for a memory that the design does not have, E2331 for
    an image that is too long or a word that is too wide.
    """
    known = memories(locations)
    for name, image in images.items():
        if name not in known:
            raise UsageError("E2330", f"the design has no memory {name!r}", hint=f"it has {', '.join(sorted(known))}")
        width, depth = known[name]
        if len(image) > depth:
            raise UsageError("E2331", f"memory {name!r} has {depth} words, not {len(image)}")
        wide = next((word for word in image if not 0 <= word < 1 << width), None)
        if wide is not None:
            raise UsageError("E2331", f"a word of memory {name!r} must be 0..2**{width} - 1, not {wide}")
    found = {}
    for location in locations:
        name = location.name or location.path
        if name in images:
            tile = block_ram.plan(location.width, location.depth, location.granularity)[location.tile]
            found[location.wid] = block_ram.contents(tile, images[name])
    return found
