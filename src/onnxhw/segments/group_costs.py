"""`GroupCosts`: the cycles of a candidate, about, of its segment in the middle.

Runs or transfers, whichever take longer where they go side by side, else both; weights and what segments have in common
once; and some cycles for each segment.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..config import HwConfig
from ..ir.graph import Graph
from .estimate import LINEAR, SWAP
from .gathering import gathered_words
from .groups import Candidate, Groups
from .move_order import COLUMN, RUN
from .plan import (
    PARAM_BYTES,
    Region,
    Segment,
    act_words,
    array_cycles,
    between_words,
    depthwise_cycles,
    peak_words,
    pieces,
    region_words,
    weights_of,
)
from .regions import fits_words
from .weight_stream import may_stream, passes

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
ring for those of the largest segment. So segments should be small, `STALL` is not counted, and `RING` is."""
RING = 0.1
"""Share of a segment's weights that are brought in each inference because the ring for them takes the place of others
that could stay. The autoencoder takes 76,493 cycles in 81 segments with 0.01 to 1, and 82,908 in 30 without."""
BANK_CONFLICT = 0.5
"""Share of the shorter ones of runs and transfers that is lost where they use the same banks, about: 0.2 to 0.8 in
groups of MobileNetV2, YOLOv5n and ResNet-50, a tenth where they do not. With it MobileNetV2 takes 3 % fewer cycles,
YOLOv5n 5 %."""


@dataclass(frozen=True)
class _Repeated:
    """A segment that is one of many: its weight words, the cycles of its run, what comes once for so many `times`
    (`kept`), and the activation words that are in use at once."""

    segment: Segment
    weights: int
    busy: float
    kept: Sequence[Region]
    times: int
    peak: int


class GroupCosts:
    """Costs of groups; `banks`: they know that transfers wait for banks that runs use, otherwise transfers go beside
    runs wherever there are words for them."""

    def __init__(self, groups: Groups, banks: bool = True) -> None:
        self.groups, self.graph, self.config, self.banks = groups, groups.graph, groups.config, banks
        assert self.config.external is not None
        self.column = self.config.external.data_bits // 8
        self.linear = self.column * LINEAR
        self.inputs = {port.tensor for port in self.graph.inputs}
        held = self.config.weight_depth * self.config.weight_word
        self.may_stay = held < sum(op.weight.size for op in self.graph.ops) < STAY * held

    def of(self, candidate: Candidate, runs: int | None = None) -> Iterator[tuple[Candidate, bool]]:
        """The candidate in each order of its boxes, with its costs, and whether a part's transfers fit beside another
        part; and the same gathered, where that can be. Nothing if a part does not fit. `runs`: what all segments' runs
        take, if that is known."""
        segment = self.groups.middle(candidate)
        if segment is None or misfit(self.graph, segment, self.config):
            return
        boxes = self.groups.boxes(candidate)
        blocks, count = (1, 1) if candidate.whole else (len(boxes.channels), len(boxes))
        weights = sum(weights_of(segment, self.config).values())
        busy = run_cycles(segment.graph, self.config) + OVERHEAD if runs is None else runs / count
        may_gather = self.groups.may_gather(candidate)
        for by_stripe in (False, True) if 1 < blocks < count else (False,):
            ordered = replace(candidate, by_stripe=by_stripe)
            each = _Repeated(segment, weights, busy, *self.groups.reused(ordered, segment))
            left, sole = self._left_before(candidate, each, count)
            for gathered in (False, True) if may_gather else (False,):
                mine = each
                if gathered:
                    whole = replace(segment, gathered=Region.whole(self.graph, segment.outputs[0].tensor))
                    mine = replace(each, segment=whole, peak=each.peak + gathered_words(whole, self.config))
                    if mine.peak > self.config.act_words:
                        continue
                found = replace(ordered, gathered=gathered)
                cost, beside = self._cost(mine, blocks, count, by_stripe, 0, True)
                behind = self._cost(mine, blocks, count, by_stripe, left, True)[0]
                found = replace(found, cost=cost, behind=behind, sole=sole)
                if found.left:
                    unstored = self._cost(mine, blocks, count, by_stripe, 0, False)[0]
                    both = self._cost(mine, blocks, count, by_stripe, left, False)[0]
                    found = replace(found, unstored=unstored, behind_unstored=both)
                yield found, beside

    def _left_before(self, candidate: Candidate, each: _Repeated, count: int) -> tuple[float, bool]:
        """Cycles of what need not come if the operation before has left its whole result on chip, as all segments find
        it there; and whether nobody else reads it."""
        if candidate.first == 0:
            return 0, False
        left = Region.whole(self.graph, self.graph.ops[candidate.first - 1].output)
        if left not in (each.segment.loads if count == 1 else each.kept if each.times == count else ()):
            return 0, False
        return self.moving([left]), self.groups.last_use[left.tensor] < candidate.end

    def _cost(
        self, each: _Repeated, blocks: int, count: int, by_stripe: bool, left: float, stored: bool
    ) -> tuple[float, bool]:
        """Cycles of `count` segments, and whether transfers fit beside them."""
        if by_stripe and blocks * each.weights <= self.config.weight_depth:  # the first stripe brings all weights
            first, beside = self._in_a_row(each, blocks, blocks, left, stored)
            return first + self._in_a_row(each, count - blocks, 0, 0, stored)[0], beside
        return self._in_a_row(each, count, count if by_stripe else blocks, left, stored)

    def _in_a_row(self, each: _Repeated, count: int, rounds: int, left: float, stored: bool) -> tuple[float, bool]:
        """Cycles of `count` segments whose weights come so many `rounds`, and whether transfers fit beside them. What
        `left` cycles would bring is on chip before the first one; `stored`: results are."""
        segment, config = each.segment, self.config
        params, weights = PARAM_BYTES * sum(len(op.weight) for op in segment.graph.ops), each.weights
        late = rounds * max(0, 2 * weights - config.weight_depth) * config.weight_word / self.linear
        if weights > config.weight_depth:  # they come in pieces, beside the run, and anew in each segment
            rounds, weights, late = count, weights * passes(segment.graph, config), 0.0
        of_weights = rounds * (weights * config.weight_word + params) / self.linear
        made = segment.outputs if stored else segment.outputs[:-1]  # the last operation's is the last
        outputs, loads, once = map(self.moving, (made, segment.loads, each.kept))
        moved = count * (outputs + loads - once) + count / each.times * once - left
        runs = count * (each.busy + SWAP)
        # The first loads and the last stores of a group wait for, and hold up, the groups around it.
        late += outputs + loads - left
        late += RING * each.weights * config.weight_word / self.linear if self.may_stay else count * STALL
        words = region_words([one for one in segment.loads if one not in each.kept], config)
        words += 0 if segment.gathered else region_words(segment.outputs, config)
        if each.peak + words > config.act_words:
            return max(runs, of_weights) + moved + late, False
        shorter, longer = sorted((runs, of_weights + moved))
        beside = not self.banks or have_own_banks(segment, each.kept, config)
        return longer + (0 if beside else BANK_CONFLICT * shorter) + late, beside

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


def misfit(graph: Graph, segment: Segment, config: HwConfig) -> str:
    """What of a segment exceeds a memory, or begins or ends within a word of channels; "" if nothing does."""
    weights = sum(weights_of(segment, config).values())
    peak = peak_words(segment.graph, config) + gathered_words(segment, config)
    if weights > config.weight_depth and not may_stream(segment.graph, config):
        return f"{weights} weight words of {config.weight_depth}"
    if peak > config.act_words:
        return f"{peak} activation words of {config.act_words}"
    for region in (*segment.loads, *segment.outputs):
        if not fits_words(region.box, graph.tensors[region.tensor].channels, config):
            low, high = region.box.channels
            return f"channels {low} to {high} of {region.tensor!r} are no whole words of {config.word}"
    return ""


def have_own_banks(segment: Segment, kept: Collection[Region], config: HwConfig) -> bool:
    """Whether what a segment loads, its results, and what lies between its operations have banks of their own, with the
    neighbours' loads and results: so moves and runs do not wait for each other's ports."""
    depth, loads = config.act_depth, [region for region in segment.loads if region not in kept]
    inputs = region_words(segment.inputs, config) + region_words(loads, config)
    mine = region_words(segment.outputs, config)
    words = inputs, between_words(segment.graph, config), mine + (gathered_words(segment, config) or mine)
    return sum(-(-each // depth) for each in words) <= config.act_banks


def run_cycles(graph: Graph, config: HwConfig) -> float:
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
