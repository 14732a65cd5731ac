"""`placement_cost`: what a way to place a segment costs: cycles of its run, and those in which moves and the runs
around it hold each other up. Rough: it compares ways."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.units import Unit
from .hazards import USERS, MovedWords, SegmentUse
from .placed_segment import PlacedPart

Words = npt.NDArray[np.int64]
AHEAD = 0.5
"""Share of the next segment's loads that is lost if they find no room beside this one: stripes of it may find some."""
HOST_WORD = 2.3
"""Columns of 16 bits that a host word takes, with refreshes, rows and what a move costs for itself, about."""


def placement_cost(
    before: PlacedPart | None, mine: PlacedPart, loads: Sequence[Words], stores: Iterable[Words], ahead: int,
    config: HwConfig,
) -> float:  # fmt: skip
    """Cycles, about, of a segment behind `before`, that loads these words while results of the one before are stored
    from those; the next one loads `ahead` words."""
    cost = float(mine.part.candidate.cycles)
    loading = _moving(sum(map(len, loads)), config)
    if loads and before:
        # The loads begin when the segment before lets them, and then take their time.
        cycles = before.part.candidate.cycles
        free = max(_last_use(before, each, config) for each in loads)
        cost += max(0.0, loading - (cycles - free)) - max(0.0, loading - cycles)
    for words in stores:
        moved, storing = MovedWords(words, False, config), _moving(len(words), config)
        cost += max(0.0, storing - _first_use(mine, moved))
        if any(moved.words[each].any() for each in loads):
            cost += storing + loading
    return cost + (AHEAD * _moving(ahead, config) if ahead > _room(mine.use, config) else 0.0)


def _moving(words: int, config: HwConfig) -> float:
    """Cycles that activation words take to be moved."""
    assert config.external is not None
    return words * config.word / 4 * HOST_WORD * 16 / config.external.data_bits


def _room(use: SegmentUse, config: HwConfig) -> int:
    """Words that may be loaded while a segment runs: nobody touches them, and nothing is written into their banks."""
    free = np.ones(config.act_words, bool)
    for unit in USERS:
        free &= use.touched[unit] == 0
    return int(free.reshape(config.act_banks, -1)[use.written_banks == 0].sum())


def _last_use(before: PlacedPart, words: Words, config: HwConfig) -> int:
    """The cycle of a segment's run from which on these words can be loaded."""
    use, spans = before.use, before.part.candidate.times.spans
    last = {unit: int(use.touched[unit][words].max(initial=0)) for unit in USERS}
    banks = np.unique(words // config.act_depth)
    last[Unit.VECTOR] = max(last[Unit.VECTOR], int(use.written_banks[banks].max(initial=0)))
    return max(spans[unit][number - 1].done if number else 0 for unit, number in last.items())


def _first_use(mine: PlacedPart, moved: MovedWords) -> int:
    """The cycle of a segment's run in which an instruction would first wait for a move."""
    spans, found = mine.part.candidate.times.spans, mine.part.candidate.cycles
    for unit, footprints in mine.use.footprints.items():
        for span, one in zip(spans[unit], footprints, strict=True):
            if span.issue >= found:
                break
            if moved.before(one):
                found = span.issue
    return found
