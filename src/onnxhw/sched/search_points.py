"""Search points: everything that is chosen about a schedule, and those to begin with."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.graph import Graph
from .alloc import ORDERS
from .column_groups import GROUP_PARTS, HALF, grouped, linked
from .lower import LoweredGraph
from .operation_order import short_branches_first
from .task import Tiling
from .tiling import block_by_block, chained, coarsest, pieces

PARTS = (0.5, 0.6)
"""Of the rows of the first map, how many the first of two tiles has where the depthwise unit works: each 3 x 3 window
after it takes a row from that tile, so that one half shrinks. KWS takes 9,957 cycles on `ulx3s-85f` with 0.5 alone,
9,937 with 0.6 alone or with both, 9,929 with 0.7 besides."""
PIECES = 4, 48
"""Where the depthwise unit works: how many tiles an operation may have to begin with, and the fewest pixels of each.
VWW takes 20,170 cycles on `ulx3s-85f`; with at most 2 tiles 22,642, with 8 21,079; of 24 pixels at least 20,381, of 96
20,877."""


@dataclass(frozen=True)
class SearchPoint:
    """Everything that is chosen: cuts per operation, the order of operations and tasks (`sequence`), the placement
    strategy, whether buffers may share words (`overlap`), and whether the inputs keep their memory to themselves."""

    graph: Graph
    tilings: dict[str, Tiling]
    eager: bool = True
    clocked: bool = False
    order: str = "size"
    preferences: bool = True
    overlap: bool = False
    exclusive_inputs: bool = False


def first_points(lowered: LoweredGraph) -> Iterator[list[SearchPoint]]:
    """Search points to begin with, from fast to frugal, in groups of which one success is enough."""
    use, clocked = lowered.use, _with_depthwise(lowered)
    ways = [(tilings, use.eager, use.clock_order) for tilings in clocked]
    ways += [(tilings, use.eager, False) for tilings in _tilings(lowered, not clocked)]
    ways.append((_coarse(lowered), False, False))
    overlaps, orders = (False, True)[: 1 + use.overlap], ORDERS if use.strategies else ORDERS[:1]
    prefer = (True, False) if use.bank_preferences else (False,)
    graphs = _orders(lowered)
    for tilings, eager, clock in ways:
        for graph in graphs:
            yield [
                SearchPoint(graph, tilings, eager, clock, order, preferences, overlap)
                for overlap in overlaps for preferences in prefer for order in orders
            ]  # fmt: skip


def _orders(lowered: LoweredGraph) -> list[Graph]:
    """The graph, and another order of its operations where that differs."""
    short = short_branches_first(lowered.graph) if lowered.use.short_branches else lowered.graph
    differs = [op.name for op in short.ops] != [op.name for op in lowered.graph.ops]
    return [lowered.graph, short] if differs else [lowered.graph]


def _coarse(lowered: LoweredGraph) -> dict[str, Tiling]:
    return {op.name: coarsest(op, lowered.graph, lowered.config) for op in lowered.graph.ops}


def _finer(lowered: LoweredGraph, part: float = 0.5) -> dict[str, Tiling]:
    return chained(lowered.graph, lowered.config, part) if lowered.use.row_tiles else _coarse(lowered)


def _with_depthwise(lowered: LoweredGraph) -> list[dict[str, Tiling]]:
    """Tilings to begin with where the depthwise unit works beside the array; none where it does not."""
    graph, config, use = lowered.graph, lowered.config, lowered.use
    found: list[dict[str, Tiling]] = []
    for part in PARTS:
        base = _finer(lowered, part)
        tilings = block_by_block(graph, base, config)
        if tilings != base:
            found += [tilings, base] if use.block_by_block else [base]
    if not found or not use.row_tiles:
        return found
    fine = pieces(graph, config, *PIECES)
    first = (fine, block_by_block(graph, fine, config)) if use.block_by_block else (fine,)
    return [tilings for tilings in first if tilings not in found] + found


def _tilings(lowered: LoweredGraph, groups: bool) -> list[dict[str, Tiling]]:
    """Tilings to begin with on the array and the vector unit; `groups`: also with column tiles together."""
    graph, config, use = lowered.graph, lowered.config, lowered.use
    finer, coarse = _finer(lowered), _coarse(lowered)
    found = [finer]
    if groups and use.column_groups:
        more = [grouped(graph, finer, config, part) for part in GROUP_PARTS]
        more += [linked(grouped(graph, finer, config, HALF))] if use.lookahead else []
        for tilings in more:
            if tilings != coarse and tilings not in found:
                found.append(tilings)
    return [*found, coarse]
