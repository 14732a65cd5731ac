"""How a memory is cut into block RAMs: plain arithmetic, shared by the cells, the estimate and `--standalone`.

For block RAMs of 18 kbit with a port that writes and one that reads, as the ECP5 (EBR) and Gowin's GW2A (BSRAM) have
them; here they are called EBR. One holds 2048 bytes of 9 bits. Its *aspect* is the number of data bits per address: 36
(512 deep) down to 1 (16,384 deep); aspects below 9 leave the ninth bits unused. Aspects 36 and 18 have one write enable
per byte, the others one in all.

A memory is a stack of *segments* along the address, each a row of EBRs of the same aspect, so that a deep memory
needs no output multiplexer (16,384 words) or a small one. `plan` picks the segments of least cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

BYTES = 2048
"""Nine-bit bytes of one EBR, as in the parameters that say what it starts with."""
BYTE = 9
ASPECTS = (1, 2, 4, 9, 18, 36)
EBR_COST = 400
"""What an EBR is worth in LUT4: the ratio of the two on every ECP5, and on a GW2A-18."""
SEGMENT_COST = 200
"""What one more segment is worth in LUT4 beside its multiplexer: decoding and a level of logic."""


def words(aspect: int) -> int:
    """Addresses of an EBR of that aspect."""
    return BYTES * (8 if aspect < BYTE else BYTE) // aspect


@dataclass(frozen=True)
class DataSlot:
    """`bits` bits of a memory word, from `low` on, in an EBR's data from bit `at` on; written by enable `enable`."""

    at: int
    low: int
    bits: int
    enable: int


@dataclass(frozen=True)
class BlockRamTile:
    """One EBR: its aspect, the first address that it holds and what it holds of each word."""

    aspect: int
    base: int
    slots: tuple[DataSlot, ...]

    @property
    def words(self) -> int:
        """Addresses that it holds."""
        return words(self.aspect)


def chunks(width: int, granularity: int, aspect: int) -> list[tuple[int, int, int]]:
    """Pieces ``(low, bits, enable)`` of a word, each of at most a byte (or of the aspect, if smaller)."""
    unit = min(BYTE, aspect)
    pieces = []
    for enable, lane in enumerate(range(0, width, granularity)):
        top = min(lane + granularity, width)
        pieces += [(low, min(unit, top - low), enable) for low in range(lane, top, unit)]
    return pieces


def per_ebr(aspect: int) -> int:
    """Pieces that fit in one EBR of that aspect."""
    return max(1, aspect // BYTE)


def ebrs(width: int, granularity: int, aspect: int) -> int:
    """EBRs side by side of a segment of that aspect."""
    return -(-len(chunks(width, granularity, aspect)) // per_ebr(aspect))


@lru_cache(maxsize=1024)
def segments(width: int, depth: int, granularity: int) -> tuple[int, ...]:
    """The aspects of the segments from address 0 on, deepest first."""
    unit = words(ASPECTS[-1])
    cost = {aspect: EBR_COST * ebrs(width, granularity, aspect) + width + SEGMENT_COST for aspect in ASPECTS}
    best: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for filled in range(1, -(-depth // unit) + 1):
        options = []
        for aspect in ASPECTS:
            before, chosen = best[max(0, filled - words(aspect) // unit)]
            options.append((before + cost[aspect], tuple(sorted((*chosen, aspect)))))
        best.append(min(options))
    return best[-1][1]


@lru_cache(maxsize=1024)
def plan(width: int, depth: int, granularity: int, slices: int = 1) -> tuple[BlockRamTile, ...]:
    """The EBRs of a memory of `depth` words of `width` bits, with one write enable per `granularity` bits.

    They are in order of the address and then of the bit; a tile's place in this list is its number for good. None holds
    bits of two of the `slices` of the word: where they would, the slices follow one another, each as a memory.
    """
    if slices > 1:
        part, whole = width // slices, plan(width, depth, granularity)
        if any(tile.slots[0].low // part != tile.slots[-1].low // part for tile in whole):
            return tuple(_moved(tile, part * n, part // granularity * n)
                         for n in range(slices) for tile in plan(part, depth, granularity))  # fmt: skip
        return whole
    tiles, base = [], 0
    for aspect in segments(width, depth, granularity):
        pieces, step = chunks(width, granularity, aspect), per_ebr(aspect)
        for first in range(0, len(pieces), step):
            row = pieces[first : first + step]
            tiles.append(BlockRamTile(aspect, base, tuple(DataSlot(i * BYTE, *piece) for i, piece in enumerate(row))))
        base += words(aspect)
    return tuple(tiles)


def _moved(tile: BlockRamTile, bits: int, enables: int) -> BlockRamTile:
    """The tile of a part of a memory as one of the whole: the part begins at this bit and write enable."""
    slots = (replace(slot, low=slot.low + bits, enable=slot.enable + enables) for slot in tile.slots)
    return replace(tile, slots=tuple(slots))


def contents(tile: BlockRamTile, image: Sequence[int]) -> list[int]:
    """The 2048 nine-bit bytes of an EBR that hold its part of a memory's words; words beyond `image` are 0."""
    out = [0] * BYTES
    for index, word in enumerate(image[tile.base : tile.base + tile.words]):
        for slot in tile.slots:
            value = (word >> slot.low) & ((1 << slot.bits) - 1)
            if tile.aspect >= BYTE:
                out[index * (tile.aspect // BYTE) + slot.at // BYTE] |= value
            else:
                bit = index * tile.aspect
                out[bit // 8] |= value << bit % 8
    return out
