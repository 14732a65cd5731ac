"""The order of works: one sequence in which every work stands after what it needs.

Read one work after the other, the sequence is the meaning of the program; the units run it
concurrently, in step by ordering fields (`emit`). Array operations keep the graph's order, but
neighbours that do not need each other take turns. A work of the vector unit or the depthwise unit is put as soon
as its operands are complete, so that it runs while the array is busy with the next tile; or, where the depthwise unit
runs beside the array, when its turn comes at the vector unit (`clock`). The first operations may be held in
the graph's order, which needs less memory: large maps are at the beginning.
"""

from ..config import HwConfig
from ..ir.graph import Graph, Op
from .clock import by_clock
from .places import Homes, producers
from .work import Work
from .written import Written


class _Sequence:
    """The sequence in the making; `waiting`: queues of works that are put when their operands are complete."""

    def __init__(self, written: Written, waiting: list[list[Work]]) -> None:
        self.written, self.waiting = written, waiting
        self.out: list[Work] = []

    def put(self, work: Work) -> None:
        """Append a work."""
        self.out.append(work)
        for step in work.vectors:
            self.written.mark(step)

    def settle(self) -> None:
        """Put all whose operands are complete."""
        progress = True
        while progress:
            progress = False
            for queue in self.waiting:
                while queue and self.written.complete(queue[0]):
                    self.put(queue.pop(0))
                    progress = True
        self.waiting = [queue for queue in self.waiting if queue]


def sequence(
    graph: Graph, works: dict[str, list[Work]], homes: Homes, config: HwConfig, held: int, timed: bool,
    interleaved: bool = True,
) -> list[Work]:
    """All works, in order; `works` holds those of each operation by name. The first `held` operations keep their order;
    the others follow as `by_clock` puts them if `timed`. Array operations that do not need each other take turns if
    `interleaved`.
    """
    later = graph.ops[held:]
    order = _Sequence(Written(graph, homes, config), [])
    pulled = [list(works[op.name]) for op in later if works[op.name] and not works[op.name][0].on_array]
    if timed:
        head = [work for op in graph.ops[:held] for work in works[op.name]]
        return by_clock(head, _pulling(graph, later, works, interleaved), pulled, order.written, config)
    for op in graph.ops[:held]:
        for work in works[op.name]:
            order.put(work)
    order.waiting = pulled
    order.settle()
    # Array operations pull the sequence forward; what waits on them follows at once.
    for work in _pulling(graph, later, works, interleaved):
        order.put(work)
        order.settle()
    return order.out


def _pulling(graph: Graph, ops: list[Op], works: dict[str, list[Work]], interleaved: bool) -> list[Work]:
    """The works of the array operations among some, in order."""
    mine = [op for op in ops if any(work.on_array for work in works[op.name])]
    groups = _independent(graph, mine) if interleaved else [[op] for op in mine]
    return [work for group in groups for work in _merged([works[op.name] for op in group])]


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
