"""When every word of a root is first written and last touched, so that roots may share memory word by word.

Steps are numbered as `trace.Access` says. A root may lie over words of another that is complete before (an
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
from .places import Homes
from .trace import accesses, in_roots
from .work import Work

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
    first = {root: np.full(size, NEVER) for root, size in homes.size.items()}
    last = {root: np.full(size, -1) for root, size in homes.size.items()}
    complete = dict.fromkeys(homes.size, -1)
    writes, touches = (in_roots(graph, homes, config, values) for values in (first, last))
    for port in graph.inputs:
        writes.of[port.tensor][...] = -1
    for access in accesses(works):
        touches[access.region][...] = access.step
        if access.writes:
            box = writes[access.region]
            box[...] = np.minimum(box, access.step)
            complete[homes.of[access.region.tensor].root] = access.step
    for port in [*graph.outputs, *(graph.inputs if inputs_stay else ())]:
        touches.of[port.tensor][...] = NEVER
    planes = {root: graph.tensors[root].height * graph.tensors[root].width for root in homes.size}
    return {root: Moments(first[root], last[root], complete[root], planes[root]) for root in homes.size}


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
