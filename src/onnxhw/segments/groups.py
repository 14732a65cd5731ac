"""`Groups`: runs of operations of a graph, and the boxes that the last result of one may be cut into.

A result is cut into blocks of channels, and these into stripes of columns and rows, or the other way round: weights
come once for each block, or inputs once for each stripe.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import inf

from ..config import HwConfig
from ..ir.boxes import Box, Span
from ..ir.graph import Graph
from ..sched.table_limit import tables_of
from .cutting import NeededBoxes, PartsOf, numbered, segment_of
from .effort import THOROUGH, Effort
from .plan import Region, Segment, act_words

MANY_BLOCKS = (96, 128, 192, 256, 384, 512, 768, 1024)
"""Numbers of blocks of channels that are tried where no fewer fit, and last a block for each tile's columns: of the
1,000 classes behind 1,280 channels a memory of 16 KB holds 8 at a time."""
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
    channels before the next block, or `by_stripe` all blocks of a stripe. Those of the same columns come together."""

    channels: Sequence[Span]
    rows: Sequence[Span]
    cols: Sequence[Span]
    by_stripe: bool

    def __len__(self) -> int:
        return len(self.channels) * self.stripes

    @property
    def stripes(self) -> int:
        """How many there are of a block."""
        return len(self.rows) * len(self.cols)

    @property
    def counts(self) -> tuple[int, int]:
        """Of blocks, and of stripes."""
        return len(self.channels), self.stripes

    def at(self, n: int) -> tuple[int, int]:
        """The block and the stripe of a box, by its number; numbers begin anew behind the last one."""
        if self.by_stripe:
            stripe, block = divmod(n % len(self), len(self.channels))
            return block, stripe
        return divmod(n % len(self), self.stripes)

    def box(self, block: int, stripe: int) -> Box:
        """That of a block and a stripe."""
        across, down = divmod(stripe, len(self.rows))
        return Box(self.channels[block], self.rows[down], self.cols[across])

    def __getitem__(self, n: int) -> Box:
        return self.box(*self.at(n))

    @property
    def inner(self) -> int:
        """How many in a row may have an operand in common."""
        if self.by_stripe:
            return len(self.channels)
        return next((n for n in (len(self.rows), len(self.cols), len(self.channels)) if n > 1), 1)

    def middle(self) -> int:
        """The one in the middle of the first block of channels: the last block may have fewer."""
        stripe = self.stripes // 2
        return stripe * len(self.channels) if self.by_stripe else stripe


class Groups:
    """The groups of a graph; `last_use`: of each tensor the last operation that reads it, behind all for outputs."""

    def __init__(self, graph: Graph, config: HwConfig, effort: Effort = THOROUGH) -> None:
        self.graph, self.config, self.effort, self.parts = graph, config, effort, PartsOf(graph)
        self.last_use = {name: n for n, op in enumerate(graph.ops) for name in op.inputs}
        self.last_use |= dict.fromkeys((port.tensor for port in graph.outputs), len(graph.ops))
        self._tables = tables_of(graph)
        self._results: dict[tuple[int, int], list[str]] = {}
        self._gathers: dict[tuple[int, int], bool] = {}
        self._end, self._grown = 0, dict[tuple[Cuts, int, int], _Grown]()
        """Of groups with this end the boxes that are needed for boxes of the last result."""

    def have_tables(self, first: int, end: int) -> bool:
        """Whether there are as many tables as a group needs; one that is longer needs no fewer."""
        return len({self._tables[n] for n in range(first, end) if n in self._tables}) <= self.config.tables

    def results(self, first: int, end: int) -> list[str]:
        """What a group makes for others."""
        if (found := self._results.get((first, end))) is None:
            made = [op.output for op in self.graph.ops[first:end]]
            found = self._results[first, end] = [name for name in made if self.last_use.get(name, end) >= end]
        return found

    def cuts(self, first: int, end: int) -> Iterator[list[Cuts]]:
        """For each number of blocks and of columns those with ever more stripes of rows; of rows, with ever more
        columns, where the result is more than the last of `few_cuts` times as wide as high."""
        last, effort = self.graph.ops[end - 1], self.effort
        y, crops = self.graph.tensors[last.output], last.crops
        is_long = crops[2] and y.width > effort.few_cuts[-1] * y.height
        few, many = _numbers(crops[2], y.width, effort.few_cuts), _numbers(crops[1], y.height, effort.cuts)
        if is_long:
            few, many = _numbers(crops[1], y.height, effort.few_cuts), _numbers(True, y.width, effort.long_cuts)
        for blocks, one in product(self._blocks(crops[0], y.channels), few):
            found = [(blocks, one, each) if is_long else (blocks, each, one) for each in many]
            yield [each for each in found if each != UNCUT]

    def _blocks(self, allowed: bool, channels: int) -> list[int]:
        """Numbers of blocks of so many channels; the last one: a block for each tile's columns."""
        most = -(-channels // self.config.used_cols)
        few = [n for n in self.effort.cuts if n <= most]
        return [*few, *(n for n in MANY_BLOCKS if n < most), *[most] * (most not in few)] if allowed else [1]

    def boxes(self, candidate: Candidate) -> Boxes:
        """Those of the last result: blocks of channels, and stripes of columns, in each stripes of rows."""
        return self._boxes(self.graph.ops[candidate.end - 1].output, candidate.cuts, candidate.by_stripe)

    def _boxes(self, result: str, cuts: Cuts, by_stripe: bool = False) -> Boxes:
        y, (blocks, rows, cols) = self.graph.tensors[result], cuts
        channels = _spans(y.channels, blocks, self.config.used_cols)
        return Boxes(channels, _spans(y.height, rows), _spans(y.width, cols), by_stripe)

    def segments(self, candidate: Candidate) -> list[Segment] | None:
        """The segments of a candidate, in order, all inputs loaded; None if it cannot be cut so."""
        boxes = self.boxes(candidate)
        made: list[Segment | None] = []
        for n in range(len(boxes)):
            needed = self.needed(candidate, boxes, *boxes.at(n))
            made.append(self.segment(candidate, needed) if needed else None)
        whole = Region.whole(self.graph, self.graph.ops[candidate.end - 1].output) if candidate.gathered else None
        return [replace(numbered(segment), gathered=whole) for segment in made if segment] if all(made) else None

    def segment(self, candidate: Candidate, needed: NeededBoxes) -> Segment | None:
        """The segment that makes these boxes, its tensors by the model's names; None if there is none."""
        first, end = candidate.first, candidate.end
        return segment_of(needed, self.graph.ops[first:end], self.results(first, end))

    def reused(self, candidate: Candidate, boxes: Boxes, segment: Segment) -> tuple[Sequence[Region], int]:
        """What the segment that makes the box in the middle loads and its neighbour finds on chip, and for how many
        segments in a row that is so if there is room for it."""
        if len(boxes) == 1:
            return (), 1
        at, inner = boxes.middle(), boxes.inner
        beside = self.needed(candidate, boxes, *boxes.at(at + 1 if (at + 1) % inner else at - 1))
        other = beside.boxes if beside else {}
        return tuple([region for region in segment.loads if other.get(region.tensor) == region.box]), inner

    def needed(self, candidate: Candidate, boxes: Boxes, block: int, stripe: int) -> NeededBoxes | None:
        """The boxes that a segment makes and reads; None if there is none. A group that begins at an earlier operation
        has those of one that begins later, and some more."""
        if candidate.end != self._end:
            self._end, self._grown = candidate.end, {}
        key = candidate.cuts, block, stripe
        grown = self._grown.get(key)
        if grown is None or grown.first < candidate.first:
            grown = self._grown[key] = _Grown(candidate.end, NeededBoxes(self.parts))
        while grown.able and grown.first > candidate.first:
            grown.first -= 1
            op, wanted = self.graph.ops[grown.first], None
            if self.last_use.get(op.output, candidate.end) >= candidate.end:
                mine = self._boxes(op.output, candidate.cuts)
                wanted = mine.box(block, stripe) if mine.counts == boxes.counts else None
                grown.able = wanted is not None
            grown.able = grown.able and grown.needed.add(op, wanted)
        return grown.needed if grown.able else None

    def may_gather(self, candidate: Candidate) -> bool:
        """Whether the segments of a candidate can make a tensor that stays on chip: of whole rows, their only result,
        and for others than the host."""
        if candidate.cuts[2] > 1 or candidate.whole:
            return False
        group = candidate.first, candidate.end
        if (found := self._gathers.get(group)) is None:
            found = self._gathers[group] = self._may_gather(*group)
        return found

    def _may_gather(self, first: int, end: int) -> bool:
        only = self.graph.ops[end - 1].output
        read = end <= self.last_use.get(only, 0) < len(self.graph.ops)
        read &= act_words(self.graph.tensors[only].shape, self.config) < self.config.act_words
        return read and self.results(first, end) == [only]


@dataclass
class _Grown:
    """Boxes of the operations from `first` on; unless `able` there are none, nor for groups that begin earlier."""

    first: int
    needed: NeededBoxes
    able: bool = True


def _numbers(allowed: bool, size: int, numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if number <= size] if allowed else [1]


@lru_cache(maxsize=1 << 14)
def _spans(size: int, parts: int, step: int = 1) -> tuple[Span, ...]:
    """So many spans, or fewer, that are equal but for the last, in whole steps."""
    each = -(-size // (parts * step)) * step
    return tuple((at, min(at + each, size)) for at in range(0, size, each))
