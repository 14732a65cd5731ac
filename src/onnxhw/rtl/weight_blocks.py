"""How the weight memory is cut into blocks, each read when the array wants its part of a word."""

from dataclasses import dataclass

from ..config import HwConfig
from ..isa.timing import weight_skew

BLOCK_RAM_BYTES = 2048
"""What the cut reckons with: block RAMs of 18 Kibit that hold so many bytes with their ninth bits, as 512 words of four
bytes, 1024 of two or 2048 of one. ECP5's EBR and GW2A's BSRAM are such."""
WIDEST = 4
"""Bytes of such a block RAM's widest word."""
MOST_TAIL = 64
"""Most weight words in lookup tables: they are cheaper there than in block RAMs of which they fill an eighth."""


def tail(config: HwConfig) -> int:
    """Weight words behind those of the block RAMs that lie in lookup tables."""
    full, rest = divmod(config.weight_depth, BLOCK_RAM_BYTES // WIDEST)
    return rest if full and rest <= MOST_TAIL else 0


@dataclass(frozen=True)
class WeightBlock:
    """A part of every weight word: `name` in the hierarchy, its bytes, and by how many cycles it is read later."""

    name: str
    bytes: tuple[int, ...]
    later: int = 0


def block_rows(config: HwConfig) -> int:
    """Rows of a block of one column: the largest divisor of R whose bytes are in one block RAM at that depth."""
    depth = config.weight_depth - tail(config)
    fit = next((rows for rows in (WIDEST, 2) if depth <= BLOCK_RAM_BYTES // rows), 1)
    return max(rows for rows in range(1, fit + 1) if config.rows % rows == 0)


def blocks(config: HwConfig) -> list[WeightBlock]:
    """The blocks of the weight memory: one, or if a word is a whole tile, `block_rows` rows of a column each.

    Bytes are then wanted `weight_skew` cycles late; a delayed address serves a block, and registers only what is left
    within it.
    """
    if config.tile_words > 1:
        return [WeightBlock("all", tuple(range(config.weight_word)))]
    height = block_rows(config)
    return [
        WeightBlock(
            f"row_{row}_column_{c}",
            tuple((row + i) * config.cols + c for i in range(height)),
            weight_skew(config, row, c),
        )
        for row in range(0, config.rows, height)
        for c in range(config.cols)
    ]
