"""`weight_pieces`: the weight loads of a segment whose weights are more than the weight memory holds, in pieces.

Each piece comes while those before it are in use, and again where the schedule loads it again. So of an operation with
many input channels a part runs whose weights never are on chip at once; its sums stay in the accumulators meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph, Tensor
from ..isa.instructions import Load
from ..isa.timing import load_steps
from ..sched import footprint
from ..sched.array_task import max_rows
from .plan import Segment, weights_of
from .weight_loads import fit_ring

SHARE = 4
"""The weight memory holds so many pieces at least: one is in use, the others come or wait."""
PIECE = 4096
"""Bytes of a piece: what one move brings of constants, 1,024 host words. Smaller tiles in pieces of as many tiles as
large ones would make more loads than there are numbers for: 9 MB through the 20 KB of the small board's."""


@dataclass(frozen=True)
class WeightPiece:
    """A part of the load `number` of a segment's schedule: `words` of the segment's weights, in the order in which they
    come to lie behind each other; `load` with its address is still to be given its base."""

    number: int
    load: Load
    words: npt.NDArray[np.int64]


def may_stream(graph: Graph, config: HwConfig) -> bool:
    """Whether weights of a segment's graph may come in pieces: those of one operation, of which one set of columns,
    the fewest that there can be, may have more weights than the memory."""
    weighted = [op for op in graph.ops if op.weight.size]
    return len(weighted) == 1 and len(weighted[0].weight) <= config.used_cols


def streams(segment: Segment, config: HwConfig) -> bool:
    """Whether the weights of a segment are more than the memory holds, by the planner's words."""
    return sum(weights_of(segment, config).values()) > config.weight_depth


def passes(graph: Graph, config: HwConfig) -> int:
    """How often a schedule loads the weights of an operation, about: once for each part of its result that the
    accumulators hold."""
    return max((_parts(graph.tensors[op.output], config) for op in graph.ops if op.weight.size), default=1)


def _parts(y: Tensor, config: HwConfig) -> int:
    return -(-y.width // config.acc_depth) * -(-y.height // max_rows(y, config))


def weight_pieces(loads: Sequence[Load], config: HwConfig) -> list[WeightPiece] | None:
    """The loads in pieces of `PIECE` bytes, of less where the memory is small, or of more where these would be too many
    for the load unit's ring of microcode; None if it has no room for any."""
    steps = max((load_steps(load, config) for load in loads), default=1)
    most = config.weight_depth // SHARE // steps
    tiles = min(max(1, PIECE // (steps * config.weight_word)), most)
    while 0 < tiles <= most:
        found = [piece for number, load in enumerate(loads) for piece in _cut(number, load, tiles, config)]
        if fit_ring([[piece.load] for piece in found], config):
            return found
        tiles *= 2
    return None


def _cut(number: int, load: Load, tiles: int, config: HwConfig) -> list[WeightPiece]:
    steps, each = load_steps(load, config), max(1, tiles // load.nt_n)
    starts = footprint.tile_words(load, config).reshape(load.tiles, load.nt_n)
    found = []
    for low in range(0, load.tiles, each):
        mine = starts[low : low + each]
        words = (mine.T[:, :, None] + np.arange(steps)).ravel()
        step = len(mine) * steps if load.nt_n > 1 else 0
        found.append(WeightPiece(number, load.but(base=0, tiles=len(mine), nt_step=step), words))
    return found
