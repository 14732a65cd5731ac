"""`work_of`: what a part of an operation gives the units to do, in cycles, about; `run_cycles`: a segment's."""

from math import prod
from typing import NamedTuple

from ..config import HwConfig
from ..ir.graph import Graph, Op
from .plan import PARAM_BYTES, act_words, array_cycles, depthwise_cycles, pieces, weight_words

SUMMED = 0.75
"""Share of the cycles of depthwise convolutions of several windows for which the array waits, about: 0.7 where one of
5 x 5 follows a convolution of EfficientNet-lite0, 1.1 where it comes before one."""


class Work(NamedTuple):
    """Weight words, bytes of parameters, and cycles of the units, which work side by side."""

    weights: int
    params: int
    array: float
    depthwise: int
    vector: int

    @property
    def cycles(self) -> float:
        """Those of the unit that has most to do."""
        return max(self.array, self.depthwise, self.vector)

    def plus(self, other: "Work") -> "Work":
        """Both."""
        return Work(
            self.weights + other.weights, self.params + other.params, self.array + other.array,
            self.depthwise + other.depthwise, self.vector + other.vector,
        )  # fmt: skip


NO_WORK = Work(0, 0, 0.0, 0, 0)


def work_of(graph: Graph, op: Op, config: HwConfig) -> Work:
    """That of an operation. Windows of a depthwise convolution that are added up take accumulators, for which the array
    waits, too."""
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    drained = act_words(y.shape, config) * config.lane_groups
    if not op.weight.size:
        return Work(0, 0, 0.0, 0, 0 if op.joins else drained * max(1, op.taps))
    words, params = weight_words(op, x, config), PARAM_BYTES * len(op.weight)
    if (cycles := depthwise_cycles(op, x, config)) is not None:
        return Work(words, params, SUMMED * cycles if prod(pieces(op)) > 1 else 0, cycles, drained)
    return Work(words, params, array_cycles(op, x, config), 0, drained)


def run_cycles(graph: Graph, config: HwConfig) -> float:
    """Cycles of the unit that has most to do in all operations of a graph."""
    found = NO_WORK
    for op in graph.ops:
        found = found.plus(work_of(graph, op, config))
    return found.cycles
