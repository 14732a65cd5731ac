"""`Groups`: runs of operations of a graph, and the boxes that the last result of one may be cut into.

A result is cut into blocks of channels, and these into stripes of columns and rows, or the other way round: weights
come once for each block, or inputs once for each stripe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from ..config import HwConfig
from ..ir.boxes import Box, Span
from ..ir.graph import Graph, Op
from .cutting import PartsOf, boxes_of, cut
from .plan import Region, Segment, act_words, peak_words, ports_of

CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of blocks of channels, of stripes of rows that are tried."""
LONG_CUTS = (*CUTS, 96, 128, 192, 256, 384, 512)
"""Numbers of stripes of columns of what is longer than high, as sound is: 512 stripes of half the memory for
activations are as much as the external memory holds."""
MANY_BLOCKS = (96, 128, 192, 256, 384, 512, 768, 1024)
"""Numbers of blocks of channels that are tried where no fewer fit, and last a block for each tile's columns: of the
1,000 classes behind 1,280 channels a memory of 16 KB holds 8 at a time."""
FEW_CUTS = (1, 2, 3, 4)
"""Numbers of stripes of the other side: a line buffer of 64 words holds 224 pixels in four."""
Cuts = tuple[int, int, int]
"""Blocks of channels, stripes of rows, stripes of columns."""
UNCUT: Cuts = (1, 1, 1)
"""Everything at once."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to run the operations `first` to `end`: the last result in so many blocks and stripes; `UNCUT`: everything
    at once. `by_stripe`: all blocks of a stripe before the next stripe, instead of all stripes of a block; `gathered`:
    what the segments make stays on chip as a whole. `cost`: cycles, about; `behind`: those if the operation before has
    left its whole result on chip; `unstored` and `behind_unstored` those if the last result is not stored either, which
    only what leaves it on chip can do. `sole`: it finds all of the result before, if that is left, and nobody later
    reads it."""

    first: int
    end: int
    cuts: Cuts
    by_stripe: bool = False
    gathered: bool = False
    cost: float = 0.0
    behind: float = 0.0
    unstored: float = inf
    behind_unstored: float = inf
    sole: bool = False

    @property
    def whole(self) -> bool:
        """Whether one segment makes everything."""
        return self.cuts == UNCUT

    @property
    def left(self) -> bool:
        """Whether its last result is on chip as a whole behind it."""
        return self.whole or self.gathered


@dataclass(frozen=True)
class Boxes:
    """The boxes that a group's last result is cut into, in the order in which they are made: all stripes of a block of
    channels before the next block, or `by_stripe` all blocks of a stripe. `stripes`: their columns and rows."""

    channels: list[Span]
    stripes: list[tuple[Span, Span]]
    by_stripe: bool

    def __len__(self) -> int:
        return len(self.channels) * len(self.stripes)

    def __getitem__(self, n: int) -> Box:
        if self.by_stripe:
            stripe, block = divmod(n % len(self), len(self.channels))
        else:
            block, stripe = divmod(n % len(self), len(self.stripes))
        across, down = self.stripes[stripe]
        return Box(self.channels[block], down, across)

    @property
    def inner(self) -> int:
        """How many in a row may have an operand in common."""
        if self.by_stripe:
            return len(self.channels)
        counts = len({down for _, down in self.stripes}), len({across for across, _ in self.stripes})
        return next((n for n in (*counts, len(self.channels)) if n > 1), 1)

    def middle(self) -> int:
        """The one in the middle of the first block of channels: the last block may have fewer."""
        stripe = len(self.stripes) // 2
        return stripe * len(self.channels) if self.by_stripe else stripe


class Groups:
    """The groups of a graph; `last_use`: of each tensor the last operation that reads it, behind all for outputs."""

    def __init__(self, graph: Graph, config: HwConfig) -> None:
        self.graph, self.config, self.parts = graph, config, PartsOf(graph)
        self.last_use = {name: n for n, op in enumerate(graph.ops) for name in op.inputs}
        self.last_use |= dict.fromkeys((port.tensor for port in graph.outputs), len(graph.ops))

    def results(self, first: int, end: int) -> list[str]:
        """What a group makes for others."""
        made = [op.output for op in self.graph.ops[first:end]]
        return [name for name in made if self.last_use.get(name, end) >= end]

    def cuts(self, first: int, end: int) -> Iterator[list[Cuts]]:
        """For each number of blocks and of columns those with ever more stripes of rows; of rows, with ever more
        columns, where the result is more than `FEW_CUTS` times as wide as high."""
        last = self.graph.ops[end - 1]
        y, crops = self.graph.tensors[last.output], last.crops
        is_long = crops[2] and y.width > FEW_CUTS[-1] * y.height
        few, many = _numbers(crops[2], y.width, FEW_CUTS), _numbers(crops[1], y.height, CUTS)
        if is_long:
            few, many = _numbers(crops[1], y.height, FEW_CUTS), _numbers(True, y.width, LONG_CUTS)
        for blocks, one in product(self._blocks(crops[0], y.channels), few):
            found = [(blocks, one, each) if is_long else (blocks, each, one) for each in many]
            yield [each for each in found if each != UNCUT]

    def _blocks(self, allowed: bool, channels: int) -> list[int]:
        """Numbers of blocks of so many channels; the last one: a block for each tile's columns."""
        most = -(-channels // self.config.used_cols)
        few = [n for n in CUTS if n <= most]
        return [*few, *(n for n in MANY_BLOCKS if n < most), *[most] * (most not in CUTS)] if allowed else [1]

    def boxes(self, candidate: Candidate) -> Boxes:
        """Those of the last result: blocks of channels, and stripes of columns, in each stripes of rows."""
        return self._boxes(candidate, self.graph.ops[candidate.end - 1].output)

    def _boxes(self, candidate: Candidate, result: str) -> Boxes:
        y, (blocks, rows, cols) = self.graph.tensors[result], candidate.cuts
        channels = _spans(y.channels, blocks, self.config.used_cols)
        stripes = [*product(_spans(y.width, cols), _spans(y.height, rows))]
        return Boxes(channels, stripes, candidate.by_stripe)

    def segments(self, candidate: Candidate) -> list[Segment] | None:
        """The segments of a candidate, in order, all inputs loaded; None if it cannot be cut so."""
        made = [self._segment(candidate, n) for n in range(1 if candidate.whole else len(self.boxes(candidate)))]
        return [segment for segment in made if segment] if all(made) else None

    def middle(self, candidate: Candidate) -> Segment | None:
        """The segment in the middle."""
        return self._segment(candidate, self.boxes(candidate).middle())

    def reused(self, candidate: Candidate, segment: Segment) -> tuple[Sequence[Region], int, int]:
        """What the segment that makes the box in the middle loads and its neighbour finds on chip, for how many
        segments in a row that is so, and the activation words that are then in use at once."""
        boxes, alone = self.boxes(candidate), peak_words(segment.graph, self.config)
        if candidate.whole or len(boxes) == 1:
            return (), 1, alone
        at, inner = boxes.middle(), boxes.inner
        ops = self.graph.ops[candidate.first : candidate.end]
        beside = self._wanted(candidate, at + 1 if (at + 1) % inner else at - 1)
        other = boxes_of(self.graph, ops, beside, self.parts) or {}
        same = tuple(region for region in segment.loads if other.get(region.tensor) == region.box)
        peak = peak_words(segment.graph, self.config, ports_of(segment, same)) if same else alone
        return (same, inner, peak) if peak <= self.config.act_words else ((), 1, alone)

    def _segment(self, candidate: Candidate, number: int) -> Segment | None:
        """The segment of this number; None if there is none."""
        ops: Sequence[Op] = self.graph.ops[candidate.first : candidate.end]
        wanted = self._wanted(candidate, number)
        made = cut(self.graph, ops, wanted, self.parts) if wanted else None
        return replace(made, gathered=Region.whole(self.graph, ops[-1].output)) if made and candidate.gathered else made

    def may_gather(self, candidate: Candidate) -> bool:
        """Whether the segments of a candidate can make a tensor that stays on chip: of whole rows, their only result,
        and for others than the host."""
        only = self.graph.ops[candidate.end - 1].output
        read = candidate.end <= self.last_use.get(only, 0) < len(self.graph.ops)
        read &= act_words(self.graph.tensors[only].shape, self.config) < self.config.act_words
        return read and candidate.cuts[2] == 1 and not candidate.whole and self._single(candidate)

    def _single(self, candidate: Candidate) -> bool:
        """Whether the last operation makes all that others read."""
        return self.results(candidate.first, candidate.end) == [self.graph.ops[candidate.end - 1].output]

    def _wanted(self, candidate: Candidate, number: int) -> Mapping[str, Box]:
        """The boxes that a segment makes of what the group makes for others; nothing if not all results are in as many
        blocks and stripes as the last one."""
        results = self.results(candidate.first, candidate.end)
        if candidate.whole:
            return {name: Box.whole(self.graph.tensors[name].shape) for name in results}
        boxes = {name: self._boxes(candidate, name) for name in results}
        counts = {(len(each.channels), len(each.stripes)) for each in boxes.values()}
        return {name: each[number] for name, each in boxes.items()} if len(counts) == 1 else {}


def _numbers(allowed: bool, size: int, numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if number <= size] if allowed else [1]


def _spans(size: int, parts: int, step: int = 1) -> list[Span]:
    """So many spans, or fewer, that are equal but for the last, in whole steps."""
    each = -(-size // (parts * step)) * step
    return [(at, min(at + each, size)) for at in range(0, size, each)]
