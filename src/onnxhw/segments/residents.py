"""`choices`: which constants stay on chip from one inference to the next, and so are loaded once, with the program.

Every inference uses all constants once, in the same order, so of those that do not fit each that stays saves its own
transfer. Those of segments stay first that would wait for their weights longest; the others come through a ring behind
them, which must hold what any segment needs at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.memory import Space, word_bytes
from ..program.layout import from_host, to_host
from .part_schedule import ScheduledPart
from .placed_segment import PlacedSegment

WORTH = 4
"""Weights that are so many times what the chip holds, or more, all come anew in each inference: those that stay would
save little, and less could come early."""
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the weight memory that are tried for those that stay, less what the ring needs."""


@dataclass(frozen=True)
class Constants:
    """Constants of a segment that lie one behind the other: `words` of their memory, as host words."""

    host: npt.NDArray[np.uint32]
    words: int

    @cached_property
    def key(self) -> bytes:
        """Equal for equal constants."""
        return self.host.tobytes()


@dataclass
class Resident:
    """Constants of one memory that stay: where each lies, from word 0 on, and how many words they are."""

    at: dict[bytes, int] = field(default_factory=dict)
    host: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    words: int = 0

    def add(self, each: Constants) -> None:
        """One more, behind the others."""
        self.at[each.key] = self.words
        self.host.append(each.host)
        self.words += each.words


Residents = Mapping[Space, Resident]
"""By memory."""


def depth(space: Space, config: HwConfig) -> int:
    """Words of a memory of constants."""
    return {Space.WEIGHT: config.weight_depth, Space.PARAM: config.param_depth, Space.TABLE: config.tables}[space]


def constants_of(part: ScheduledPart, config: HwConfig) -> dict[Space, list[Constants]]:
    """The constants of a segment, those of each memory in the order of their addresses."""
    images, size = part.lowered.images, word_bytes(config, Space.PARAM)
    params = to_host(images.param_image.astype("<u8").view(np.uint8), size)
    tables = [Constants(each.view(np.uint8).astype(np.uint32), 1) for each in images.table_image]
    weights = [Constants(to_host(each, config.weight_word), len(each)) for each in images.weight_pieces]
    rows = len(images.param_image)
    return {Space.PARAM: [Constants(params, rows)] if rows else [], Space.TABLE: tables, Space.WEIGHT: weights}


def no_residents() -> Residents:
    """Nothing stays."""
    return {space: Resident() for space in (Space.WEIGHT, Space.PARAM, Space.TABLE)}


def choices(placed: Sequence[PlacedSegment], config: HwConfig) -> Iterator[Residents]:
    """Constants that may stay, with fewer and with more weights."""
    needed = [constants_of(each.part, config) for each in placed]
    hurry = [_hurry(mine[Space.WEIGHT], each) for mine, each in zip(needed, placed, strict=True)]
    others = {space: _resident(space, needed, hurry, 1.0, config) for space in (Space.PARAM, Space.TABLE)}
    total = sum({each.key: each.words for mine in needed for each in mine[Space.WEIGHT]}.values())
    known = set()
    for part in PARTS if total < WORTH * config.weight_depth else PARTS[:1]:
        weights = _resident(Space.WEIGHT, needed, hurry, part, config)
        if weights.words not in known:
            known.add(weights.words)
            yield {**others, Space.WEIGHT: weights}


def _hurry(weights: Sequence[Constants], placed: PlacedSegment) -> float:
    """Weight words per cycle of a segment's run."""
    return sum(each.words for each in weights) / placed.part.candidate.cycles


def _resident(
    space: Space, needed: Sequence[Mapping[Space, Sequence[Constants]]], hurry: Sequence[float], part: float,
    config: HwConfig,
) -> Resident:  # fmt: skip
    """The constants of a memory that stay if they may take this part of it."""
    found, most = Resident(), depth(space, config)
    order = sorted(range(len(needed)), key=lambda n: (-hurry[n], n))
    for n in order:
        for each in needed[n][space]:
            if each.key in found.at or found.words + each.words > part * most:
                continue
            kept = found.at.keys() | {each.key}
            ring = max(sum({o.key: o.words for o in mine[space] if o.key not in kept}.values()) for mine in needed)
            if found.words + each.words + ring <= most:
                found.add(each)
    return found


def images(
    resident: Residents, config: HwConfig
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.int8]]:
    """What weight, parameter and table memory hold of them from their word 0 on."""
    none = np.zeros(0, np.uint32)
    host = {space: np.concatenate([none, *mine.host]) for space, mine in resident.items()}
    weights = from_host(host[Space.WEIGHT], config.weight_word)
    params = from_host(host[Space.PARAM], word_bytes(config, Space.PARAM)).view("<u8").astype(np.uint64)
    tables = host[Space.TABLE].astype(np.uint8).view(np.int8).reshape(-1, 256)
    return weights, params, tables
