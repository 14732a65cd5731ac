"""The order of tasks: one sequence in which every task stands after what it needs.

Read one task after the other, the sequence is the meaning of the program; the units run it
concurrently, in step by ordering fields (`emit`). Array operations keep the graph's order, but
neighbours that do not need each other take turns. A task of the vector unit or the depthwise unit is put as soon
as its operands are complete, so that it runs while the array is busy with the next tile; or, where the depthwise unit
runs beside the array, when its turn comes at the vector unit (`list_scheduling`). All operations may
keep the graph's order instead, which needs less memory.
"""

from ..config import HwConfig
from ..ir.graph import Graph, Op
from .aliases import Aliases, producers
from .list_scheduling import list_schedule
from .readiness import ReadinessMap
from .task import TileTask


class _Sequence:
    """The sequence in the making; `waiting`: queues of tasks that are put when their operands are complete."""

    def __init__(self, written: ReadinessMap, waiting: list[list[TileTask]]) -> None:
        self.written, self.waiting = written, waiting
        self.out: list[TileTask] = []

    def put(self, task: TileTask) -> None:
        """Append a task."""
        self.out.append(task)
        for step in task.vectors:
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
    graph: Graph, tasks: dict[str, list[TileTask]], aliases: Aliases, config: HwConfig, eager: bool, clocked: bool,
    interleaved: bool = True,
) -> list[TileTask]:
    """All tasks, in order; `tasks` holds those of each operation by name. Operations keep the graph's order unless
    `eager`; then tasks follow as `list_schedule` puts them if `clocked`, and array operations that do not need each
    other take turns if `interleaved`.
    """
    if not eager:
        return [task for op in graph.ops for task in tasks[op.name]]
    pulled = [list(tasks[op.name]) for op in graph.ops if tasks[op.name] and not tasks[op.name][0].on_array]
    pulling, written = _pulling(graph, tasks, interleaved), ReadinessMap(graph, aliases, config)
    if clocked:
        return list_schedule(pulling, pulled, written, config)
    order = _Sequence(written, pulled)
    order.settle()
    # Array operations pull the sequence forward; what waits on them follows at once.
    for task in pulling:
        order.put(task)
        order.settle()
    return order.out


def _pulling(graph: Graph, tasks: dict[str, list[TileTask]], interleaved: bool) -> list[TileTask]:
    """The tasks of the array operations, in order."""
    mine = [op for op in graph.ops if any(task.on_array for task in tasks[op.name])]
    groups = _independent(graph, mine) if interleaved else [[op] for op in mine]
    return [task for group in groups for task in _merged([tasks[op.name] for op in group])]


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


def _merged(lists: list[list[TileTask]]) -> list[TileTask]:
    """The lists' tasks, spread evenly: long drains of one operation hide behind the array work of another."""
    keyed = [(i / len(tasks), which, task) for which, tasks in enumerate(lists) for i, task in enumerate(tasks)]
    return [task for _, _, task in sorted(keyed, key=lambda item: item[:2])]
