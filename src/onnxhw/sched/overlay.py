"""When every word of a root is first written and last touched, so that roots may share memory word by word.

In the sequence of works the units' steps are numbered: the steps of the array, or the depthwise unit, of a work share a
number, every vector step has its own, behind them. A root may lie over words of another that is complete before (an
input is from the start), if at each word the other's last touch comes before the root's first write::

    last[word] < first[word]  at every word that both use,  and  complete < first  there

So an output's rows may follow the rows of an input that is being read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph
from .places import Homes, blocks
from .work import Region, Work

NEVER = 1 << 30
Steps = npt.NDArray[np.int64]


@dataclass
class Moments:
    """Of one root: per word the step that first writes it and the last that touches it; the step that completes it,
    and the words of each of its planes."""

    first: Steps
    last: Steps
    complete: int
    plane: int


def find_moments(
    graph: Graph, homes: Homes, works: Sequence[Work], config: HwConfig, inputs_stay: bool
) -> dict[str, Moments]:
    """The moments of all roots; those of the outputs, and of inputs that stay, are touched to the end."""
    found: dict[str, Moments] = {}
    for root, size in homes.size.items():
        y = graph.tensors[root]
        found[root] = Moments(np.full(size, NEVER), np.full(size, -1), -1, y.height * y.width)
    boxes: dict[str, tuple[Steps, Steps]] = {}
    for name, tensor in graph.tensors.items():
        mine, offset = found[homes.of[name].root], homes.offset(tensor)
        shape = blocks(tensor, config), tensor.height, tensor.width
        words = slice(offset, offset + shape[0] * shape[1] * shape[2])
        boxes[name] = mine.first[words].reshape(shape), mine.last[words].reshape(shape)

    def touch(region: Region, step: int, *, writes: bool = False) -> None:
        box = slice(*region.planes), slice(*region.rows), slice(*region.cols)
        first, last = boxes[region.tensor]
        last[box] = step
        if writes:
            first[box] = np.minimum(first[box], step)
            found[homes.of[region.tensor].root].complete = step

    for port in graph.inputs:
        boxes[port.tensor][0][...] = -1
    step = 0
    for work in works:
        for stream in work.arrays:
            for region in stream.reads:
                touch(region, step)
        for vector in work.vectors:
            step += 1
            for operand in (vector.a, vector.b):
                if operand:
                    touch(operand, step)
            touch(vector.writes, step, writes=True)
        step += 1
    for port in [*graph.outputs, *(graph.inputs if inputs_stay else ())]:
        boxes[port.tensor][1][...] = NEVER
    return found


def share(a: Moments, a_base: int, b: Moments, b_base: int) -> bool:
    """Whether two roots may lie at these bases."""
    low, high = max(a_base, b_base), min(a_base + len(a.first), b_base + len(b.first))
    if low >= high:
        return True
    mine, other = slice(low - a_base, high - a_base), slice(low - b_base, high - b_base)
    return _before(a, mine, b, other) or _before(b, other, a, mine)


def _before(a: Moments, a_words: slice, b: Moments, b_words: slice) -> bool:
    first = b.first[b_words]
    return bool(a.complete < first.min() and (a.last[a_words] < first).all())
