"""Where the elements of an input lie, as regions of the input port, and in which order they travel."""

import numpy as np
import numpy.typing as npt

from ..isa.input_port import LANES, Region, stream_words
from .kept import Packed
from .layout import Place
from .model import Entry

Array8 = npt.NDArray[np.int8]


def regions(entry: Entry, word: int) -> list[Region]:
    """The regions of an input, in a memory of `word` lanes, in the order of their addresses.

    An input that is packed has one, whose gaps hold the zero point. Else each block of channels is one, and what lies
    in other lanes stays; blocks that follow each other without a gap are one.
    """
    if isinstance(entry.kept, Packed):
        found = [_packed(entry, entry.kept)]
    else:
        found = _blocks(entry.place, word)
    last = found.pop()
    return [*found, Region(**{**vars(last), "ends": True})]


def to_stream(entry: Entry, values: Array8, word: int) -> bytes:
    """The bytes that travel for the model's int8 ``(1, C, H, W)``: its elements by address, then 0 to a whole word."""
    if isinstance(entry.kept, Packed):
        data = values[0].transpose(_axes(entry.kept, values.shape)).tobytes()
    else:
        kept, place = entry.store(values), entry.place
        lows = range(-place.lane, place.shape[1], word)
        data = b"".join(kept[0, max(0, low) : low + word].transpose(1, 2, 0).tobytes() for low in lows)
    return data + bytes(-len(data) % LANES)


def _axes(kept: Packed, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channel, row and column of an input in the order in which addresses run, the slowest first."""
    return (1, 2, 0) if _rows_outer(kept, shape) else (2, 1, 0)


def _rows_outer(kept: Packed, shape: tuple[int, ...]) -> bool:
    return (kept.row, shape[2]) >= (kept.column, shape[3])


def _packed(entry: Entry, kept: Packed) -> Region:
    shape = entry.shape
    _, channels, height, width = shape
    axes = [(kept.row, height), (kept.column, width)]
    (inner, runs), (outer, rows) = axes[::-1] if _rows_outer(kept, shape) else axes
    run = channels
    if inner == channels or runs == 1:
        run, runs, inner = channels * runs, 1, channels * runs
    length = (runs - 1) * inner + run
    used = kept.first + (rows - 1) * outer + length
    return Region(
        entry.place.base * kept.word, run, inner - run, runs, outer - length if rows > 1 else 0, rows,
        kept.first, kept.words * kept.word - used, entry.zero_point,
    )  # fmt: skip


def _blocks(place: Place, word: int) -> list[Region]:
    _, channels, height, width = place.shape
    found: list[Region] = []
    for block in range(place.blocks(word)):
        low = max(place.lane, block * word)
        run = min(place.lane + channels, (block + 1) * word) - low
        first, runs, rows = (place.base + block * place.plane) * word + low % word, width, height
        gap, row_gap = word - run, (place.row - width + 1) * word - run
        if not gap:
            run, runs = run * runs, 1
        if runs == 1 and not row_gap:
            run, rows = run * rows, 1
        before = found[-1] if found else None
        if before and rows == runs == before.rows == before.runs == 1 and before.end == first:
            found[-1] = Region(before.first, before.run + run)
        else:
            found.append(Region(first, run, gap if runs > 1 else 0, runs, row_gap if rows > 1 else 0, rows))
    return found


def words_of(entry: Entry, word: int) -> int:
    """Words of the stream of an input."""
    return stream_words(regions(entry, word))
