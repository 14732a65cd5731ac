"""`TileTask`: the instructions of one tile of one operation, addresses still relative to their tensors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from ..ir.graph import Tensor
from ..ir.windows import Window
from ..isa.instructions import Array, Depthwise, Load, Vector
from ..isa.timing import pixels, tiles


class WordRegion(NamedTuple):
    """A box of words of a tensor: blocks, rows and columns, each ``(first, end)``."""

    tensor: str
    blocks: tuple[int, int]
    rows: tuple[int, int]
    cols: tuple[int, int]

    @property
    def empty(self) -> bool:
        """Whether no word is in it."""
        return self.rows[0] >= self.rows[1] or self.cols[0] >= self.cols[1]


@dataclass(frozen=True)
class ArrayStep:
    """A weight load and the instruction that takes its tiles, of the array or of the depthwise unit; `act_base` counts
    from the tensor's base.

    `reads` is empty if every position lies in the padding. `bank`: the first accumulator bank of the task, or the
    second.
    """

    load: Load
    array: Array | Depthwise
    tensor: str
    reads: tuple[WordRegion, ...]
    bank: int = 0


@dataclass(frozen=True)
class VectorStep:
    """A vector instruction; `a_base`, `b_base` and `o_base` count from the bases of their tensors.

    `a` and `b` are None where the operation has no such operand in activation memory. `bank`: which of its task's
    accumulator banks it drains.
    """

    vector: Vector
    a: WordRegion | None
    b: WordRegion | None
    writes: WordRegion
    bank: int = 0


@dataclass(frozen=True)
class TileTask:
    """What one tile takes: steps of the array into one accumulator bank, or into both by turns, or of the
    depthwise unit into its sums, and the vector steps after them.

    The accumulator banks, or the rows of the depthwise unit's sums, are chosen when the task is emitted; tasks of
    vector operations have vector steps alone.
    """

    op: str
    arrays: tuple[ArrayStep, ...] = ()
    vectors: tuple[VectorStep, ...] = field(default_factory=tuple)

    @cached_property
    def on_array(self) -> bool:
        """Whether the array has a part in it."""
        return any(isinstance(step.array, Array) for step in self.arrays)

    @cached_property
    def banks(self) -> int:
        """How many accumulator banks it fills."""
        return 1 + max(step.bank for step in self.arrays) if self.on_array else 0

    @cached_property
    def streamed(self) -> int:
        """Cycles in which the array or the depthwise unit takes a pixel."""
        return sum(tiles(step.array) * pixels(step.array) for step in self.arrays)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The tensors that it reads or writes."""
        names = [region.tensor for region in self.regions_read] + [step.writes.tensor for step in self.vectors]
        return tuple(dict.fromkeys(names))

    @cached_property
    def regions_read(self) -> list[WordRegion]:
        """Everything the task needs in activation memory."""
        found = [region for step in self.arrays for region in step.reads]
        for step in self.vectors:
            found += [region for region in (step.a, step.b) if region]
        return found


@dataclass(frozen=True)
class Tiling:
    """How an operation is cut into tasks.

    Parameters
    ----------
    cuts : first output row of each tile, then the height: ``(0, ..., H)``.
    blocks_first : array operations: all rows of one column tile before the next column tile; vector
        operations: one task per block instead of one for all blocks.
    columns : array operations: first column tile of each group that one instruction streams, then their number:
        ``(0, ..., N)``; empty: one at a time. Groups that do not fit the accumulators are cut further.
    split : array operations: an instruction of the first group that reads blocks on both sides of one of these is cut
        there, so as to begin when the blocks before it are written.
    lookahead : array operations: as many blocks of the second group go before the last part of the first, which
        waits for what it reads.
    drain_per_block : array operations: each block of the result is drained by an instruction of its own, so that
        whoever needs only that one can begin.
    whole : operations of the depthwise unit: strips may fill all rows of its sums; else half of them, so that some are
        filled while others are drained.
    """

    cuts: tuple[int, ...]
    blocks_first: bool = False
    columns: tuple[int, ...] = ()
    split: tuple[int, ...] = ()
    lookahead: int = 0
    drain_per_block: bool = False
    whole: bool = False

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """Row ranges."""
        return list(pairwise(self.cuts))


MakeTasks = Callable[[Tiling], list[TileTask]]
"""An operation whose constants are known: gives its tasks for a tiling."""


def window_rows(rows: tuple[int, int], window: Window, axis: int, size: int) -> tuple[int, int]:
    """Input rows (or columns) ``(first, end)`` that the windows of output rows ``first .. end - 1`` can meet."""
    pad, _, kernel, stride, dilation = window.axis(axis)
    low = max(0, rows[0] * stride - pad)
    high = min(size, (rows[1] - 1) * stride - pad + (kernel - 1) * dilation + 1)
    return low, max(low, high)


def window_region(
    x: Tensor, blocks: tuple[int, int], window: Window, rows: tuple[int, int], cols: tuple[int, int]
) -> WordRegion:
    """What the windows of a box of output rows and columns can meet of an input."""
    seen_rows, seen_cols = window_rows(rows, window, 0, x.height), window_rows(cols, window, 1, x.width)
    return WordRegion(x.name, blocks, seen_rows, seen_cols)
