"""`BootFlash`: where in a board's SPI flash the image lies from which a bitstream of its own accord loads a network."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import short

KEYS: dict[str, tuple[type, str]] = {
    "resource": (str, "what the platform calls the pins of the flash memory that the device is configured from"),
    "bytes": (int, "size of the flash memory; 16 MB at most are read"),
    "offset": (int, "where the image begins: behind the largest bitstream, at the begin of an erasable block"),
    "program": (list, "the command that writes {image} at {offset}"),
}
"""Keys of a board file's table ``boot``: the types of their values, and what they say."""
BLOCK = 1 << 16
"""Bytes that are erased together (command D8 of every 25-series flash): the image must not begin in the bitstream's."""
LARGEST = 1 << 24
"""What three bytes of address reach."""


@dataclass(frozen=True)
class BootFlash:
    """The SPI flash that a board's device is configured from, and the place of the image in it.

    Parameters
    ----------
    resource : the platform's resource with the pins ``cs``, ``copi`` and ``cipo``, perhaps ``hold`` and ``wp``.
    bytes, offset : as of `KEYS`.
    program : the words of the command; ``{image}`` stands for the file, ``{offset}`` for `offset`.
    """

    resource: str
    bytes: int
    offset: int
    program: tuple[str, ...]

    @property
    def room(self) -> int:
        """Bytes that an image may have."""
        return self.bytes - self.offset

    def command(self, image: Path | str) -> list[str]:
        """The words that write an image."""
        return [word.replace("{image}", str(image)).replace("{offset}", str(self.offset)) for word in self.program]


def require_boot(table: Mapping[str, Any]) -> None:
    """What the values of a board file's table ``boot`` must be beyond their types; else `ValueError`."""
    if not table.get("resource", "spi_flash"):
        raise ValueError("boot.resource must not be empty")
    if not 0 < table["bytes"] <= LARGEST:
        raise ValueError(f"boot.bytes must be above 0 and at most {LARGEST:,}, not {table['bytes']:,}")
    if table["offset"] % BLOCK or not 0 < table["offset"] < table["bytes"]:
        raise ValueError(
            f"boot.offset must be a multiple of {BLOCK:,} above 0 and below boot.bytes, not {table['offset']:,}"
        )
    words = table["program"]
    if any(not word.isprintable() or not word for word in words):
        raise ValueError("boot.program: the words of a command must be printable")
    for needed in ("{image}", "{offset}"):
        if not any(needed in word for word in words[1:]):
            raise ValueError(f'boot.program must have a word "{needed}", not {short(words)}')
