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
from ..isa.timing import load_steps, tiles
from ..sched import footprint

TILES = 16
"""Tiles of a load at most: the words of `linker.CHUNK` on the presets for the ULX3S-85F."""


def cut_loads(loads: Sequence[Load], at: npt.NDArray[np.int64], config: HwConfig) -> list[list[Load]]:
    """Of each load those that take its place, in order; `at`: where each word of the segment's weights lies.

    The words of a load of several column tiles lie one behind the other.
    """
    return [_cut(load, at, config) for load in loads]


def may_wrap(loads: Sequence[Load], config: HwConfig) -> bool:
    """Whether the words of these loads may lie in two places: no tile has several, and no load steps over columns."""
    return all(load.nt_n == 1 and load_steps(load, config) == 1 for load in loads)


def _cut(load: Load, at: npt.NDArray[np.int64], config: HwConfig) -> list[Load]:
    starts, steps = at[footprint.tile_words(load, config)], load_steps(load, config)
    each = max(1, TILES // load.nt_n)
    if load.nt_n > 1:
        edges = [*range(0, load.tiles, each), load.tiles]
    else:
        edges, first = [0], 0
        for tile in range(1, tiles(load)):
            if tile - first == each or starts[tile] != starts[tile - 1] + steps:
                first = tile
                edges.append(tile)
        edges.append(load.tiles)
    return [load.but(base=int(starts[low * load.nt_n]), tiles=high - low) for low, high in pairwise(edges)]
