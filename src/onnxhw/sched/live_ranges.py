"""When every word of a buffer is first written and last touched, so that buffers may share memory word by word.

Steps are numbered as `trace.Access` says. A buffer may lie over words of another that is complete before (an
input is from the start), if at each word the other's last touch comes before the buffer's first write::

    last[word] < first[word]  at every word that both use,  and  complete < first  there

So an output's rows may follow the rows of an input that is being read.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph
from .aliases import Aliases
from .memory_trace import accesses, in_buffers
from .task import TileTask

NEVER = 1 << 30
"""Later than any step."""
Steps = npt.NDArray[np.int64]


@dataclass
class LiveRange:
    """Of one buffer: per word the step that first writes it and the last that touches it; the step that completes it,
    and the words of each of its channel blocks."""

    first: Steps
    last: Steps
    complete: int
    plane: int


def live_ranges(
    graph: Graph, aliases: Aliases, tasks: Sequence[TileTask], config: HwConfig, staying: Collection[str]
) -> dict[str, LiveRange]:
    """The live ranges of all buffers; those of the outputs, and of inputs that are `staying`, are touched to the
    end."""
    first = {buffer: np.full(size, NEVER) for buffer, size in aliases.size.items()}
    last = {buffer: np.full(size, -1) for buffer, size in aliases.size.items()}
    complete = dict.fromkeys(aliases.size, -1)
    writes, touches = (in_buffers(graph, aliases, config, values) for values in (first, last))
    for port in graph.inputs:
        writes.of[port.tensor][...] = -1
    for access in accesses(tasks):
        touches[access.region][...] = access.step
        if access.writes:
            box = writes[access.region]
            box[...] = np.minimum(box, access.step)
            complete[aliases.of[access.region.tensor].buffer] = access.step
    for tensor in (*(port.tensor for port in graph.outputs), *staying):
        touches.of[tensor][...] = NEVER
    planes = {buffer: aliases.plane(graph.tensors[buffer]) for buffer in aliases.size}
    return {buffer: LiveRange(first[buffer], last[buffer], complete[buffer], planes[buffer]) for buffer in aliases.size}


def may_overlap(a: LiveRange, a_base: int, b: LiveRange, b_base: int) -> bool:
    """Whether two buffers may lie at these bases."""
    low, high = max(a_base, b_base), min(a_base + len(a.first), b_base + len(b.first))
    if low >= high:
        return True
    mine, other = slice(low - a_base, high - a_base), slice(low - b_base, high - b_base)
    return _before(a, mine, b, other) or _before(b, other, a, mine)


def _before(a: LiveRange, a_words: slice, b: LiveRange, b_words: slice) -> bool:
    first = b.first[b_words]
    return bool(a.complete < first.min() and (a.last[a_words] < first).all())
