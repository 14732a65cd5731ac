"""The readiness map: what a task sequence has written so far."""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph
from .aliases import Aliases
from .memory_trace import in_buffers
from .task import TileTask, VectorStep, WordRegion


class ReadinessMap:
    """Which lane groups of which words of each buffer are written so far: a bit mask per word."""

    def __init__(self, graph: Graph, aliases: Aliases, config: HwConfig) -> None:
        self.graph, self.aliases, self.config = graph, aliases, config
        empty = {name: np.zeros(size, np.uint64) for name, size in aliases.size.items()}
        self.groups = in_buffers(graph, aliases, config, empty)
        self.marks = dict.fromkeys(aliases.size, 0)
        self.asked: dict[int, int] = {}
        self.needed: dict[tuple[str, tuple[int, int]], npt.NDArray[np.uint64]] = {}
        for port in graph.inputs:
            self.groups.of[port.tensor][...] = np.uint64((1 << config.lane_groups) - 1)

    def mark(self, step: VectorStep) -> str:
        """The step's result has been written: the buffer that it lies in."""
        buffer = self.aliases.of[step.writes.tensor].buffer
        mask = ((1 << step.vector.groups) - 1) << step.vector.lane_group
        self.groups[step.writes][...] |= np.uint64(mask)
        self.marks[buffer] += 1
        return buffer

    def buffers_read(self, task: TileTask) -> set[str]:
        """The buffers that a task reads."""
        return {self.aliases.of[region.tensor].buffer for region in task.regions_read}

    def complete(self, task: TileTask) -> bool:
        """Whether every lane group that the task reads has been written."""
        regions = task.regions_read
        marks = sum(self.marks[self.aliases.of[region.tensor].buffer] for region in regions)
        if self.asked.get(id(task)) == marks:  # nothing was written there since the answer was no
            return False
        done = all(self._complete(region) for region in regions)
        if not done:
            self.asked[id(task)] = marks
        return done

    def _complete(self, region: WordRegion) -> bool:
        key = region.tensor, region.blocks
        if key not in self.needed:
            self.needed[key] = self._groups_of(region)
        need = self.needed[key]
        return bool(((self.groups[region] & need) == need).all())

    def _groups_of(self, region: WordRegion) -> npt.NDArray[np.uint64]:
        """The lane groups of a region's blocks that hold channels: a bit mask per block."""
        channels = self.graph.tensors[region.tensor].channels
        word, lanes = self.config.word, self.config.lanes
        groups = [-(-min(channels - block * word, word) // lanes) for block in range(*region.blocks)]
        return np.array([(1 << count) - 1 for count in groups], np.uint64)[:, None, None]
