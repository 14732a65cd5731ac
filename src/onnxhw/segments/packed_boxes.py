"""`sources_of`: where inputs lie packed in external memory, once for all segments that read boxes of them.

Each segment finds its box packed in words of activation memory that lie one behind the other, rows a pitch apart that
suits its windows (`onnxhw.passes.packed_inputs`). In external memory the rows of the whole input lie one behind the
other, a few bytes apart at most. A move copies whole host words, so rows lie at the same bytes of host words on both
sides, and between two rows of the source are as many bytes as host words at either end of a row take of the padding::

    external memory      z z z z|row 0 of the input . . . .|g|row 1 . . . . . . . . .|g|row 2
    activation memory    z z z z z z|box, row 0 . .|z z z z|box, row 1 . .|z z z z|box, row 2

Zero points between the rows of a box (z), and above and below, come from the words of zero points at the begin of the
source. A box that has columns of the input on both sides needs none between its rows: whatever comes with them there,
no window reads it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from ..config import HwConfig
from ..ir.boxes import Box
from ..isa.memory import host_stride
from ..passes.packed_inputs import moved_bytes
from ..program.storage import PackedInput
from .plan import Region
from .regions import MOST_RUNS, Strided

PackedRegion = tuple[Region, PackedInput]
"""A box of an input, and how a segment is to have it."""
ZEROS = 16
"""Bytes of zero points before the input, in whole words: what a run of a move brings of them at once. They travel with
every inference, so they are few."""


@dataclass(frozen=True)
class PackedSource:
    """A box of an input as it lies in external memory, for all boxes of segments in it."""

    tensor: str
    box: Box
    storage: PackedInput


def sources_of(boxes: Iterable[PackedRegion], config: HwConfig) -> dict[PackedRegion, PackedSource]:
    """What each of the boxes is to be taken of. Boxes that lie at the same bytes of host words have one source."""
    groups: dict[object, list[PackedRegion]] = {}
    for each in dict.fromkeys(boxes):
        groups.setdefault(_key(each, config), []).append(each)
    return {each: source for group in groups.values() for source in (_source(group, config),) for each in group}


def _key(each: PackedRegion, config: HwConfig) -> object:
    """Equal for boxes that can have one source."""
    region, storage = each
    unit, turned = moved_bytes(config), storage.row < storage.column
    pitch, pixel = sorted((storage.row, storage.column), reverse=True)
    origin = storage.first - region.box.rows[0] * storage.row - region.box.cols[0] * storage.column
    return region.tensor, region.box.channels, turned, pixel, pitch % unit, origin % unit


def _source(group: list[PackedRegion], config: HwConfig) -> PackedSource:
    """The source of boxes that can have one."""
    (region, storage), unit = group[0], moved_bytes(config)
    box = region.box
    for other, _ in group:
        box = box.hull(other.box)
    turned, first = storage.row < storage.column, storage.first
    first -= (region.box.rows[0] - box.rows[0]) * storage.row + (region.box.cols[0] - box.cols[0]) * storage.column
    zeros = -(-ZEROS // config.word) * config.word
    first = zeros + first % unit
    _, channels, height, width = box.shape
    outer, inner = (width, height) if turned else (height, width)
    pixel, wanted = min(storage.row, storage.column), max(storage.row, storage.column)
    length = (inner - 1) * pixel + channels
    pitch = next(length + gap for gap in range(2 * unit) if _rows_fit(first, length, gap, wanted, unit))
    words = -(-(first + (outer - 1) * pitch + length) // config.word)
    row, column = (pixel, pitch) if turned else (pitch, pixel)
    return PackedSource(region.tensor, box, replace(storage, first=first, words=words, row=row, column=column))


def _rows_fit(first: int, length: int, gap: int, wanted: int, unit: int) -> bool:
    """Whether rows that are `gap` bytes apart lie where those of a box with the pitch `wanted` do, and their first and
    last host words have no byte of another row."""
    if (length + gap - wanted) % unit:
        return False
    begins = [(first + row * wanted) % unit for row in range(unit)]
    return all(max(begin, -(begin + length) % unit) <= gap for begin in begins)


def packed_moves(
    region: Region, storage: PackedInput, source: PackedSource, words: range, config: HwConfig
) -> list[Strided]:
    """Moves that bring these words of a box, counted from its first one, from its source; both sides count in host
    words from their first one."""
    stride = host_stride(config.word)
    hosts = range(words.start * stride, words.stop * stride)
    runs = sorted(_runs(region, storage, source, config, hosts), key=lambda run: (run.shape, run.chip))
    return [move for _, alike in groupby(runs, lambda run: run.shape) for move in _strided(list(alike))]


@dataclass(frozen=True)
class _Run:
    """Host words one after the other on both sides; zero points or elements."""

    chip: int
    external: int
    count: int
    zero: bool

    @property
    def shape(self) -> tuple[bool, int]:
        return self.zero, self.count


def _runs(
    region: Region, storage: PackedInput, source: PackedSource, config: HwConfig, words: range
) -> Iterator[_Run]:
    """Those that fill these host words, in order."""
    zeros, at = source.storage.first // moved_bytes(config), words.start
    for first, end, external in [*_rows(region, storage, source, config), (words.stop, words.stop, 0)]:
        while at < min(first, words.stop):
            count = min(first - at, zeros, words.stop - at)
            yield _Run(at, 0, count, True)
            at += count
        if at < min(end, words.stop):
            count = min(end, words.stop) - at
            yield _Run(at, external + at - first, count, False)
            at += count


def _rows(
    region: Region, storage: PackedInput, source: PackedSource, config: HwConfig
) -> Iterator[tuple[int, int, int]]:
    """Of each row of a box its first host word and that behind the last, and its first one in the source."""
    unit, whole, turned = moved_bytes(config), source.box, storage.row < storage.column
    (outer, inner) = (region.box.cols, region.box.rows) if turned else (region.box.rows, region.box.cols)
    (above, left) = (whole.cols, whole.rows) if turned else (whole.rows, whole.cols)
    pitch, there = (max(each.row, each.column) for each in (storage, source.storage))
    pixel = min(storage.row, storage.column)
    length = (inner[1] - inner[0] - 1) * pixel + region.box.shape[1]
    between = left[0] < inner[0] and inner[1] < left[1]
    for row in range(outer[1] - outer[0]):
        byte = storage.first + row * pitch
        from_byte = source.storage.first + (outer[0] - above[0] + row) * there + (inner[0] - left[0]) * pixel
        assert (from_byte - byte) % unit == 0
        end = -(-(byte + length) // unit)
        if between:
            there_is = source.storage.words * source.storage.word // unit - from_byte // unit
            end = max(end, min((byte + pitch) // unit, byte // unit + there_is))
        yield byte // unit, end, from_byte // unit


def _strided(runs: list[_Run]) -> Iterator[Strided]:
    """Runs of one length, in order, as moves: those that are equally far apart are one."""
    first = 0
    while first < len(runs):
        steps, end = (0, 0), first + 1
        while end < len(runs) and end - first < MOST_RUNS:
            step = runs[end].chip - runs[end - 1].chip, runs[end].external - runs[end - 1].external
            if end > first + 1 and step != steps:
                break
            steps, end = step, end + 1
        one = runs[first]
        yield Strided(one.chip, one.external, (1, end - first, one.count), (0, steps[0]), (0, steps[1]))
        first = end
