"""`cut_loads`: the weight loads of a segment where its weights lie, cut so that each waits for few of them.

A load begins when all its words are there, and they may be overwritten when all of it has ended; so a load of a whole
operation would keep moves from going on beside it.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.instructions import Load
from ..isa.timing import load_steps
from ..sched import footprint

TILES = 16
"""Tiles of a load at most, unless there would be too many: the words of `constant_moves.CHUNK` on the presets for the
ULX3S-85F."""


def cut_loads(loads: Sequence[Load], at: npt.NDArray[np.int64], config: HwConfig) -> list[list[Load]]:
    """Of each load those that take its place, in order; `at`: where each word of the segment's weights lies, those of a
    tile in a row. They are larger where those of `TILES` are more than the load unit's ring of microcode has room for
    at once."""
    tiles, most = TILES, max((load.tiles * load.nt_n for load in loads), default=0)
    while True:
        found = [_cut(load, at, config, tiles) for load in loads]
        if fit_ring(found, config) or tiles >= most:
            return found
        tiles *= 2


def fit_ring(cut: Sequence[Sequence[Load]], config: HwConfig) -> bool:
    """Whether the load unit's ring of microcode has room for loads at once, with the one before them and the one
    behind, whatever their words."""
    each = max((load.words() for mine in cut for load in mine), default=0) + 1
    return (sum(map(len, cut)) + 2) * each <= config.load_ucode


def may_wrap(loads: Sequence[Load], config: HwConfig) -> bool:
    """Whether the words of these loads may lie in two places: no tile has several, and no load steps over columns."""
    return all(load.nt_n == 1 and load_steps(load, config) == 1 for load in loads)


def _cut(load: Load, at: npt.NDArray[np.int64], config: HwConfig, tiles: int) -> list[Load]:
    steps, each = load_steps(load, config), max(1, tiles // load.nt_n)
    starts = at[footprint.tile_words(load, config)].reshape(load.tiles, load.nt_n)
    apart = {0, *(1 + np.flatnonzero((np.diff(starts, axis=0) != steps).any(axis=1))).tolist(), load.tiles}
    edges = [row for low, high in pairwise(sorted(apart)) for row in range(low, high, each)]
    found: list[Load] = []
    for low, high in pairwise([*edges, load.tiles]):
        gaps = np.unique(np.diff(starts[low]))
        if len(gaps) == 0:
            found.append(load.but(base=int(starts[low, 0]), tiles=high - low))
        elif len(gaps) == 1 and gaps[0] > 0:
            found.append(load.but(base=int(starts[low, 0]), tiles=high - low, nt_step=int(gaps[0])))
        else:  # the column tiles' weights lie in several places
            found += [load.but(base=int(word), tiles=1, nt_n=1) for word in starts[low:high].ravel()]
    return found
