"""`estimate_cycles`: the cycles of a plan, out of exact cycles of its segments and a contract for external memory.

Core and external memory work side by side. The run of a segment begins when its loads and the run before have ended.
Loads of activations begin with the run before if they are `early`, else with its end. Weights come, in the order of
their use, into what the running segment leaves free of the weight memory; what does not find room comes behind it, or
beside its own run if they come in pieces (`weight_stream`).
Stores begin with the end of their run; where the next run needs their place, it waits for them. External memory does
one thing after the other. Not counted: microcode, which a segment of another kind than the one before has to load.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import ceil

import numpy as np

from ..config import HwConfig
from ..ir.graph import Graph
from .plan import PARAM_BYTES, Plan, Region, Segment, Weights, peak_words, region_words, weights_of
from .weight_stream import passes, streams

LINEAR, SPILLED = 0.96, 0.90
"""Share of a column per cycle that long linear streams and short rows have: 192 and 180 of 200 MB/s on the ULX3S
(docs/external-memory.md)."""
NO_WEIGHTS: Weights = {}
SWAP = 64
"""Cycles from the end of a segment's run to the start of the next one: an assumption, as there is no sequencer yet."""


@dataclass(frozen=True)
class PlanEstimate:
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


def new_weights(before: Segment | None, segment: Segment, config: HwConfig, resident: Weights = NO_WEIGHTS) -> Weights:
    """The weights that a segment does not find on chip, in words; `resident` are always there. Those of other channels
    that are the same numbers, of a mean say, are there, too; their parameters are not (no words)."""
    last = before if before is not None and not streams(before, config) else None
    there = {**resident, **(weights_of(last, config) if last else {})}
    found = {key: words for key, words in weights_of(segment, config).items() if key not in there}
    if last and found:
        values = {op.name: op.weight for op in last.graph.ops}
        for op in segment.graph.ops:
            if op.name in values and np.array_equal(values[op.name], op.weight):
                found.update((key, 0) for key in found if key[0] == op.name)
    return found


def weight_bytes(words: Weights, config: HwConfig, params: bool = True) -> int:
    """Bytes of weights in external memory, with their parameters or without."""
    each = PARAM_BYTES if params else 0
    return sum(size * config.weight_word + each * (high - low) for (_, (low, high)), size in words.items())


@dataclass
class _Channel:
    """External memory: one transfer after the other, `free` from a cycle on; `busy`: cycles of all."""

    column: float
    free: int = 0
    busy: int = 0

    def move(self, start: int, size: float, share: float) -> int:
        """The cycle in which a transfer of `size` bytes ends that cannot begin before `start`."""
        took = ceil(size / (self.column * share))
        self.free, self.busy = max(self.free, start) + took, self.busy + took
        return self.free


def estimate_cycles(
    plan: Plan, config: HwConfig, cycles: Callable[[Segment], int], resident: Weights = NO_WEIGHTS, params: bool = True
) -> PlanEstimate:
    """The cycles of a plan whose first loads begin with the inference; `cycles`: of a segment's run. Weights that are
    `resident` stay on chip, and parameters unless these `params` come, too."""
    assert config.external is not None
    channel = _Channel(config.external.data_bits / 8)
    pairs = list(zip((None, *plan.segments), plan.segments, strict=False))
    new = [new_weights(before, segment, config, resident) for before, segment in pairs]
    words = [sum(mine.values()) for mine in new]
    pieces = [streams(segment, config) for segment in plan.segments]
    sizes = [
        weight_bytes(mine, config, params) * (passes(segment.graph, config) if in_pieces else 1)
        for mine, segment, in_pieces in zip(new, plan.segments, pieces, strict=True)
    ]
    depth = config.weight_depth - sum(resident.values())
    missing = [float(size) for size in sizes]
    """Bytes of each segment's new weights that are not on chip yet."""
    started = ended = run = moved = used = 0
    pending: tuple[Region, ...] = ()
    read = {region.tensor for segment in plan.segments for region in segment.loads}
    for n, (_, segment) in enumerate(pairs):
        room = float(depth - used)
        ready = 0
        for at in range(n, len(pairs)):
            # While the segment before runs: its own weights first, then its early loads, then those of later segments.
            come = words[at] * (1 - missing[at] / sizes[at]) if sizes[at] else 0.0
            fits = min(1.0, max(0.0, room - come) / (words[at] - come)) if words[at] > come else 1.0
            size = missing[at] * fits
            if at > n:
                size = min(size, max(0, ended - max(channel.free, started)) * channel.column * LINEAR)
            if size >= 1:
                end = channel.move(started, size, LINEAR)
                ready = end if at == n else ready
                missing[at] = missing[at] - size if missing[at] - size >= 1 else 0.0
            if at == n and segment.early:
                ready = max(ready, channel.move(started, _bytes(segment.loads), SPILLED))
            if missing[at]:
                break
            room -= words[at]
        if pending and depends(segment, pending):
            channel.move(ended, _bytes(pending), SPILLED)
            pending = ()
        if missing[n] and not pieces[n]:
            ready = channel.move(ended, missing[n], LINEAR)
        if segment.loads and not segment.early:
            ready = channel.move(ended, _bytes(segment.loads), SPILLED)
        if pending:
            full = peak_words(segment.graph, config) + region_words(pending, config) > config.act_words
            stored = channel.move(ended, _bytes(pending), SPILLED)
            ready = max(ready, stored if full else 0)
        took = cycles(segment) + SWAP
        started = max(ready, ended)
        ended, run = started + took, run + took
        if missing[n] and pieces[n]:
            ended = max(ended, channel.move(started, missing[n], LINEAR))
        # What is gathered for all that read it is not stored.
        outputs = () if segment.gathered and segment.gathered.tensor not in read else segment.outputs
        moved += _bytes(segment.loads) + _bytes(outputs)
        there = weights_of(segment, config)
        used = 0 if pieces[n] else sum(size for key, size in there.items() if key not in resident)
        pending = outputs
    end = channel.move(ended, _bytes(pending), SPILLED)
    return PlanEstimate(max(end, ended), run, channel.busy, sum(sizes), moved, channel.column)


def _bytes(regions: Sequence[Region]) -> int:
    return sum(region.box.size for region in regions)


def depends(segment: Segment, stored: Sequence[Region]) -> bool:
    """Whether a segment loads elements of these regions."""
    return any(mine.tensor == other.tensor and mine.box.meets(other.box) for mine in segment.loads for other in stored)
