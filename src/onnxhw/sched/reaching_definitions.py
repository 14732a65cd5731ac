"""The reaching-definition check: each word read holds the buffer that is meant, along the sequence of tasks.

`check` proves that no instruction reads a word too early or too late; this, that the word is of the tensor that the
operation means.
"""

import numpy as np

from ..config import HwConfig
from ..errors import InternalError
from ..program.layout import Place
from ..program.model import Entry
from .aliases import Aliases
from .lower import LoweredGraph
from .memory_trace import accesses, in_memory
from .search import ScheduledCandidate
from .task import TileTask, WordRegion


def check_reaching_definitions(lowered: LoweredGraph, candidate: ScheduledCandidate, table: dict[str, Entry]) -> None:
    """`InternalError` E1213 if a task reads words that hold another buffer than its operand's, or if a tensor is not
    whole where the `table` says so, or an output at the end.
    """
    memory = _Memory(lowered.aliases, candidate.places, lowered.config)
    for port in lowered.graph.inputs:
        memory.fill(port.tensor)
    due: dict[int, list[str]] = {}
    for name, entry in table.items():
        due.setdefault(entry.ready, []).append(name)
    done = 0
    for name in due.get(0, ()):
        memory.require_whole(name, done)
    for access in accesses(candidate.tasks):
        if not access.writes:
            memory.require(access.region, candidate.tasks[access.task])
            continue
        memory.write(access.region)
        done = access.vectors
        for name in due.get(done, ()):
            memory.require_whole(name, done)
    for port in lowered.graph.outputs:
        memory.require_whole(port.tensor, done)


class _Memory:
    """Of each word the number of the buffer that it holds."""

    def __init__(self, aliases: Aliases, places: dict[str, Place], config: HwConfig) -> None:
        self.buffers = {name: alias.buffer for name, alias in aliases.of.items()}
        self.names = list(aliases.size)
        self.number = {buffer: index for index, buffer in enumerate(self.names)}
        self.holds = in_memory(places, config, np.full(config.act_words, -1, np.int64))

    def of(self, name: str) -> int:
        """The number of a tensor's buffer."""
        return self.number[self.buffers[name]]

    def fill(self, name: str) -> None:
        """The host writes an input."""
        self.holds.of[name][...] = self.of(name)

    def write(self, region: WordRegion) -> None:
        """A vector step writes."""
        self.holds[region][...] = self.of(region.tensor)

    def require(self, region: WordRegion, task: TileTask) -> None:
        """A task of an operation reads."""
        found = self.holds[region]
        wrong = found[found != self.of(region.tensor)]
        if len(wrong):
            raise InternalError("E1213", f"reads {self._what(int(wrong[0]))} for {region.tensor!r}", where=task.op)

    def require_whole(self, name: str, done: int) -> None:
        """All of a tensor is there."""
        found = self.holds.of[name]
        wrong = found[found != self.of(name)]
        if len(wrong):
            what = f"after {done} vector instructions its words hold {self._what(int(wrong[0]))}"
            raise InternalError("E1213", what, where=f"tensor {name!r}")

    def _what(self, number: int) -> str:
        return repr(self.names[number]) if number >= 0 else "nothing"
