"""Which accumulators a task's sums go to, and what filling and draining them must wait for.

The array fills its two banks in turn, or both by turns. The depthwise unit's sums are a ring of rows: while some are
drained, others are filled; only an instruction that accumulates has their read port to itself.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..config import HwConfig
from ..isa.instructions import Array, Code, Depthwise, Vector, wait_reads
from ..isa.timeline import timeline
from ..isa.timing import sums
from ..isa.units import STREAMING, Unit
from .load_order import OwnedLoad, ordered
from .task import ArrayStep, TileTask, VectorStep


class AccumulatorBinder:
    """The accumulators of a program in the making; vector instructions are counted from 1."""

    def __init__(self, config: HwConfig) -> None:
        self.rows = config.window_depth
        self.filled = dict.fromkeys(STREAMING, 0)
        """Instructions so far."""
        self.bank = self.last = 1
        self.base = self.end = 0
        self._drained = [0, 0]
        self._filled = [0, 0]
        self._window_drained: npt.NDArray[np.int64] = np.zeros(config.window_depth, np.int64)

    def begin(self, task: TileTask) -> None:
        """A task's instructions follow."""
        if task.on_array:
            self.bank = self.last ^ 1
            self.last ^= task.banks & 1

    def fill(self, step: ArrayStep) -> tuple[dict[str, int], int]:
        """Fields of the task's next instruction, and the vector instructions that must have read before it."""
        instruction = step.array
        self.filled[instruction.UNIT] += 1
        if isinstance(instruction, Array):
            bank = self.bank ^ step.bank
            self._filled[bank] = self.filled[Unit.ARRAY]
            return {"acc_bank": bank}, self._drained[bank]
        height, width = sums(instruction)
        self.base = self.end if self.end + height * width <= self.rows else 0
        self.end = self.base + height * width
        before = self._window_drained if instruction.reads_sums else self._window_drained[self.base : self.end]
        return {"acc_base": self.base}, int(before.max())

    def drain(self, task: TileTask, step: VectorStep, number: int) -> dict[str, int]:
        """Fields of a vector instruction that drains the task's sums."""
        if task.on_array:
            bank = self.bank ^ step.bank
            self._drained[bank] = number
            return {"acc_bank": bank, "after_array": self._filled[bank]}
        self._window_drained[self.base : self.end] = number
        return {"a_base": self.base + step.vector.a_base, "after_depthwise": self.filled[Unit.DEPTHWISE]}


def cycles_alone(tasks: Sequence[TileTask], config: HwConfig) -> int:
    """Exact cycles of the tasks of one operation whose operands are there and lie in banks of their own."""
    arrays: list[tuple[Array, OwnedLoad]] = []
    strips: list[tuple[Depthwise, OwnedLoad]] = []
    vectors: list[Vector] = []
    accumulators = AccumulatorBinder(config)
    for task in tasks:
        accumulators.begin(task)
        for step in task.arrays:
            fields, reads = accumulators.fill(step)
            fields |= wait_reads(0, reads)
            owned = OwnedLoad(step.load, task.op)
            if isinstance(step.array, Array):
                arrays.append((step.array.but(**fields), owned))
            else:
                strips.append((step.array.but(**fields), owned))
        for drain in task.vectors:
            vectors.append(drain.vector.but(**accumulators.drain(task, drain, len(vectors) + 1)))
    code: Code = {
        Unit.LOAD: [owned.load for owned in ordered(arrays, strips, vectors, config)],
        Unit.ARRAY: [instruction for instruction, _ in arrays],
        Unit.DEPTHWISE: [instruction for instruction, _ in strips],
        Unit.VECTOR: vectors,
    }
    return timeline(config, code).cycles
