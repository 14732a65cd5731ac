"""The order of works: one sequence in which every work stands after what it needs.

Read one work after the other, the sequence is the meaning of the program; the units run it
concurrently, held together by ordering fields (`order`). Array operations keep the graph's order, but
neighbours that do not need each other take turns. A work of the vector unit or the depthwise unit is put as soon
as its operands are complete, so that it runs while the array is busy with the next tile. The first operations may be held in
the graph's order, which needs less memory: large maps are at the beginning.
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


class _Sequence:
    """The sequence in the making. `waiting`: the works of each operation that are put when their operands are complete;
    those of an operation that is `late` only when the array has got another work, or one that needs them.
    """

    def __init__(self, written: Written, waiting: list[list[Work]], late: set[str]) -> None:
        self.written, self.waiting, self.late = written, waiting, late
        self.out: list[Work] = []
        self.fed = 0
        self.seen: dict[int, int] = {}

    def put(self, work: Work) -> None:
        """Append a work."""
        self.out.append(work)
        self.fed += work.on_array
        for step in work.vectors:
            self.written.mark(step)

    def settle(self, needed: Work | None = None) -> None:
        """Put what may be put; with `needed`, also what comes late, until that work's operands are complete."""
        progress = True
        while progress:
            progress = False
            for queue in self.waiting:
                while queue and self._due(queue[0], needed):
                    self.put(queue.pop(0))
                    progress = True
        self.waiting = [queue for queue in self.waiting if queue]

    def _due(self, work: Work, needed: Work | None) -> bool:
        if not self.written.complete(work):
            return False
        since = self.seen.setdefault(id(work), self.fed)
        if work.op not in self.late or self.fed > since:
            return True
        return needed is not None and not self.written.complete(needed)


def sequence(
    graph: Graph, works: dict[str, list[Work]], homes: Homes, config: HwConfig, held: int, late: set[str]
) -> list[Work]:
    """All works, in order; `works` holds those of each operation by name. The first `held` operations keep their order;
    works of the `late` ones come behind the next work of the array, so that the vector unit drains that one first.
    """
    later = graph.ops[held:]
    pulled = [list(works[op.name]) for op in later if works[op.name] and not works[op.name][0].on_array]
    order = _Sequence(Written(graph, homes, config), pulled, late)
    for op in graph.ops[:held]:
        for work in works[op.name]:
            order.put(work)
    order.settle()
    # Array operations pull the sequence forward; what waits on them follows at once.
    for group in _independent(graph, [op for op in later if any(work.on_array for work in works[op.name])]):
        for work in _merged([works[op.name] for op in group]):
            order.settle(work)
            order.put(work)
            order.settle()
    for op in graph.ops:
        order.late.discard(op.name)
    order.settle()
    return order.out


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
