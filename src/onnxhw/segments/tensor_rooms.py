"""`tensor_rooms`: tensors that lie in external memory one after the other in the same words.

Weights of ResNet-50 are 25 MB, and all tensors between its segments 10 MB more, but two of them at a time are enough. A
tensor's words are free for another as soon as the last segment that loads of it has done so. Inputs and outputs stay
where they are, as the host comes there at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..external import ExternalMemory
from ..ir.boxes import Box
from ..ir.graph import Graph
from .placed_segment import PlacedSegment
from .plan import Plan, act_words

SHARED_FROM = 0.75
"""Share of external memory that weights and tensors take from which on tensors share it, for microcode, tables and what
fills up words are not counted here. Below, no store waits for another tensor's loads."""


@dataclass(frozen=True)
class TensorRooms:
    """`first`: of tensors the first word (of W bytes) in an area of `words`; `before`: whose words they are before."""

    first: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    words: int = 0


@dataclass
class _Use:
    """Of a tensor the segments between which it is in use, and which blocks and pixels are stored and loaded."""

    first: int
    last: int
    stored: npt.NDArray[np.bool_]
    loaded: npt.NDArray[np.bool_]


def tensor_rooms(graph: Graph, plan: Plan, placed: Sequence[PlacedSegment], config: HwConfig) -> TensorRooms:
    """The rooms of a plan's tensors; none if external memory is large enough without."""
    assert config.external is not None
    return shared(graph, placed, config) if crowded(plan, config.external) else TensorRooms()


def crowded(plan: Plan, external: ExternalMemory) -> bool:
    """Whether tensors have to share what there is."""
    return sum(buffer.size for buffer in plan.buffers) > SHARED_FROM * external.size


def shared(graph: Graph, placed: Sequence[PlacedSegment], config: HwConfig) -> TensorRooms:
    """The largest tensors first, each at the lowest place that is free while it is in use.

    A tensor of which a word is stored that nobody loads has no room here: the checker takes a store over such a word
    for a mistake.
    """
    uses = {name: use for name, use in _uses(graph, placed, config).items() if not (use.stored & ~use.loaded).any()}
    sizes = {name: act_words(graph.tensors[name].shape, config) for name in uses}
    first: dict[str, int] = {}
    for name in sorted(uses, key=lambda each: (-sizes[each], uses[each].first, each)):
        met = [other for other in first if _lifetimes_overlap(uses[name], uses[other])]
        at = 0
        for other in sorted(met, key=lambda each: first[each]):
            if at + sizes[name] <= first[other]:
                break
            at = max(at, first[other] + sizes[other])
        first[name] = at
    before = {
        name: tuple(
            other for other in first
            if uses[other].last < uses[name].first
            and first[other] < first[name] + sizes[name] and first[name] < first[other] + sizes[other]
        )
        for name in first
    }  # fmt: skip
    return TensorRooms(first, before, max((first[name] + sizes[name] for name in first), default=0))


def _lifetimes_overlap(one: _Use, other: _Use) -> bool:
    return one.first <= other.last and other.first <= one.last


def _uses(graph: Graph, placed: Sequence[PlacedSegment], config: HwConfig) -> dict[str, _Use]:
    """Of all tensors that are stored but the outputs, whose last results are stored behind all segments."""
    kept = {port.tensor for port in (*graph.inputs, *graph.outputs)}
    found: dict[str, _Use] = {}
    for n, segment in enumerate(placed):
        for region, _ in segment.stored:
            if region.tensor not in kept:
                if region.tensor not in found:
                    _, channels, *size = graph.tensors[region.tensor].shape
                    marks = (np.zeros((-(-channels // config.word), *size), bool) for _ in range(2))
                    found[region.tensor] = _Use(n, n, *marks)
                found[region.tensor].stored[_blocks(region.box, config)] = True
        for region, _ in segment.loads:
            if region.tensor in found:
                found[region.tensor].last = n
                found[region.tensor].loaded[_blocks(region.box, config)] = True
    return found


def _blocks(box: Box, config: HwConfig) -> tuple[slice, slice, slice]:
    """Index of a box in marks of blocks, rows and columns."""
    low, high = box.channels
    return slice(low // config.word, -(-high // config.word)), slice(*box.rows), slice(*box.cols)
