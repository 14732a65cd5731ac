"""The order of works: one sequence in which every work stands after what it needs.

Read one work after the other, the sequence is the meaning of the program; the units run it
concurrently, held together by ordering fields (`order`). Array operations keep the graph's order, but
neighbours that do not need each other take turns. A work of the vector unit or the depthwise unit is put as soon
as its operands are complete, so that it runs while the array is busy with the next tile. Without `eager` all
works keep the graph's order, which needs less memory.
"""

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..ir.graph import Graph, Op, Tensor
from .places import Homes, blocks, producers
from .work import Region, VectorStep, Work


class Written:
    """Which lane groups of which words of each root are written so far: a bit mask per word."""

    def __init__(self, graph: Graph, homes: Homes, config: HwConfig) -> None:
        self.graph, self.homes, self.config = graph, homes, config
        self.roots = {name: np.zeros(size, np.uint64) for name, size in homes.size.items()}
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

    def mark(self, step: VectorStep) -> None:
        """The step's result has been written."""
        mask = ((1 << step.vector.groups) - 1) << step.vector.lane_group
        self._view(step.writes)[...] |= np.uint64(mask)

    def complete(self, work: Work) -> bool:
        """Whether every lane group that the work reads has been written."""
        return all(self._complete(region) for region in work.regions_read())

    def _complete(self, region: Region) -> bool:
        channels = self.graph.tensors[region.tensor].channels
        word, lanes = self.config.word, self.config.lanes
        groups = [-(-min(channels - plane * word, word) // lanes) for plane in range(*region.planes)]
        need = np.array([(1 << count) - 1 for count in groups], np.uint64)[:, None, None]
        return bool(((self._view(region) & need) == need).all())


def sequence(graph: Graph, works: dict[str, list[Work]], homes: Homes, config: HwConfig, eager: bool) -> list[Work]:
    """All works, in order; `works` holds those of each operation by name."""
    if not eager:
        return [work for op in graph.ops for work in works[op.name]]
    written = Written(graph, homes, config)
    waiting: list[list[Work]] = []
    out: list[Work] = []

    def put(work: Work) -> None:
        out.append(work)
        for step in work.vectors:
            written.mark(step)

    def settle() -> None:
        progress = True
        while progress:
            progress = False
            for queue in waiting:
                while queue and written.complete(queue[0]):
                    put(queue.pop(0))
                    progress = True
        waiting[:] = [queue for queue in waiting if queue]

    for op in graph.ops:
        mine = works[op.name]
        if mine and not mine[0].on_array:
            waiting.append(list(mine))
            settle()
    # Array operations pull the sequence forward; what waits on them follows at once.
    for group in _independent(graph, [op for op in graph.ops if any(work.on_array for work in works[op.name])]):
        for work in _merged([works[op.name] for op in group]):
            put(work)
            settle()
    return out


def _independent(graph: Graph, ops: list[Op]) -> list[list[Op]]:
    """Runs of operations of which none needs another's result, directly or through others."""
    makers = producers(graph)
    needs: dict[str, set[str]] = {}
    for op in graph.ops:
        needs[op.output] = {op.output}.union(*(needs[name] for name in op.inputs if name in makers))
    groups: list[list[Op]] = []
    for op in ops:
        if groups and not needs[op.output] & {other.output for other in groups[-1]}:
            groups[-1].append(op)
        else:
            groups.append([op])
    return groups


def _merged(lists: list[list[Work]]) -> list[Work]:
    """The lists' works, spread evenly: long drains of one operation hide behind the array work of another."""
    keyed = [(i / len(works), which, work) for which, works in enumerate(lists) for i, work in enumerate(works)]
    return [work for _, _, work in sorted(keyed, key=lambda item: item[:2])]
