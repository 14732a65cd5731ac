"""`PlacementWays`: the ways to place a segment's tensors beside what others left in activation memory.

Inputs in one half of the banks and everything else in the other, either way round; in one bank and in the others;
anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..config import HwConfig
from ..ir.graph import Graph
from ..passes.packed_inputs import Origin
from ..program.layout import Place
from ..sched import Occupied
from .gathering import place_in
from .hazards import USERS
from .placed_segment import PlacedSegment
from .plan import Plan, Region, Segment, act_words
from .regions import words_of


@dataclass(frozen=True, eq=False)
class Way:
    """A way to place a segment: beside what, inputs that are on chip, tensors that may lie packed, with where
    they lie in the model's, and where the tensor lies of which the segment makes a part."""

    occupied: Occupied
    fixed: Mapping[Region, Place]
    packed: Mapping[str, Origin]
    whole: Place | None = None

    @property
    def key(self) -> object:
        """Equal for equal ways of segments of a kind, whichever part of a tensor they make."""
        one = self.occupied
        fixed = tuple(sorted((name, base) for name, base in one.fixed.items() if name not in one.planes))
        ranges, packed = tuple(sorted(one.ranges.items())), frozenset(self.packed)
        return fixed, one.kept, one.reserved, one.busy, ranges, one.from_end, packed, self.whole


@dataclass
class ActivationState:
    """What is in activation memory when the next segment begins.

    `gathered`: tensors of which several segments make a part each, that stay on chip. `chip`: what is there, and where.
    `wholes`: where those of `gathered` lie that are begun. `before`: the segment before.
    """

    gathered: set[Region]
    chip: dict[Region, Place] = field(default_factory=dict)
    wholes: dict[Region, Place] = field(default_factory=dict)
    before: PlacedSegment | None = None

    def finds(self, segment: Segment, region: Region) -> bool:
        """Whether an input of a segment is a tensor that others have left on chip as a whole."""
        return region in self.gathered and region not in segment.loads


class PlacementWays:
    """The ways to place segments of a plan; `inputs`: the tensors of which boxes may lie packed."""

    def __init__(self, plan: Plan, config: HwConfig, inputs: set[str], there: ActivationState) -> None:
        self.plan, self.config, self.inputs, self.there = plan, config, inputs, there

    def of(self, n: int) -> Iterator[Way]:
        """Those of the segment `n`, from those that hold up least to those that find room most likely."""
        whole = self.plan.segments[n].gathered
        for place in self._wholes(n, whole) if whole else (None,):
            yield from self._ways_beside(n, place)

    def _wholes(self, n: int, whole: Region) -> list[Place]:
        """Where a tensor may lie of which the segment makes a part: where it was begun, or at either end of the memory;
        the other one is for a tensor that is read meanwhile. Packed inputs must lie near the begin."""
        if whole in self.there.wholes:
            return [self.there.wholes[whole]]
        shape, words = whole.box.shape, act_words(whole.box.shape, self.config)
        here = [self.there.chip[region] for region in self.plan.segments[n].inputs if region in self.there.chip]
        taken = {int(word) for place in here for word in words_of(place, self.config)}
        bases = [base for base in (self.config.act_words - words, 0) if taken.isdisjoint(range(base, base + words))]
        return [Place(base, shape[2] * shape[3], shape[3], shape) for base in bases]

    def _ways_beside(self, n: int, whole: Place | None) -> Iterator[Way]:
        segment = self.plan.segments[n]
        ports = dict(zip(segment.inputs, (port.tensor for port in segment.graph.inputs), strict=True))
        after = self.plan.segments[n + 1] if n + 1 < len(self.plan.segments) else None
        packed = {name: segment.origins[name] for region, name in ports.items() if region.tensor in self.inputs}
        there = {region: self.there.chip[region] for region in ports if region in self.there.chip}
        # Nobody stores what all find on chip.
        needed = {region: there[region] for region in there if self.there.finds(segment, region)}
        stays = frozenset(ports[region] for region in needed if after and region in after.inputs)
        kept = frozenset(name for region, name in ports.items()
                         if after and region in after.inputs and name not in packed)  # fmt: skip
        results = self.there.before.results if self.there.before and not self.there.before.segment.gathered else {}
        reserved = tuple((place.base, place.blocks(self.config.word) * place.plane)
                         for region, place in results.items() if region not in ports)  # fmt: skip
        made, planes, own = dict[str, int](), dict[str, int](), tuple[tuple[int, int], ...]()
        if whole:
            (port,), (region,) = segment.graph.outputs, segment.outputs
            place = place_in(whole, region.box, self.config.word)
            made, planes = {port.tensor: place.base}, {port.tensor: place.plane}
            own = ((whole.base, act_words(whole.shape, self.config)),)
        fixed = {ports[region]: place.base for region, place in there.items()} | made
        loaded = [name for region, name in ports.items() if region not in there]
        busy = self._busy() if loaded else ()
        # At either end in turn: so no gap that is too small for the next ones is left between them.
        from_end = frozenset(loaded) if n % 2 else frozenset[str]()
        free = self._between([*own, *((each.base, act_words(each.shape, self.config)) for each in needed.values())])
        for mine in (busy, ()) if busy else ((),):
            for ranges in self._ranges(segment.graph, loaded, fixed, free):
                beside = Occupied(fixed, kept, (*reserved, *own), mine, ranges, from_end, planes)
                yield Way(beside, there, packed, whole)
        yield Way(Occupied(fixed, kept, own, planes=planes), there, packed, whole)
        yield Way(Occupied(fixed, stays, own, planes=planes), there, packed, whole)
        if there:
            fixed = {ports[region]: place.base for region, place in needed.items()} | made
            yield Way(Occupied(fixed, stays, own, planes=planes), needed, packed, whole)
        if packed:  # near the begin there may be no place for them
            yield Way(Occupied(fixed, stays, own, planes=planes), needed, {}, whole)

    def _between(self, taken: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """First and end of the words between those that are taken at either end of the memory."""
        low, high = 0, self.config.act_words
        for first, words in taken:
            low, high = (max(low, first + words), high) if first == 0 else (low, min(high, first))
        return low, high

    def _busy(self) -> tuple[tuple[int, int], ...]:
        """First words and numbers of words that the segment before touches."""
        if self.there.before is None:
            return ()
        touched = np.any([self.there.before.use.touched[unit] > 0 for unit in USERS], axis=0).astype(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], touched, [0]]))).tolist()
        return tuple((first, end - first) for first, end in zip(edges[::2], edges[1::2], strict=True))

    def _ranges(
        self, graph: Graph, loaded: Sequence[str], fixed: Mapping[str, int], free: tuple[int, int]
    ) -> Iterator[dict[str, tuple[int, int]]]:
        """Words in which the loaded tensors are to lie, and in which those that are made, out of those that are free:
        the banks in halves first, then one of them alone."""
        depth, (first, end) = self.config.act_depth, free
        made = [name for name in graph.tensors if name not in loaded and name not in fixed]
        half = self.config.act_banks // 2 * depth
        for edge, ways in ((half, (0, 1)), (depth, (0,)), (self.config.act_words - depth, (1,))):
            if first < edge < end:
                for way in ways:
                    parts = (first, edge), (edge, end)
                    yield dict.fromkeys(made, parts[1 - way]) | dict.fromkeys(loaded, parts[way])
        yield {}
