"""`strips_of`: where inputs lie packed in external memory, so that rows that several segments read are there once.

Each segment finds its box packed in words that lie one behind the other (`onnxhw.passes.packed_inputs`). Boxes of the
same columns whose rows follow each other, packed in the same way, are words of one strip; others lie by themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..ir.boxes import Box
from ..program.storage import PackedInput
from .plan import Region

PackedRegion = tuple[Region, PackedInput]
"""A box of an input, and how a segment is to have it."""


@dataclass(frozen=True)
class Strip:
    """A box of an input that lies packed in external memory."""

    tensor: str
    box: Box
    storage: PackedInput


@dataclass(frozen=True)
class StripWords:
    """The words of a strip that are a segment's box, from the word `first` of it on."""

    strip: Strip
    first: int


def strips_of(boxes: Iterable[PackedRegion]) -> dict[PackedRegion, StripWords]:
    """The strips in which boxes lie."""
    groups: dict[object, list[PackedRegion]] = {}
    for each in dict.fromkeys(boxes):
        groups.setdefault(_strip_key(each), []).append(each)
    found: dict[PackedRegion, StripWords] = {}
    for group in groups.values():
        runs: list[list[PackedRegion]] = []
        end = 0
        for each in sorted(group, key=lambda each: (_begin(each), each[1].words)):
            if not runs or _begin(each) > end:
                runs.append([])
            runs[-1].append(each)
            end = max(_end(each), end) if len(runs[-1]) > 1 else _end(each)
        for run in runs:
            found |= _in_one(run)
    return found


def _in_one(run: list[PackedRegion]) -> dict[PackedRegion, StripWords]:
    """The strip of boxes that follow each other."""
    (region, storage), begin = run[0], _begin(run[0])
    rows = min(each.box.rows[0] for each, _ in run), max(each.box.rows[1] for each, _ in run)
    words = (max(map(_end, run)) - begin) // storage.word
    whole = replace(storage, first=rows[0] * storage.row - begin, words=words)
    strip = Strip(region.tensor, Box(region.box.channels, rows, region.box.cols), whole)
    return {each: StripWords(strip, (_begin(each) - begin) // storage.word) for each in run}


def _strip_key(each: PackedRegion) -> object:
    """Equal for boxes that may be words of one strip."""
    region, storage = each
    if storage.row < storage.column:  # columns follow each other
        return each
    first = _begin(each) % storage.word
    return region.tensor, region.box.channels, region.box.cols, storage.row, storage.column, storage.word, first


def _begin(each: PackedRegion) -> int:
    """The byte where a box's words begin, if row 0 of the tensor begins at byte 0."""
    region, storage = each
    return region.box.rows[0] * storage.row - storage.first


def _end(each: PackedRegion) -> int:
    """The byte behind its words."""
    return _begin(each) + each[1].words * each[1].word
