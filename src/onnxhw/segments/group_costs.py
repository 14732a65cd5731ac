"""`GroupCosts`: the cycles of a candidate, about, of its segment in the middle.

Runs or transfers, whichever take longer where they go side by side, else both; weights and what segments have in common
once; and some cycles for each segment.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import inf
from operator import itemgetter

from ..config import HwConfig
from ..ir.graph import Graph
from .cutting import NeededBoxes
from .estimate import LINEAR, SWAP
from .gathering import gathered_words
from .groups import Boxes, Candidate, Groups
from .move_order import COLUMN, RUN
from .part_work import NO_WORK, Work, work_of
from .plan import Occupancy, OperationPart, Region, Segment, act_words, few_channels, ports_of, region_words
from .regions import fits_words
from .weight_stream import may_stream, passes

OVERHEAD = 200
"""Cycles of a segment's run that no unit works, about: a convolution of 113,381 cycles has 112,896 of products."""
STALL = 700
"""Cycles that a segment more costs besides, as moves and runs wait for each other at its ends, about: 860 with the 128
and 224 segments of convolutions of ResNet-50, 900 with 32 instead of 16 of MobileNetV1's."""
STAY = 2.5
"""Weights that are more than the chip holds, and less than so many times: much of them may stay (`residents`), beside a
ring for those of the largest segment. So segments should be small, `STALL` is not counted, and `RING` is."""
RING = 0.1
"""Share of a segment's weights that are brought in each inference because the ring for them takes the place of others
that could stay. The autoencoder takes 76,493 cycles in 81 segments with 0.01 to 1, and 82,908 in 30 without."""
BANK_CONFLICT = 0.5
"""Share of the shorter ones of runs and transfers that is lost where they use the same banks, about: 0.2 to 0.8 in
groups of MobileNetV2, YOLOv5n and ResNet-50, a tenth where they do not. With it MobileNetV2 takes 3 % fewer cycles,
YOLOv5n 5 %."""


Way = tuple[bool, bool]
"""Whether all blocks of a stripe come before the next one, and whether what is made is gathered."""
NONE_FOUND: Mapping[Way, bool] = {}


@dataclass(frozen=True)
class _Part:
    """A segment that is one of many: what it has to do, the cycles of its run, and those in which what it loads comes,
    its last operation's result goes, and its other results."""

    segment: Segment
    work: Work
    busy: float
    loads: float
    last: float
    others: float


@dataclass(frozen=True)
class _Repeated:
    """A segment with those like it: what comes once for so many `times` takes so long; whether there is room for
    transfers beside runs, and whether they have banks of their own."""

    part: _Part
    once: float
    times: int
    room: bool
    own_banks: bool


class GroupCosts:
    """Costs of groups; `banks`: they know that transfers wait for banks that runs use, otherwise transfers go beside
    runs wherever there are words for them."""

    def __init__(self, groups: Groups, banks: bool = True) -> None:
        self.groups, self.graph, self.config, self.banks = groups, groups.graph, groups.config, banks
        assert self.config.external is not None
        self.column = self.config.external.data_bits // 8
        self.linear = self.column * LINEAR
        self.inputs = {port.tensor for port in self.graph.inputs}
        self.works: dict[OperationPart, Work] = {}
        held = self.config.weight_depth * self.config.weight_word
        self.may_stay = held < sum(op.weight.size for op in self.graph.ops) < STAY * held

    def of(
        self, candidate: Candidate, runs: int | None = None, found: Mapping[Way, bool] = NONE_FOUND
    ) -> Iterator[tuple[Candidate, bool]]:
        """The candidate in each order of its boxes, with its costs, and whether a part's transfers fit beside another
        part; and the same gathered, where that can be. Nothing if a part does not fit. `runs`: what all segments' runs
        take, if that is known. Those in a way that was `found` before are left out unless transfers fit beside parts
        only now."""
        boxes = self.groups.boxes(candidate)
        needed = self.groups.needed(candidate, boxes, *boxes.at(boxes.middle()))
        if needed is None:
            return
        blocks, count = len(boxes.channels), len(boxes)
        orders = (False, True) if 1 < blocks < count else (False,)
        gathers = (False, True) if self.groups.may_gather(candidate) else (False,)
        new = [way for way in product(orders, gathers) if not found.get(way)]
        ways = self._promising(candidate, needed, new, found)
        segment = self.groups.segment(candidate, needed) if ways else None
        if segment is None:
            return
        used, work = Occupancy(segment.graph, self.config), self._work(segment)
        if misfit(self.graph, segment, self.config, work.weights, used):
            return
        part: _Part | None = None
        for by_stripe, mine in groupby(ways, key=itemgetter(0)):
            kept, times, peak = self._reused(candidate, replace(boxes, by_stripe=by_stripe), segment, used)
            for way in mine:
                whole, words = segment, peak
                if way[1]:
                    whole = replace(segment, gathered=Region.whole(self.graph, segment.outputs[0].tensor))
                    words += gathered_words(whole, self.config)
                    if words > self.config.act_words:
                        continue
                room, own_banks = self._transfers_overlap(whole, kept, words, used)
                if way in found and not (room and own_banks):
                    continue
                part = part or self._part(segment, work, work.cycles + OVERHEAD if runs is None else runs / count)
                each = _Repeated(part, self.moving(kept), times, room, own_banks)
                once = segment.loads if count == 1 else kept if times == count else ()
                yield self._with_costs(candidate, way, each, (blocks, count), once), room and own_banks

    def _promising(
        self, candidate: Candidate, needed: NeededBoxes, ways: Sequence[Way], found: Mapping[Way, bool]
    ) -> Sequence[Way]:
        """Those ways in which a segment of these boxes may fit, with room and banks beside it if that was `found`
        without, by what is known before it is cut: words at its begin and end, and weights of parts seen before."""
        ops, config = self.graph.ops[candidate.first : candidate.end], self.config
        # Of several operations they do not come in pieces (`may_stream`).
        known = (self.works.get(needed.parts[op.output].operation_part) for op in ops)
        works = [work for work in known if work and work.weights]
        if len(works) > 1 and sum(work.weights for work in works) > config.weight_depth:
            return ()
        results = self.groups.results(candidate.first, candidate.end)
        inputs = loaded = between = outputs = 0
        for name, box in needed.boxes.items():
            words = act_words(box.shape, config)
            if name not in needed.parts:
                inputs += words
                loaded += 0 if few_channels(box.shape[1], config) else words  # they may come packed
            elif name in results:
                outputs += words
            else:
                between = max(between, words)
        peak = max(loaded + act_words(needed.boxes[ops[0].output].shape, config), outputs)
        others = act_words(self.graph.tensors[ops[-1].output].shape, config) - outputs
        """Words of the other parts of what is gathered."""
        able = []
        for way in ways:
            more, beside = (others, 0) if way[1] else (0, outputs)
            made = outputs + ((others if way[1] else 0) or outputs)
            banks = sum(-(-words // config.act_depth) for words in (inputs, between, made))
            if way not in found:
                fits = peak + more <= config.act_words
            else:
                fits = peak + more + beside <= config.act_words and (not self.banks or banks <= config.act_banks)
            if fits:
                able.append(way)
        return able

    def _work(self, segment: Segment) -> Work:
        """What the segment has to do, crops besides; other groups have parts of the same operations."""
        found, parts = NO_WORK, iter(segment.parts)
        part = next(parts, None)
        for op in segment.graph.ops:
            if part is None or op.output != part.tensor:
                found = found.plus(work_of(segment.graph, op, self.config))
                continue
            if part not in self.works:
                self.works[part] = work_of(segment.graph, op, self.config)
            found, part = found.plus(self.works[part]), next(parts, None)
        return found

    def _part(self, segment: Segment, work: Work, busy: float) -> _Part:
        """The segment in the middle, whose run takes so long."""
        outputs = segment.outputs[-1:], segment.outputs[:-1]  # the last operation's is the last
        return _Part(segment, work, busy, *map(self.moving, (segment.loads, *outputs)))

    def _reused(
        self, candidate: Candidate, boxes: Boxes, segment: Segment, used: Occupancy
    ) -> tuple[Sequence[Region], int, int]:
        """What of the middle segment's loads its neighbour finds on chip, if there is room, for how many in a row, and
        the activation words that are then in use at once."""
        kept, times = self.groups.reused(candidate, boxes, segment)
        peak = used.peak(ports_of(segment, kept))
        return (kept, times, peak) if peak <= self.config.act_words else ((), 1, used.peak())

    def _transfers_overlap(
        self, segment: Segment, kept: Collection[Region], peak: int, used: Occupancy
    ) -> tuple[bool, bool]:
        """Whether there is room for transfers beside the runs of segments, and whether they have banks of their own."""
        words = region_words([one for one in segment.loads if one not in kept], self.config)
        words += 0 if segment.gathered else region_words(segment.outputs, self.config)
        room = peak + words <= self.config.act_words
        return room, room and (not self.banks or have_own_banks(segment, kept, self.config, used))

    def _left_before(self, candidate: Candidate, once: Sequence[Region]) -> tuple[float, bool]:
        """Cycles of what need not come if the operation before has left its whole result on chip, as all segments find
        what comes `once` there; and whether nobody else reads it."""
        if candidate.first == 0:
            return 0, False
        left = Region.whole(self.graph, self.graph.ops[candidate.first - 1].output)
        if left not in once:
            return 0, False
        return self.moving([left]), self.groups.last_use[left.tensor] < candidate.end

    def _with_costs(
        self, candidate: Candidate, way: Way, each: _Repeated, counts: tuple[int, int], once: Sequence[Region]
    ) -> Candidate:
        """The candidate in a way, in so many blocks and segments, with its costs; all segments find what comes `once`
        on chip, if the operation before has left it there."""
        left, sole = self._left_before(candidate, once)

        def costs(stored: bool) -> tuple[float, float]:
            cost = self._cost(each, *counts, way[0], 0, stored)
            return cost, self._cost(each, *counts, way[0], left, stored) if left else cost

        others = costs(False) if candidate.whole or way[1] else (inf, inf)
        return Candidate(candidate.first, candidate.end, candidate.cuts, *way, *costs(True), *others, sole)

    def _cost(self, each: _Repeated, blocks: int, count: int, by_stripe: bool, left: float, stored: bool) -> float:
        """Cycles of `count` segments."""
        if by_stripe and blocks * each.part.work.weights <= self.config.weight_depth:  # the first stripe brings all
            first = self._in_a_row(each, blocks, blocks, left, stored)
            return first + self._in_a_row(each, count - blocks, 0, 0, stored)
        return self._in_a_row(each, count, count if by_stripe else blocks, left, stored)

    def _in_a_row(self, each: _Repeated, count: int, rounds: int, left: float, stored: bool) -> float:
        """Cycles of `count` segments whose weights come so many `rounds`. What `left` cycles would bring is on chip
        before the first one; `stored`: results are."""
        part, config = each.part, self.config
        work, weights = part.work, part.work.weights
        late = rounds * max(0, 2 * weights - config.weight_depth) * config.weight_word / self.linear
        if weights > config.weight_depth:  # they come in pieces, beside the run, and anew in each segment
            rounds, weights, late = count, weights * passes(part.segment.graph, config), 0.0
        of_weights = rounds * (weights * config.weight_word + work.params) / self.linear
        outputs = part.others + part.last if stored else part.others
        moved = count * (outputs + part.loads - each.once) + count / each.times * each.once - left
        runs = count * (part.busy + SWAP)
        # The first loads and the last stores of a group wait for, and hold up, the groups around it.
        late += outputs + part.loads - left
        late += RING * work.weights * config.weight_word / self.linear if self.may_stay else count * STALL
        if not each.room:
            return max(runs, of_weights) + moved + late
        shorter, longer = sorted((runs, of_weights + moved))
        return longer + (0 if each.own_banks else BANK_CONFLICT * shorter) + late

    def moving(self, regions: Sequence[Region]) -> float:
        """Cycles in which boxes of tensors are moved, about: runs of rows, or of whole blocks of channels where rows
        lie one behind the other. Inputs may lie packed."""
        found = 0.0
        for region in regions:
            x, shape = self.graph.tensors[region.tensor], region.box.shape
            blocks = -(-shape[1] // self.config.word)
            size = blocks * self.config.word * shape[2] * shape[3]
            size = region.box.size if region.tensor in self.inputs else size
            runs = blocks * (1 if shape[3] == x.width else shape[2])
            found += RUN * runs + COLUMN * size / self.column
        return found


def misfit(graph: Graph, segment: Segment, config: HwConfig, weights: int, used: Occupancy) -> str:
    """What of a segment of so many weight words exceeds a memory, or begins or ends within a word of channels; "" if
    nothing does. `used`: of its graph."""
    peak = used.peak() + gathered_words(segment, config)
    if weights > config.weight_depth and not may_stream(segment.graph, config):
        return f"{weights} weight words of {config.weight_depth}"
    if peak > config.act_words:
        return f"{peak} activation words of {config.act_words}"
    for region in (*segment.loads, *segment.outputs):
        if not fits_words(region.box, graph.tensors[region.tensor].channels, config):
            low, high = region.box.channels
            return f"channels {low} to {high} of {region.tensor!r} are no whole words of {config.word}"
    return ""


def have_own_banks(segment: Segment, kept: Collection[Region], config: HwConfig, used: Occupancy) -> bool:
    """Whether what a segment loads, its results, and what lies between its operations have banks of their own, with the
    neighbours' loads and results: so moves and runs do not wait for each other's ports. `used`: of its graph."""
    depth, loads = config.act_depth, [region for region in segment.loads if region not in kept]
    inputs = region_words(segment.inputs, config) + region_words(loads, config)
    mine = region_words(segment.outputs, config)
    words = inputs, used.between(), mine + (gathered_words(segment, config) or mine)
    return sum(-(-each // depth) for each in words) <= config.act_banks
