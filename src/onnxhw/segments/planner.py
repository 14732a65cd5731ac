"""`make_plan`: groups of operations, and the boxes of their results that are made one after the other.

A group is a run of operations, in the graph's order, or in that in which each comes behind what it reads as soon as may
be, whichever costs less. Its last result is cut into blocks of channels, and these into stripes of columns and rows, or
the other way round: weights come once for each block, or inputs once for each stripe. What lies between its operations
never leaves the chip. Groups are chosen so that the sum of their rough costs is least; what the scheduler then refuses
is left out, what it takes is counted as it is, and they are chosen again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from ..config import HwConfig
from ..errors import DoesNotFitError, UnsupportedError, UsageError
from ..ir.boxes import Box, Span
from ..ir.graph import Graph, Op
from .buffers import assign
from .checker import check_plan
from .cutting import PartsOf, boxes_of, cut
from .estimate import LINEAR, SPILLED, SWAP, depends
from .plan import (
    PARAM_BYTES,
    Plan,
    Region,
    Segment,
    act_words,
    array_cycles,
    between_words,
    depthwise_cycles,
    peak_words,
    pieces,
    ports_of,
    region_words,
    weights_of,
)
from .regions import fits_words
from .techniques import ALL, Techniques

LONGEST = 14
"""Most operations of a group: a stage of two branches with a SiLU behind each of five convolutions has so many. YOLOv5n
takes 9 % more cycles with 8."""
CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of blocks of channels, of stripes of rows that are tried."""
LONG_CUTS = (*CUTS, 96, 128, 192, 256, 384, 512)
"""Numbers of stripes of columns of what is longer than high, as sound is: 512 stripes of half the memory for
activations are as much as the external memory holds."""
FEW_CUTS = (1, 2, 3, 4)
"""Numbers of stripes of the other side: a line buffer of 64 words holds 224 pixels in four."""
OVERHEAD = 200
"""Cycles of a segment's run that no unit works, about: a convolution of 113,381 cycles has 112,896 of products."""
SUMMED = 0.75
"""Share of the cycles of depthwise convolutions of several windows for which the array waits, about: 0.7 where one of
5 x 5 follows a convolution of EfficientNet-lite0, 1.1 where it comes before one."""
STALL = 700
"""Cycles that a segment more costs besides, as moves and runs wait for each other at its ends, about: 860 with the 128
and 224 segments of convolutions of ResNet-50, 900 with 32 instead of 16 of MobileNetV1's."""
STAY = 2.5
"""Weights that are more than the chip holds, and less than so many times: much of them may stay (`residents`), beside a
ring for those of the largest segment. So segments should be small, and `STALL` is not counted: the autoencoder takes
79,617 cycles so, and 99,428 in six segments instead of 30."""
BANK_CONFLICT = 0.5
"""Share of the shorter ones of runs and transfers that is lost where they use the same banks, about: 0.2 to 0.8 in
groups of MobileNetV2, YOLOv5n and ResNet-50, a tenth where they do not. With it MobileNetV2 takes 3 % fewer cycles,
YOLOv5n 5 %."""
FEW = 48
"""Segments at most for which costs do not know banks: finer stripes move more, and leave less time in which
weights of a later group could come. ResNet-8, of eleven, takes 6 % fewer cycles without."""
ROUNDS = 200
"""Times that groups are chosen again at most."""


Cycles = Callable[[Graph], int | None]
"""Of a segment's run; None: not known."""


class NoPartError(DoesNotFitError):
    """E5191: of an operation of a graph no part fits the chip; `operation` is its name."""

    def __init__(self, op: Op, refusals: Sequence[str]) -> None:
        last = f"; last: {refusals[-1]}" if refusals else ""
        super().__init__("E5191", f"no part of it fits the chip{last}", where=op.where, hint="a larger preset")
        self.operation = op.name


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to run the operations `first` to `end`: the last result in so many blocks of channels, stripes of rows and
    of columns; (1, 1, 1): everything at once. `by_stripe`: all blocks of a stripe before the next stripe, instead of
    all stripes of a block. `cost`: cycles, about."""

    first: int
    end: int
    cuts: tuple[int, int, int]
    by_stripe: bool = False
    cost: float = 0.0


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


def make_plan(
    graph: Graph, config: HwConfig, cycles: Cycles, techniques: Techniques = ALL
) -> Plan:
    """The checked plan of a graph for a configuration with external memory.

    `cycles` has those of a segment's run, or raises `DoesNotFitError` or `UnsupportedError` if it cannot be scheduled
    (`onnxhw.segments.PartCycles`). `UsageError` E2190: the configuration has no external memory. `DoesNotFitError`
    E5190: it is too small. `NoPartError` E5191: of an operation there is no part that fits the chip.
    """
    if config.external is None:
        raise UsageError("E2190", f"{config.name} has no external memory", hint="a preset with +sdram")
    segments = _cheapest(graph, config, cycles, techniques, True)
    if len(segments) <= FEW:
        segments = _cheapest(graph, config, cycles, techniques, False)
    linked = chained(segments, config)
    found = Plan(linked, assign(graph, linked, config, config.external))
    check_plan(graph, found, config)
    return found


def _cheapest(
    graph: Graph, config: HwConfig, cycles: Cycles, techniques: Techniques, banks: bool
) -> list[Segment]:
    """The segments of the order of operations that costs less; `banks`: costs know that transfers wait for banks that
    runs use; otherwise they go beside runs wherever there are words for them."""
    known: dict[object, list[Candidate]] = {}
    orders = [graph] if (order := depth_first(graph)) == graph.ops else [graph, replace(graph, ops=order)]
    plans: list[tuple[float, list[Segment]]] = []
    for each in orders:
        search = _Search(each, config, LONGEST if techniques.depth_first else 1, known, banks)
        try:
            plans.append(_accepted(search, cycles))
        except NoPartError:
            if each is orders[-1] and not plans:
                raise
    return min(plans, key=lambda each: each[0])[1]


def _accepted(search: "_Search", cycles: Cycles) -> tuple[float, list[Segment]]:
    """The cost and the segments of the cheapest candidates of which nothing is refused, and whose runs are counted as
    they are; `NoPartError` E5191."""
    refused: dict[Candidate, str] = {}
    accepted: dict[Candidate, list[Segment]] = {}
    costs: dict[Candidate, float] = {}
    for _ in range(ROUNDS):
        chosen = search.best(refused, costs)
        new = [candidate for candidate in chosen if candidate not in accepted]
        if not new:
            return sum(costs[each] for each in chosen), [part for each in chosen for part in accepted[each]]
        for candidate in new:
            made = search.segments(candidate)
            if why := _refusal(search.graph, made, search.config, cycles):
                refused[candidate] = why
            elif made:
                accepted[candidate] = made
                runs = [cycles(segment.graph) for segment in made]
                known = [run for run in runs if run is not None]
                costs[candidate] = search.cost(candidate, sum(known)) if len(known) == len(runs) else candidate.cost
    raise NoPartError(search.graph.ops[0], list(refused.values()))


def _refusal(
    graph: Graph, segments: Sequence[Segment] | None, config: HwConfig, cycles: Cycles
) -> str:
    """Why a candidate cannot be; "" if it can."""
    try:
        for segment in segments or ():
            weights, peak = sum(weights_of(segment, config).values()), peak_words(segment.graph, config)
            if why := _too_large(weights, peak, config) or _between_words(graph, segment, config):
                return why
            cycles(segment.graph)
    except (DoesNotFitError, UnsupportedError) as error:
        return error.what
    return "" if segments else "it cannot be cut so"


class _Search:
    """Candidates of a graph on a configuration, of `longest` operations at most; `known`: those of groups that another
    order of the operations has, too; `banks`: costs know of them."""

    def __init__(
        self, graph: Graph, config: HwConfig, longest: int, known: dict[object, list[Candidate]], banks: bool = True
    ) -> None:
        assert config.external is not None
        self.graph, self.config, self.banks = graph, config, banks
        self.column = config.external.data_bits / 8
        self.parts = PartsOf(graph)
        outputs = {port.tensor for port in graph.outputs}
        held = config.weight_depth * config.weight_word
        self.stall = 0 if held < sum(op.weight.size for op in graph.ops) < STAY * held else STALL
        self.last_use = {name: n for n, op in enumerate(self.graph.ops) for name in op.inputs}
        self.last_use |= dict.fromkeys(outputs, len(graph.ops))
        self.candidates: list[Candidate] = []
        self.by_first: dict[int, list[Candidate]] = {}
        for first in range(len(graph.ops)):
            for end in range(first + 1, min(first + longest, len(graph.ops)) + 1):
                key = tuple(op.output for op in graph.ops[first:end])
                if key not in known:
                    known[key] = [*self._of(first, end)]
                found = [replace(each, first=first, end=end) for each in known[key]]
                self.candidates += found
                self.by_first.setdefault(first, []).extend(found)
                if not found and len(self._results(Candidate(first, end, (1, 1, 1)))) == 1:
                    break  # one that is longer takes more memory

    def best(self, refused: Mapping[Candidate, str], costs: Mapping[Candidate, float]) -> list[Candidate]:
        """The cheapest candidates that make all operations, in order; E5191 if there are none. `costs`: of those that
        have another one than their own."""
        count = len(self.graph.ops)
        chosen: dict[int, tuple[float, Candidate | None]] = {count: (0.0, None)}
        for first in reversed(range(count)):
            ways = [each for each in self.by_first.get(first, ()) if each.end in chosen and each not in refused]
            if ways:
                totals = [costs.get(each, each.cost) + chosen[each.end][0] for each in ways]
                least = min(totals)
                chosen[first] = least, ways[totals.index(least)]
        if 0 not in chosen:
            stuck = max(n for n in range(count) if n not in chosen)
            raise NoPartError(self.graph.ops[stuck], [why for each, why in refused.items() if each.first == stuck])
        path: list[Candidate] = []
        at = 0
        while (found := chosen[at][1]) is not None:
            path.append(found)
            at = found.end
        return path

    def cost(self, candidate: Candidate, runs: int) -> float:
        """Cycles of a candidate, about, whose segments run for so many cycles."""
        each = self._costs(candidate, runs)
        return next(found.cost for found, _ in each if found.by_stripe == candidate.by_stripe)

    def segments(self, candidate: Candidate) -> list[Segment] | None:
        """The segments of a candidate, in order, all inputs loaded."""
        ops = self._ops(candidate)
        made = [cut(self.graph, ops, wanted, self.parts) for wanted in self._wanted(candidate)]
        return [segment for segment in made if segment] if all(made) else None

    def _ops(self, candidate: Candidate) -> list[Op]:
        return self.graph.ops[candidate.first : candidate.end]

    def _wanted(self, candidate: Candidate) -> list[dict[str, Box]]:
        """Of each part the boxes that it makes for others."""
        if candidate.cuts == (1, 1, 1):
            return [{name: Box.whole(self.graph.tensors[name].shape) for name in self._results(candidate)}]
        name, boxes = self.graph.ops[candidate.end - 1].output, self._boxes(candidate)
        return [{name: boxes[n]} for n in range(len(boxes))]

    def _results(self, candidate: Candidate) -> list[str]:
        """What a group makes for others."""
        made, end = [op.output for op in self._ops(candidate)], candidate.end
        return [name for name in made if self.last_use.get(name, end) >= end]

    def _boxes(self, candidate: Candidate) -> Boxes:
        """Blocks of channels, and stripes of columns, in each stripes of rows."""
        y, (blocks, rows, cols) = self.graph.tensors[self.graph.ops[candidate.end - 1].output], candidate.cuts
        channels = _spans(y.channels, blocks, self.config.used_cols)
        stripes = [*product(_spans(y.width, cols), _spans(y.height, rows))]
        return Boxes(channels, stripes, candidate.by_stripe)

    def _of(self, first: int, end: int) -> Iterator[Candidate]:
        """Everything at once if that fits; else of each number of blocks and of columns, in each order, the fewest
        stripes of rows that fit, and the fewest with which transfers and runs can go on side by side. Columns for rows
        where a result is more than `FEW_CUTS` times as wide as high."""
        for candidate, _ in self._costs(Candidate(first, end, (1, 1, 1))):
            yield candidate
        last = self.graph.ops[end - 1]
        if self._results(Candidate(first, end, (1, 1, 1))) != [last.output]:
            return
        y, crops = self.graph.tensors[last.output], last.crops
        is_long = crops[2] and y.width > FEW_CUTS[-1] * y.height
        rows, cols = _numbers(crops[1], y.height), _numbers(crops[2], y.width, FEW_CUTS)
        if is_long:
            rows, cols = _numbers(crops[1], y.height, FEW_CUTS), _numbers(True, y.width, LONG_CUTS)
        for blocks, few in product(_numbers(crops[0], y.channels), rows if is_long else cols):
            if blocks > 1 and (blocks - 1) * self.config.used_cols >= y.channels:
                continue
            found: dict[bool, bool] = {}
            """By order, whether transfers and runs of what was found go on side by side."""
            for many in cols if is_long else rows:
                cuts = (blocks, few, many) if is_long else (blocks, many, few)
                if cuts == (1, 1, 1):
                    continue
                for candidate, beside in self._costs(Candidate(first, end, cuts)):
                    if beside > found.get(candidate.by_stripe, -1):
                        yield candidate
                        found[candidate.by_stripe] = beside
                if found and all(found.values()):
                    break

    def _costs(self, candidate: Candidate, runs: int | None = None) -> Iterator[tuple[Candidate, bool]]:
        """The candidate in each order of its boxes, with its cycles, about, and whether a part's transfers fit beside
        another part; nothing if a part does not fit. `runs`: what all segments' runs take, if that is known."""
        if candidate.cuts == (1, 1, 1):
            (wanted,), blocks, count = self._wanted(candidate), 1, 1
        else:
            boxes = self._boxes(candidate)
            blocks, count = len(boxes.channels), len(boxes)
            wanted = {self.graph.ops[candidate.end - 1].output: boxes[boxes.middle()]}
        segment = cut(self.graph, self._ops(candidate), wanted, self.parts)
        if segment is None:
            return
        weights, alone = sum(weights_of(segment, self.config).values()), peak_words(segment.graph, self.config)
        if _too_large(weights, alone, self.config) or _between_words(self.graph, segment, self.config):
            return
        busy = _run(segment.graph, self.config) + OVERHEAD if runs is None else runs / count
        for by_stripe in (False, True) if 1 < blocks < count else (False,):
            ordered = replace(candidate, by_stripe=by_stripe)
            kept, times, peak = self._reused(ordered, segment, alone)
            fit = blocks * weights <= self.config.weight_depth
            if by_stripe and fit:  # the first stripe's segments bring all weights
                first = self._cost(segment, weights, busy, peak, blocks, blocks, kept, times)
                others = self._cost(segment, weights, busy, peak, count - blocks, 0, kept, times)
                cost, beside = first[0] + others[0], first[1]
            else:
                rounds = count if by_stripe else blocks
                cost, beside = self._cost(segment, weights, busy, peak, count, rounds, kept, times)
            yield replace(ordered, cost=cost), beside

    def _reused(self, candidate: Candidate, segment: Segment, alone: int) -> tuple[Sequence[Region], int, int]:
        """What the segment that makes the box in the middle loads and its neighbour finds on chip, for how many
        segments in a row that is so, and the activation words that are then in use at once; `alone`: if nothing is."""
        if candidate.cuts == (1, 1, 1):
            return (), 1, alone
        boxes = self._boxes(candidate)
        if len(boxes) == 1:
            return (), 1, alone
        at, inner = boxes.middle(), boxes.inner
        beside = {self.graph.ops[candidate.end - 1].output: boxes[at + 1 if (at + 1) % inner else at - 1]}
        other = boxes_of(self.graph, self._ops(candidate), beside, self.parts) or {}
        same = tuple(region for region in segment.loads if other.get(region.tensor) == region.box)
        peak = peak_words(segment.graph, self.config, ports_of(segment, same)) if same else alone
        return (same, inner, peak) if peak <= self.config.act_words else ((), 1, alone)

    def _cost(
        self, segment: Segment, weights: int, busy: float, peak: int, count: int, rounds: int, kept: Sequence[Region],
        times: int,
    ) -> tuple[float, bool]:  # fmt: skip
        """Cycles, about, of `count` segments of so many weight words and, at their `peak`, activation words, that are
        `busy` for so many cycles, whose weights come so many `rounds`, and whether transfers fit beside them. `kept`:
        what comes once for so many segments."""
        config = self.config
        params = PARAM_BYTES * sum(len(op.weight) for op in segment.graph.ops)
        linear, spilled = self.column * LINEAR, self.column * SPILLED
        of_weights = rounds * (weights * config.weight_word + params) / linear
        late = rounds * max(0, 2 * weights - config.weight_depth) * config.weight_word / linear
        outputs = sum(region.box.size for region in segment.outputs)
        loads = sum(region.box.size for region in segment.loads)
        once = sum(region.box.size for region in kept)
        moved = count * (outputs + loads - once) + count / times * once
        runs = count * (busy + SWAP)
        # The first loads and the last stores of a group wait for, and hold up, the groups around it.
        late += (outputs + loads) / spilled + count * self.stall
        words = region_words((*(region for region in segment.loads if region not in kept), *segment.outputs), config)
        if peak + words > config.act_words:
            return max(runs, of_weights) + moved / spilled + late, False
        shorter, longer = sorted((runs, of_weights + moved / spilled))
        beside = not self.banks or _have_own_banks(segment, kept, config)
        return longer + (0 if beside else BANK_CONFLICT * shorter) + late, beside


def depth_first(graph: Graph) -> list[Op]:
    """The operations, each as soon as may be behind the last one that it reads of; exporters and quantizers write all
    branches side by side, of which no run is a group with one result."""
    made = {op.output: op for op in graph.ops}
    readers: dict[str, list[int]] = {}
    missing: list[int] = []
    for n, op in enumerate(graph.ops):
        mine = {name for name in op.inputs if name in made}
        missing.append(len(mine))
        for name in mine:
            readers.setdefault(name, []).append(n)
    ready = [n for n in reversed(range(len(graph.ops))) if not missing[n]]
    found: list[Op] = []
    while ready:
        op = graph.ops[ready.pop()]
        found.append(op)
        for n in reversed(readers.get(op.output, ())):
            missing[n] -= 1
            if not missing[n]:
                ready.append(n)
    return found


def _too_large(weights: int, peak: int, config: HwConfig) -> str:
    """What of a segment of so many weight words and, at their peak, activation words exceeds its memory; "" if nothing
    does."""
    if weights > config.weight_depth:
        return f"{weights} weight words of {config.weight_depth}"
    if peak > config.act_words:
        return f"{peak} activation words of {config.act_words}"
    return ""


def _have_own_banks(segment: Segment, kept: Collection[Region], config: HwConfig) -> bool:
    """Whether what a segment loads, its results, and what lies between its operations have banks of their own, with the
    neighbours' loads and results: so moves and runs do not wait for each other's ports."""
    depth, loads = config.act_depth, [region for region in segment.loads if region not in kept]
    inputs = region_words(segment.inputs, config) + region_words(loads, config)
    words = inputs, between_words(segment.graph, config), 2 * region_words(segment.outputs, config)
    return sum(-(-each // depth) for each in words) <= config.act_banks


def _between_words(graph: Graph, segment: Segment, config: HwConfig) -> str:
    """What of a segment's loads and stores begins or ends within a word of channels; "" if nothing does."""
    for region in (*segment.loads, *segment.outputs):
        if not fits_words(region.box, graph.tensors[region.tensor].channels, config):
            low, high = region.box.channels
            return f"channels {low} to {high} of {region.tensor!r} are no whole words of {config.word}"
    return ""


def _numbers(allowed: bool, size: int, numbers: Sequence[int] = CUTS) -> list[int]:
    return [number for number in numbers if number <= size] if allowed else [1]


def _spans(size: int, parts: int, step: int = 1) -> list[Span]:
    """So many spans, or fewer, that are equal but for the last, in whole steps."""
    each = -(-size // (parts * step)) * step
    return [(at, min(at + each, size)) for at in range(0, size, each)]


def _run(graph: Graph, config: HwConfig) -> float:
    """Cycles of the unit that has most to do: array, depthwise and vector unit work side by side. Windows of a
    depthwise convolution that are added up take accumulators, for which the array waits, too."""
    array, depthwise, vector = 0.0, 0, 0
    for op in graph.ops:
        (x, *_), y = graph.operands(op), graph.tensors[op.output]
        drained = act_words(y.shape, config) * config.lane_groups
        if not op.weight.size:
            vector += 0 if op.joins else drained * max(1, op.taps)
            continue
        vector += drained
        if (cycles := depthwise_cycles(op, x, config)) is not None:
            depthwise += cycles
            array += SUMMED * cycles if prod(pieces(op)) > 1 else 0
        else:
            array += array_cycles(op, x, config)
    return max(array, depthwise, vector)


def chained(segments: Sequence[Segment], config: HwConfig) -> tuple[Segment, ...]:
    """The segments without loads of what is on chip from the one before, and with early loads where there is room."""
    found: list[Segment] = []
    for segment in segments:
        before, pending = (found[-1], found[-2].outputs if len(found) > 1 else ()) if found else (None, ())
        if before:
            kept = tuple(region for region in segment.loads if region in (*before.inputs, *before.outputs))
            if peak_words(before.graph, config, ports_of(before, kept)) > config.act_words:
                kept = ()
            loads = tuple(region for region in segment.loads if region not in kept)
            words = peak_words(before.graph, config, ports_of(before, kept))
            words += region_words(loads, config) + region_words(pending, config)
            early = bool(loads) and words <= config.act_words
            segment = replace(segment, loads=loads)
            segment = replace(segment, early=early and not depends(segment, before.outputs))
        found.append(segment)
    return tuple(found)
