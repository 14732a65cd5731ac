"""Column-tile groups: column tiles that one instruction streams together, where maps are small.

On a map of a few pixels a layer's work is shorter than the way from its last sum to the next layer's first operand, so
a chain of such layers is a matter of what the array does meanwhile. A layer's column tiles are cut in two groups, n1
and n2; the input of the next layer where the first of them ends, into k1 and k2 (`Tiling.split`); and of its own second
group a part goes ahead while k2 is on its way (`Tiling.lookahead`)::

    array    n1 k1 | part of n2 k1 | n1 k2 | rest of n2 |          n1 k1 of the next layer ...
    vector                                     drain n1      drain n2

A small last group is soon drained. Each group streams `MIN_TILE` pixels or more between two tiles of the same sums.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from ..config import HwConfig
from ..ir.graph import Graph, Op, Tensor
from ..isa.timing import MIN_TILE
from .aliases import producers
from .depthwise_task import possible
from .task import Tiling

FEW = 16
"""Pixels of a tile up to which column-tile groups are tried to begin with: per block and tap the array streams so many
cycles, a fraction of the 66 from a layer's last sum to the next layer's first operand. AD, of one pixel, takes 1,445
cycles on `ulx3s-85f-dense` with 4 and with 64 as well."""
HALF = 0.5
GROUP_PARTS = (0.65, HALF, 0.35, 0.0)
"""Parts of the output channels that may come first, in a group of their own: while the others are computed and drained,
the next operation can work on them. 0: all in one group. AD takes 1,445 cycles on `ulx3s-85f-dense`, 1,444
with (0.5, 0) and with (0.65, 0), 1,456 with six parts."""
STEPS = 4
"""In so many steps more lookahead is tried. AD takes 1,445 cycles on `ulx3s-85f-dense`, 1,454 with 2, 1,445 with 8."""


def grouped(graph: Graph, tilings: Mapping[str, Tiling], config: HwConfig, part: float) -> dict[str, Tiling]:
    """The same tilings with column-tile groups on small maps, two if `part` is not 0."""
    chosen = dict(tilings)
    makers = producers(graph)
    for op in graph.ops:
        y = graph.tensors[op.output]
        if not op.weight.size or _pixels(y, chosen[op.name]) > FEW or y.channels <= config.used_cols:
            continue
        maker = makers.get(op.inputs[0])
        split = boundaries(chosen[maker.name], config) if maker else ()
        chosen[op.name] = Tiling(chosen[op.name].cuts, columns=column_cuts(y, config, part), split=split)
    return chosen


def linked(tilings: Mapping[str, Tiling]) -> dict[str, Tiling]:
    """The same tilings, but where the input comes in groups, half of the lookahead that is possible."""
    return {name: replace(now, lookahead=now.split[-1] // 2) if now.split else now for name, now in tilings.items()}


def column_cuts(y: Tensor, config: HwConfig, part: float) -> tuple[int, ...]:
    """All column tiles in one group, or in two, the first of whole blocks, a `part` of all."""
    count, blocks = -(-y.channels // config.used_cols), -(-y.channels // config.word)
    first = round(blocks * part) * config.word // config.used_cols
    return (0, first, count) if 0 < first < count else (0, count)


def boundaries(maker: Tiling, config: HwConfig) -> tuple[int, ...]:
    """Where an operation's column-tile groups end in whole blocks of its result, but for the last."""
    return tuple(dict.fromkeys(end * config.used_cols // config.word for end in maker.columns[1:-1]))


def wider(op: Op, graph: Graph, chosen: Mapping[str, Tiling], config: HwConfig) -> list[Tiling]:
    """The tiling of a convolution with column-tile groups, where at least two tiles fit the accumulators."""
    y, now = graph.tensors[op.output], chosen[op.name]
    if not op.weight.size or y.channels <= config.used_cols or 2 * _pixels(y, now) > config.acc_depth:
        return []
    ways = {column_cuts(y, config, part) for part in GROUP_PARTS}
    return [replace(now, blocks_first=False, columns=columns) for columns in sorted(ways)]


def chains(
    op: Op, graph: Graph, chosen: Mapping[str, Tiling], config: HwConfig, looks_ahead: bool = True
) -> list[dict[str, Tiling]]:
    """Changes for a convolution on the array with a small map: other groups, cut at the producer's or not, with more or
    less lookahead. Whoever reads the result and is cut is then cut at the new groups.
    """
    y, now = graph.tensors[op.output], chosen[op.name]
    if not op.weight.size or _pixels(y, now) > FEW or possible(op, graph, config):
        return []
    maker = producers(graph).get(op.inputs[0])
    split = boundaries(chosen[maker.name], config) if maker else ()
    cut = [other.name for other in graph.ops if op.output in other.inputs and chosen[other.name].split]
    found: list[dict[str, Tiling]] = []
    for columns in _columns(y, _pixels(y, now), config):
        plain = replace(now, blocks_first=False, columns=columns, split=(), lookahead=0)
        ways = [plain]
        if split:
            steps = range(STEPS + 1) if looks_ahead and len(columns) > 2 else (0,)
            ahead = sorted({split[-1] * step // STEPS for step in steps})
            ways += [replace(plain, split=split, lookahead=blocks) for blocks in ahead]
        ends = {name: replace(chosen[name], split=boundaries(plain, config)) for name in cut}
        found += [{**ends, op.name: way} for way in ways]
    return found


def _columns(y: Tensor, pixels: int, config: HwConfig) -> list[tuple[int, ...]]:
    """All column tiles in one group, in two, and these with a small last group; none so small that the array waits."""
    count, least = -(-y.channels // config.used_cols), -(-MIN_TILE // pixels)
    found = dict.fromkeys(column_cuts(y, config, part) for part in GROUP_PARTS)
    found |= dict.fromkeys((*columns[:-1], count - least, count) for columns in found if columns[-2] < count - least)
    return [cuts for cuts in found if len(cuts) == 2 or min(end - first for first, end in pairwise(cuts)) >= least]


def _pixels(y: Tensor, tiling: Tiling) -> int:
    """Most pixels of a tile."""
    return max(end - first for first, end in tiling.tiles) * y.width
