"""Sets of column tiles that one instruction streams, where maps are small.

On a map of a few pixels a layer's work is shorter than the way from its last sum to the next layer's first operand, so
a chain of such layers is a matter of what the array does meanwhile. A layer's column tiles are cut in two sets, n1 and
n2; the input of the next layer where the first of them ends, into k1 and k2 (`Choice.split`); and of its own second
set a part goes ahead while k2 is on its way (`Choice.ahead`)::

    array    n1 k1 | part of n2 k1 | n1 k2 | rest of n2 |          n1 k1 of the next layer ...
    vector                                     drain n1      drain n2

A last set that is small is soon drained. Each set streams `MIN_TILE` pixels or more between two tiles of the same sums.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from ..config import HwConfig
from ..ir.graph import Conv, Graph, Op, Tensor
from ..isa.timing import MIN_TILE
from .depthwise import possible
from .places import producers
from .work import Choice

FEW = 16
"""Pixels of a tile up to which column tiles are streamed together to begin with."""
HALF = 0.5
AHEAD = (0.65, HALF, 0.35, 0.0)
"""Parts of the output channels that may come first, in a set of their own: while the others are made and drained, the
next operation can work on them. 0: all in one set."""
STEPS = 4
"""In so many steps more of the second set is tried ahead."""


def wide(graph: Graph, choices: Mapping[str, Choice], config: HwConfig, part: float) -> dict[str, Choice]:
    """The same choices with the column tiles of small maps together, in two sets if `part` is not 0."""
    chosen = dict(choices)
    makers = producers(graph)
    for op in graph.ops:
        y = graph.tensors[op.output]
        if not isinstance(op, Conv) or _pixels(y, chosen[op.name]) > FEW or y.channels <= config.used_cols:
            continue
        maker = makers.get(op.inputs[0])
        split = boundaries(chosen[maker.name], config) if maker else ()
        chosen[op.name] = Choice(chosen[op.name].cuts, columns=column_cuts(y, config, part), split=split)
    return chosen


def linked(choices: Mapping[str, Choice]) -> dict[str, Choice]:
    """The same choices, but where the input comes in sets, half of what the second set can do goes ahead."""
    return {name: replace(now, ahead=now.split[-1] // 2) if now.split else now for name, now in choices.items()}


def column_cuts(y: Tensor, config: HwConfig, ahead: float) -> tuple[int, ...]:
    """All column tiles together, or in two sets, the first of whole planes, `ahead` of all."""
    count, planes = -(-y.channels // config.used_cols), -(-y.channels // config.word)
    first = round(planes * ahead) * config.word // config.used_cols
    return (0, first, count) if 0 < first < count else (0, count)


def boundaries(maker: Choice, config: HwConfig) -> tuple[int, ...]:
    """Where an operation's sets of column tiles end in whole planes of its result, but for the last."""
    return tuple(dict.fromkeys(end * config.used_cols // config.word for end in maker.columns[1:-1]))


def wider(op: Op, graph: Graph, chosen: Mapping[str, Choice], config: HwConfig) -> list[Choice]:
    """The choice made for a convolution with its column tiles together, where at least two fit the accumulators."""
    y, now = graph.tensors[op.output], chosen[op.name]
    if not isinstance(op, Conv) or y.channels <= config.used_cols or 2 * _pixels(y, now) > config.acc_depth:
        return []
    ways = {column_cuts(y, config, part) for part in AHEAD}
    return [replace(now, planes_first=False, columns=columns) for columns in sorted(ways)]


def chains(
    op: Op, graph: Graph, chosen: Mapping[str, Choice], config: HwConfig, lookahead: bool = True
) -> list[dict[str, Choice]]:
    """Changes for a convolution on the array with a small map: other sets, cut at the producer's or not, with more or
    less ahead. Whoever reads the result and is cut is then cut at the new sets.
    """
    y, now = graph.tensors[op.output], chosen[op.name]
    if not isinstance(op, Conv) or _pixels(y, now) > FEW or possible(op, graph, config):
        return []
    maker = producers(graph).get(op.inputs[0])
    split = boundaries(chosen[maker.name], config) if maker else ()
    cut = [other.name for other in graph.ops if op.output in other.inputs and chosen[other.name].split]
    found: list[dict[str, Choice]] = []
    for columns in _columns(y, _pixels(y, now), config):
        plain = replace(now, planes_first=False, columns=columns, split=(), ahead=0)
        ways = [plain]
        if split:
            aheads = {split[-1] * step // STEPS for step in range(STEPS + 1)} if lookahead and len(columns) > 2 else {0}
            ways += [replace(plain, split=split, ahead=ahead) for ahead in sorted(aheads)]
        ends = {name: replace(chosen[name], split=boundaries(plain, config)) for name in cut}
        found += [{**ends, op.name: way} for way in ways]
    return found


def _columns(y: Tensor, pixels: int, config: HwConfig) -> list[tuple[int, ...]]:
    """All column tiles together, in two sets, and these with a small last set; none so small that the array waits."""
    count, least = -(-y.channels // config.used_cols), -(-MIN_TILE // pixels)
    found = dict.fromkeys(column_cuts(y, config, part) for part in AHEAD)
    found |= dict.fromkeys((*columns[:-1], count - least, count) for columns in found if columns[-2] < count - least)
    return [cuts for cuts in found if len(cuts) == 2 or min(end - first for first, end in pairwise(cuts)) >= least]


def _pixels(y: Tensor, choice: Choice) -> int:
    """Most pixels of a tile."""
    return max(end - first for first, end in choice.tiles) * y.width
