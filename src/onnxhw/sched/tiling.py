"""How operations may be cut into row tiles, and the cuts to try.

A tile must fit the accumulators. Beyond that, cuts decide how much of the machine overlaps: the next
layer starts when the rows it reads are written, so a layer should begin with rows that its producer
has finished early and end with a tile that drains quickly.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from ..config import HwConfig
from ..ir.graph import Graph, Op, Tensor
from ..ir.windows import window_size
from ..isa.timing import MIN_TILE, shadow_free, shadow_ready
from .aliases import producers
from .array_task import coarsest as coarsest_array
from .array_task import limit, max_rows
from .column_groups import column_cuts
from .depthwise_task import possible
from .operations import specification
from .task import Tiling

MORE = 3
"""So many counts of tiles are tried, from the fewest on: every tile more waits for weights once more, so few pay. VWW
takes 20,170 cycles on `ulx3s-85f`, with 2 20,214, with 5 20,186; IC 49,613, 49,587 and 49,759."""
TAIL = 8
"""A last tile of one row in so many is tried: it drains quickly, so that the next operation begins early. VWW
takes 20,170 cycles on `ulx3s-85f`, as with 4, with 16 20,214; IC 49,613 with each."""


def even(height: int, parts: int) -> tuple[int, ...]:
    """`parts` tiles of nearly equal height."""
    parts = max(1, min(parts, height))
    return tuple(height * i // parts for i in range(parts + 1))


def coarsest(op: Op, graph: Graph, config: HwConfig) -> Tiling:
    """The fewest tiles."""
    y = graph.tensors[op.output]
    return coarsest_array(y, config) if specification(op).on_array else Tiling((0, y.height))


def follow(op: Op, graph: Graph, chosen: Mapping[str, Tiling], part: float = 0.5) -> tuple[int, ...]:
    """Two tiles, cut at the rows that are computable before the producers' last tiles are complete, else at a
    `part`."""
    y = graph.tensors[op.output]
    makers = producers(graph)
    row = y.height
    for name in op.inputs:
        maker, x = makers.get(name), graph.tensors[name]
        if maker and maker.name in chosen and graph.tensors[maker.output].height == x.height:
            row = min(row, _computable(op, chosen[maker.name].cuts[-2]))
    if not 0 < row < y.height:
        row = int(y.height * part)
    return (0, row, y.height) if row else (0, y.height)


def _computable(op: Op, rows: int) -> int:
    """Output rows that need only the first `rows` input rows."""
    pad, _, kernel, stride, dilation = op.window.axis(0)
    return window_size(rows, pad, 0, kernel, stride, dilation)


def chained(graph: Graph, config: HwConfig, part: float = 0.5) -> dict[str, Tiling]:
    """For every operation the cuts that let it begin before its producers end, where tiles stay large enough."""
    chosen: dict[str, Tiling] = {}
    for op in graph.ops:
        chosen[op.name] = Tiling(_large_enough(op, follow(op, graph, chosen, part), graph.tensors[op.output], config))
    return chosen


def pieces(graph: Graph, config: HwConfig, most: int, least: int) -> dict[str, Tiling]:
    """For every operation even tiles, at `most` so many, of at least so many pixels; as `chained` if only two."""
    chosen: dict[str, Tiling] = {}
    for op in graph.ops:
        y = graph.tensors[op.output]
        count = min(most, y.height * y.width // least)
        cuts = even(y.height, count) if count > 2 else follow(op, graph, chosen)
        chosen[op.name] = Tiling(_large_enough(op, cuts, y, config))
    return chosen


def _large_enough(op: Op, cuts: tuple[int, ...], y: Tensor, config: HwConfig) -> tuple[int, ...]:
    """Cuts, of an array operation as far as the array need not wait for weights, and as many as the sums need."""
    if not specification(op).on_array:
        return cuts
    least = min(end - first for first, end in pairwise(cuts)) * y.width
    return limit((0, y.height) if least < short_tile(config) else cuts, max_rows(y, config))


def block_by_block(graph: Graph, tilings: Mapping[str, Tiling], config: HwConfig) -> dict[str, Tiling]:
    """The same tilings, but everything block by block where the depthwise unit runs at the same time as the array.

    Convolutions between two of its own have their column tiles in one group, so that they can begin with the first
    blocks that it has written. Every block is drained by an instruction of its own; pools take each as it comes.
    """
    chosen = dict(tilings)
    windows = {op.name: op for op in graph.ops if possible(op, graph, config)}
    fed = {op.inputs[0] for op in windows.values()}
    made = {op.output for op in windows.values()}
    for op in graph.ops:
        y = graph.tensors[op.output]
        if windows and specification(op).follows_blocks:
            chosen[op.name] = replace(chosen[op.name], blocks_first=y.channels > config.word)
        if not op.weight.size or op.name in windows or not (op.output in fed or op.inputs[0] in made):
            continue
        between = op.output in fed and op.inputs[0] in made and y.channels > config.used_cols
        columns = column_cuts(y, config, 0.0) if between else ()
        split = _half(op, graph, config) if between else ()
        chosen[op.name] = replace(chosen[op.name], drain_per_block=True, columns=columns, split=split)
    return chosen


def short_tile(config: HwConfig) -> int:
    """Pixels below which the array waits for weights."""
    return max(shadow_free(config) + shadow_ready(config), config.tile_words, MIN_TILE)


def row_tilings(op: Op, graph: Graph, chosen: Mapping[str, Tiling], config: HwConfig) -> list[Tiling]:
    """Tilings worth trying for one operation, given those of the others."""
    now = chosen[op.name]
    y = graph.tensors[op.output]
    array = specification(op).on_array
    rows = max_rows(y, config) if array else y.height
    fewest = -(-y.height // rows)
    cuts = [even(y.height, fewest + extra) for extra in range(MORE)] + [limit(follow(op, graph, chosen), rows)]
    if y.height >= 4:
        tail = max(1, y.height // TAIL)
        cuts.append(limit((0, y.height - tail, y.height), rows))
        half = (0, y.height // 2 - 1, y.height) if array else (0, y.height // 2, y.height)
        cuts.append(limit(half, rows))
    found: list[Tiling] = []
    one_block = y.channels <= (config.used_cols if array else config.word)
    for cut in cuts:
        cut = limit(cut, rows)
        for blocks_first in (False, True):
            tiling = replace(now, cuts=cut, blocks_first=blocks_first)
            pointless = one_block or (array and len(cut) == 2)
            if tiling not in found and not (blocks_first and pointless):
                found.append(tiling)
    return found


def neighbours(op: Op, graph: Graph, chosen: Mapping[str, Tiling], config: HwConfig) -> list[Tiling]:
    """The tiling with each of what decides over the order at the depthwise unit the other way."""
    now = chosen[op.name]
    if not op.weight.size or not config.depthwise:
        return []
    if possible(op, graph, config):
        return [replace(now, whole=not now.whole)]
    found = [replace(now, split=split) for split in ((), _half(op, graph, config)) if split != now.split]
    return [*found, replace(now, drain_per_block=not now.drain_per_block), replace(now, columns=())]


def _half(op: Op, graph: Graph, config: HwConfig) -> tuple[int, ...]:
    """Where half the blocks that a convolution reads end."""
    blocks = -(-graph.tensors[op.inputs[0]].channels // config.word)
    return (blocks // 2,) if blocks > 1 else ()
