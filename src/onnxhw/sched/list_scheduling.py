"""The order of tasks by a clock: the vector unit keeps its order, so whose operands or sums are there first goes first.

A task's sums are there when its unit, the array or the depthwise unit, has taken its turn; the clock of each unit is
what its tasks take, from the instructions alone: banks of activation memory, fetching and weights are left out. Of
the tasks whose operands are complete the one is put that the vector unit can begin first; the tasks of the array
keep their order.
"""

from ..config import HwConfig
from ..isa.timing import array_latency, vector_cycles, vector_latency
from ..isa.units import STREAMING, Unit
from .readiness import ReadinessMap
from .task import TileTask, WordRegion


class _UnitClocks:
    """When each unit is free, when tensors were written, when the array's banks were drained."""

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.latency = {unit: array_latency(config, unit == Unit.DEPTHWISE) for unit in STREAMING}
        self.free = dict.fromkeys(Unit, 0)
        self.drained = [0, 0]
        self.written: dict[str, list[tuple[int, tuple[int, int], tuple[int, int]]]] = {}
        self.ready: dict[int, int] = {}

    def operands(self, task: TileTask) -> int:
        """When what a task reads has been written; asked once it is complete."""
        if id(task) not in self.ready:
            self.ready[id(task)] = max(map(self._written_last, task.regions_read), default=0)
        return self.ready[id(task)]

    def _written_last(self, region: WordRegion) -> int:
        """When the last word of a region was written; the writes of a tensor are in the order of time."""
        (first_block, end_block), (first_row, end_row) = region.blocks, region.rows
        for time, blocks, rows in reversed(self.written.get(region.tensor, ())):
            if blocks[0] < end_block and first_block < blocks[1] and rows[0] < end_row and first_row < rows[1]:
                return time
        return 0

    def sums(self, task: TileTask) -> tuple[int, int]:
        """When the unit before the vector unit has done its part, and when the sums can be drained."""
        begin = self.operands(task)
        if not task.arrays:
            return begin, begin
        unit = task.arrays[0].array.UNIT
        begin = max(begin, self.free[unit], self.drained[0] if task.on_array else 0)
        end = begin + task.streamed
        return end, end + self.latency[unit]

    def take(self, task: TileTask) -> None:
        """A task is put."""
        end, time = self.sums(task)
        if task.arrays:
            self.free[task.arrays[0].array.UNIT] = end
        time = max(time, self.free[Unit.VECTOR])
        for step in task.vectors:
            time += vector_cycles(step.vector, self.config)
            writes = step.writes
            found = self.written.setdefault(writes.tensor, [])
            found.append((time + vector_latency(), writes.blocks, writes.rows))
        self.free[Unit.VECTOR] = time
        if task.on_array:
            self.drained = [self.drained[1], time]


def list_schedule(
    pulling: list[TileTask], pulled: list[list[TileTask]], written: ReadinessMap, config: HwConfig
) -> list[TileTask]:
    """The sequence of the tasks: those of the array in order and between them the queues of `pulled`, each in order."""
    clock, out = _UnitClocks(config), list[TileTask]()
    queues = [list(reversed(queue)) for queue in (pulling, *pulled)]
    reads: list[set[str]] = [set() for _ in queues]
    able: set[int] = set()

    def look(index: int) -> None:
        if queues[index] and written.complete(queues[index][-1]):
            able.add(index)

    def next_of(index: int) -> None:
        able.discard(index)
        reads[index] = written.buffers_read(queues[index][-1]) if queues[index] else set()
        look(index)

    for index in range(len(queues)):
        next_of(index)
    while any(queues):
        least = min(sorted(able), key=lambda index: clock.sums(queues[index][-1])[1])
        task = queues[least].pop()
        clock.take(task)
        out.append(task)
        changed = {written.mark(step) for step in task.vectors}
        next_of(least)
        for index in range(len(queues)):
            if index not in able and reads[index] & changed:
                look(index)
    return out
