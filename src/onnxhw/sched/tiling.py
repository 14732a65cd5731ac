"""How operations may be cut into row tiles, and the cuts to try.

A tile must fit the accumulators. Beyond that, cuts decide how much of the machine overlaps: the next
layer starts when the rows it reads are written, so a layer should begin with rows that its producer
has finished early and end with a tile that drains quickly.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from ..config import HwConfig
from ..ir.graph import AveragePool, Concat, Conv, Graph, MaxPool, Op, Tensor
from ..isa.timing import MIN_TILE, shadow_free, shadow_ready
from .array_work import limit, max_rows
from .depthwise import possible
from .places import producers
from .work import Choice


def even(height: int, parts: int) -> tuple[int, ...]:
    """`parts` tiles of nearly equal height."""
    parts = max(1, min(parts, height))
    return tuple(height * i // parts for i in range(parts + 1))


def coarsest(op: Op, graph: Graph, config: HwConfig) -> Choice:
    """The fewest tiles."""
    y = graph.tensors[op.output]
    if isinstance(op, (Conv, Concat)):
        return Choice(limit((0, y.height), max_rows(y, config)), whole=True)
    return Choice((0, y.height))


def follow(op: Op, graph: Graph, chosen: Mapping[str, Choice], part: float = 0.5) -> tuple[int, ...]:
    """Two tiles, cut at the rows that are computable before the producers' last tiles are complete, else at a
    `part`."""
    y = graph.tensors[op.output]
    makers = producers(graph)
    row = y.height
    for name in op.inputs:
        maker, x = makers.get(name), graph.tensors[name]
        if maker and maker.name in chosen and graph.tensors[maker.output].height == x.height:
            row = min(row, _computable(op, x, chosen[maker.name].cuts[-2]))
    if not 0 < row < y.height:
        row = int(y.height * part)
    return (0, row, y.height) if row else (0, y.height)


def _computable(op: Op, x: Tensor, rows: int) -> int:
    """Output rows that need only the first `rows` input rows."""
    if isinstance(op, Conv):
        kernel, stride, dilation, pad = op.weight.shape[2], op.strides[0], op.dilations[0], op.pads[0]
    elif isinstance(op, (MaxPool, AveragePool)):
        kernel, stride, dilation, pad = op.kernel[0], op.strides[0], op.dilations[0], op.pads[0]
    else:
        return rows
    return int((rows - 1 - (kernel - 1) * dilation + pad) // stride + 1)


def chained(graph: Graph, config: HwConfig, part: float = 0.5) -> dict[str, Choice]:
    """For every operation the cuts that let it begin before its producers end, where tiles stay large enough."""
    chosen: dict[str, Choice] = {}
    for op in graph.ops:
        y = graph.tensors[op.output]
        cuts = follow(op, graph, chosen, part)
        if isinstance(op, (Conv, Concat)):
            cuts = _large_enough(cuts, y, config)
        chosen[op.name] = Choice(cuts)
    return chosen


def pieces(graph: Graph, config: HwConfig, most: int, least: int) -> dict[str, Choice]:
    """For every operation even tiles, at `most` so many, of at least so many pixels; as `chained` if only two."""
    chosen: dict[str, Choice] = {}
    for op in graph.ops:
        y = graph.tensors[op.output]
        count = min(most, y.height * y.width // least)
        cuts = even(y.height, count) if count > 2 else follow(op, graph, chosen)
        if isinstance(op, (Conv, Concat)):
            cuts = _large_enough(cuts, y, config)
        chosen[op.name] = Choice(cuts)
    return chosen


def _large_enough(cuts: tuple[int, ...], y: Tensor, config: HwConfig) -> tuple[int, ...]:
    """Cuts of an array operation as far as the array need not wait for weights, and as many as the sums need."""
    least = min(end - first for first, end in pairwise(cuts)) * y.width
    return limit((0, y.height) if least < short_tile(config) else cuts, max_rows(y, config))


FEW = 16
"""Pixels of a tile up to which column tiles are streamed together to begin with."""
AHEAD = (0.65, 0.5, 0.35, 0.0)
"""Parts of the output channels that may come first, in a set of their own: while the others are made and drained, the
next operation can work on them. 0: all in one set."""


def wide(graph: Graph, choices: Mapping[str, Choice], config: HwConfig, ahead: float) -> dict[str, Choice]:
    """The same choices with the column tiles of small maps together, in two sets if `ahead` is not 0."""
    chosen = dict(choices)
    makers = producers(graph)
    for op in graph.ops:
        y = graph.tensors[op.output]
        cuts = chosen[op.name].cuts
        pixels = max(end - first for first, end in pairwise(cuts)) * y.width
        if not isinstance(op, Conv) or pixels > FEW or y.channels <= config.used_cols:
            continue
        maker = makers.get(op.inputs[0])
        split = _first_planes(chosen[maker.name], config) if maker else 0
        chosen[op.name] = Choice(cuts, columns=column_cuts(y, config, ahead), split=split)
    return chosen


def beside(graph: Graph, choices: Mapping[str, Choice], config: HwConfig) -> dict[str, Choice]:
    """The same choices, but everything plane by plane where the depthwise unit runs beside the array.

    Convolutions between two of its own have their column tiles together, so that they can begin with the first planes
    that it has made. Every plane is drained apart; pools take each as it comes.
    """
    chosen = dict(choices)
    windows = {op.name: op for op in graph.ops if isinstance(op, Conv) and possible(op, graph, config)}
    fed = {op.inputs[0] for op in windows.values()}
    made = {op.output for op in windows.values()}
    for op in graph.ops:
        y = graph.tensors[op.output]
        if windows and isinstance(op, AveragePool):
            chosen[op.name] = replace(chosen[op.name], planes_first=y.channels > config.word)
        if not isinstance(op, Conv) or op.name in windows or not (op.output in fed or op.inputs[0] in made):
            continue
        between = op.output in fed and op.inputs[0] in made and y.channels > config.used_cols
        columns = column_cuts(y, config, 0.0) if between else ()
        half = -(-graph.tensors[op.inputs[0]].channels // config.word) // 2 if between else 0
        chosen[op.name] = replace(chosen[op.name], apart=True, columns=columns, split=half)
    return chosen


def column_cuts(y: Tensor, config: HwConfig, ahead: float) -> tuple[int, ...]:
    """All column tiles together, or in two sets, the first of whole planes, `ahead` of all."""
    count, planes = -(-y.channels // config.used_cols), -(-y.channels // config.word)
    first = round(planes * ahead) * config.word // config.used_cols
    return (0, first, count) if 0 < first < count else (0, count)


def _first_planes(maker: Choice, config: HwConfig) -> int:
    """Whole planes in the first of two sets of column tiles."""
    return maker.columns[1] * config.used_cols // config.word if len(maker.columns) == 3 else 0


def short_tile(config: HwConfig) -> int:
    """Pixels below which the array waits for weights."""
    return max(shadow_free(config) + shadow_ready(config), config.tile_words, MIN_TILE)


def candidates(op: Op, graph: Graph, chosen: Mapping[str, Choice], config: HwConfig) -> list[Choice]:
    """Choices worth trying for one operation, given those of the others."""
    now = chosen[op.name]
    y = graph.tensors[op.output]
    array = isinstance(op, (Conv, Concat))
    rows = max_rows(y, config) if array else y.height
    fewest = -(-y.height // rows)
    cuts = [even(y.height, fewest + extra) for extra in range(3)] + [limit(follow(op, graph, chosen), rows)]
    if y.height >= 4:
        tail = max(1, y.height // 8)
        cuts.append(limit((0, y.height - tail, y.height), rows))
        half = (0, y.height // 2 - 1, y.height) if array else (0, y.height // 2, y.height)
        cuts.append(limit(half, rows))
    found: list[Choice] = []
    one_plane = y.channels <= (config.used_cols if array else config.word)
    for cut in cuts:
        cut = limit(cut, rows)
        for planes_first in (False, True):
            choice = replace(now, cuts=cut, planes_first=planes_first)
            pointless = one_plane or (array and len(cut) == 2)
            if choice not in found and not (planes_first and pointless):
                found.append(choice)
    return found


def wider(op: Op, graph: Graph, chosen: Mapping[str, Choice], config: HwConfig) -> list[Choice]:
    """The choice made for a convolution with its column tiles together, where at least two fit the accumulators."""
    y = graph.tensors[op.output]
    if not isinstance(op, Conv) or y.channels <= config.used_cols:
        return []
    pixels = max(end - first for first, end in pairwise(chosen[op.name].cuts)) * y.width
    if 2 * pixels > config.acc_depth:
        return []
    now = chosen[op.name]
    ways = {column_cuts(y, config, ahead) for ahead in AHEAD}
    return [replace(now, planes_first=False, columns=columns) for columns in sorted(ways)]


def neighbours(op: Op, graph: Graph, chosen: Mapping[str, Choice], config: HwConfig) -> list[Choice]:
    """The choice made with what decides over the order beside the depthwise unit the other way."""
    now = chosen[op.name]
    if not isinstance(op, Conv) or not config.depthwise:
        return []
    if possible(op, graph, config):
        return [replace(now, whole=not now.whole)]
    planes = -(-graph.tensors[op.inputs[0]].channels // config.word)
    found = [replace(now, split=split) for split in (0, planes // 2) if split != now.split]
    return [*found, replace(now, apart=not now.apart), replace(now, columns=())]
