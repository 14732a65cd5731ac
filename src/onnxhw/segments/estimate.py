"""`estimate`: the cycles of a plan, out of exact cycles of its segments and a contract for external memory.

Core and external memory work side by side. The run of a segment begins when its loads and the run before have ended.
Loads of activations begin with the run before if they are `early`, else with its end. Weights come into what the
segment before leaves free of the weight memory while that one runs, and the rest behind it. Stores begin with the end
of their run; behind a run that needs their place, the next waits for them. External memory does one thing after the
other. Not counted: microcode, which a segment of another kind than the one before has to load.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..config import HwConfig
from ..ir.graph import Graph
from ..passes.variants import variants
from ..sched import draft_cycles
from .plan import PARAM_BYTES, Plan, Region, Segment, Weights, peak_words, region_words, weights_of

LINEAR, SPILLED = 0.96, 0.90
"""Share of a column per cycle that long linear streams and short rows have: 192 and 180 of 200 MB/s on the ULX3S
(docs/external-memory.md)."""
SWAP = 64
"""Cycles from the end of a segment's run to the start of the next one: an assumption, as there is no sequencer yet."""


@dataclass(frozen=True)
class Estimate:
    """Cycles of one inference: `run` in segments' runs, `memory` in transfers, `cycles` from begin to end."""

    cycles: int
    run: int
    memory: int
    weight_bytes: int
    activation_bytes: int
    peak: float
    """Bytes of external memory per cycle at most."""

    @property
    def share(self) -> float:
        """Of the memory's peak bandwidth that is used."""
        return (self.weight_bytes + self.activation_bytes) / (self.peak * self.cycles)


def kind(graph: Graph) -> tuple[object, ...]:
    """What the cycles of a segment depend on, but for weights that are zero or alike: equal for equal kinds."""
    shapes = tuple(x.shape for x in graph.tensors.values())
    return (
        shapes,
        tuple(port.tensor for port in graph.outputs),
        tuple(
            (type(op), *(_plain(getattr(op, field.name)) for field in fields(op) if field.name != "name"))
            for op in graph.ops
        ),
    )


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.shape
    return None if isinstance(value, float) else value


class PartCycles:
    """Exact cycles of segments' runs on a configuration, of each kind once: those of the scheduler's draft
    (`onnxhw.sched.draft_cycles`)."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.known: dict[tuple[object, ...], int] = {}

    def __call__(self, graph: Graph) -> int:
        """Cycles; `DoesNotFitError` and `UnsupportedError` as of the scheduler."""
        key = kind(graph)
        if key not in self.known:
            self.known[key] = draft_cycles(variants(graph, self.config), self.config)[1]
        return self.known[key]


def new_weights(before: Segment | None, segment: Segment, config: HwConfig) -> Weights:
    """The weights that a segment does not find on chip, in words."""
    there = weights_of(before, config) if before else {}
    return {key: words for key, words in weights_of(segment, config).items() if key not in there}


def weight_bytes(words: Weights, config: HwConfig) -> int:
    """Bytes of weights in external memory, parameters included."""
    return sum(size * config.weight_word + PARAM_BYTES * (high - low) for (_, (low, high)), size in words.items())


def estimate(plan: Plan, config: HwConfig, cycles: Callable[[Graph], int]) -> Estimate:
    """The cycles of a plan whose first loads begin with the inference; `cycles`: of a segment's run."""
    assert config.external is not None
    peak = config.external.data_bits / 8
    free = started = ended = run = memory = stored = moved = read = 0
    """Cycles: when external memory is free, when the last run began and ended, its stores; sums."""

    def transfer(start: int, size: int, share: float) -> int:
        nonlocal free, memory
        took = int(np.ceil(size / (peak * share)))
        free, memory = max(free, start) + took, memory + took
        return free

    before: Segment | None = None
    pending: tuple[Region, ...] = ()
    for segment in plan.segments:
        words = new_weights(before, segment, config)
        size = weight_bytes(words, config)
        room = config.weight_depth - (sum(weights_of(before, config).values()) if before else 0)
        ahead = min(1.0, max(0, room) / sum(words.values())) if words else 0.0
        loads = sum(region.box.size for region in segment.loads)
        ready = transfer(started, int(size * ahead), LINEAR) if words else 0
        if segment.early:
            ready = max(ready, transfer(started, loads, SPILLED))
        if pending and depends(segment, pending):
            stored, pending = transfer(ended, sum(region.box.size for region in pending), SPILLED), ()
        if size * (1 - ahead) >= 1:
            ready = transfer(ended, size - int(size * ahead), LINEAR)
        if loads and not segment.early:
            ready = transfer(ended, loads, SPILLED)
        if pending:
            full = peak_words(segment.graph, config) + region_words(pending, config) > config.act_words
            stored = transfer(ended, sum(region.box.size for region in pending), SPILLED)
            ready = max(ready, stored if full else 0)
        took = cycles(segment.graph) + SWAP
        started = max(ready, ended)
        ended, run = started + took, run + took
        moved += loads + sum(region.box.size for region in segment.outputs)
        read += size
        before, pending = segment, segment.outputs
    end = transfer(ended, sum(region.box.size for region in pending), SPILLED)
    return Estimate(max(end, ended), run, memory, read, moved, peak)


def depends(segment: Segment, stored: Sequence[Region]) -> bool:
    """Whether a segment loads elements of these regions."""
    return any(mine.tensor == other.tensor and mine.box.meets(other.box) for mine in segment.loads for other in stored)
