"""What a work sequence has written so far."""

import numpy as np

from ..config import HwConfig
from ..ir.graph import Graph
from .places import Homes
from .trace import in_roots
from .work import Region, VectorStep, Work


class Written:
    """Which lane groups of which words of each root are written so far: a bit mask per word."""

    def __init__(self, graph: Graph, homes: Homes, config: HwConfig) -> None:
        self.graph, self.homes, self.config = graph, homes, config
        empty = {name: np.zeros(size, np.uint64) for name, size in homes.size.items()}
        self.groups = in_roots(graph, homes, config, empty)
        self.marks = dict.fromkeys(homes.size, 0)
        self.asked: dict[int, int] = {}
        for port in graph.inputs:
            self.groups.of[port.tensor][...] = np.uint64((1 << config.lane_groups) - 1)

    def mark(self, step: VectorStep) -> str:
        """The step's result has been written: the root that it lies in."""
        root = self.homes.of[step.writes.tensor].root
        mask = ((1 << step.vector.groups) - 1) << step.vector.lane_group
        self.groups[step.writes][...] |= np.uint64(mask)
        self.marks[root] += 1
        return root

    def roots_read(self, work: Work) -> set[str]:
        """The roots that a work reads."""
        return {self.homes.of[region.tensor].root for region in work.regions_read}

    def complete(self, work: Work) -> bool:
        """Whether every lane group that the work reads has been written."""
        regions = work.regions_read
        marks = sum(self.marks[self.homes.of[region.tensor].root] for region in regions)
        if self.asked.get(id(work)) == marks:  # nothing was written there since the answer was no
            return False
        done = all(self._complete(region) for region in regions)
        if not done:
            self.asked[id(work)] = marks
        return done

    def _complete(self, region: Region) -> bool:
        channels = self.graph.tensors[region.tensor].channels
        word, lanes = self.config.word, self.config.lanes
        groups = [-(-min(channels - plane * word, word) // lanes) for plane in range(*region.planes)]
        need = np.array([(1 << count) - 1 for count in groups], np.uint64)[:, None, None]
        return bool(((self.groups[region] & need) == need).all())
