"""What a work sequence has written so far."""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph, Tensor
from .places import Homes, blocks
from .work import Region, VectorStep, Work


class Written:
    """Which lane groups of which words of each root are written so far: a bit mask per word."""

    def __init__(self, graph: Graph, homes: Homes, config: HwConfig) -> None:
        self.graph, self.homes, self.config = graph, homes, config
        self.roots = {name: np.zeros(size, np.uint64) for name, size in homes.size.items()}
        self.marks = dict.fromkeys(homes.size, 0)
        self.asked: dict[int, int] = {}
        for port in graph.inputs:
            self._all(graph.tensors[port.tensor])[...] = np.uint64((1 << config.lane_groups) - 1)

    def _all(self, tensor: Tensor) -> npt.NDArray[np.uint64]:
        """All words of a tensor: ``[planes, H, W]``."""
        count, first = blocks(tensor, self.config), self.homes.offset(tensor)
        memory = self.roots[self.homes.of[tensor.name].root]
        words = memory[first : first + count * tensor.height * tensor.width]
        return words.reshape(count, tensor.height, tensor.width)

    def _view(self, region: Region) -> npt.NDArray[np.uint64]:
        box = self._all(self.graph.tensors[region.tensor])
        return box[slice(*region.planes), slice(*region.rows), slice(*region.cols)]

    def mark(self, step: VectorStep) -> str:
        """The step's result has been written: the root that it lies in."""
        root = self.homes.of[step.writes.tensor].root
        mask = ((1 << step.vector.groups) - 1) << step.vector.lane_group
        self._view(step.writes)[...] |= np.uint64(mask)
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
        return bool(((self._view(region) & need) == need).all())
