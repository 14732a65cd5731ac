"""What the scheduler tries beyond one plain schedule, each with a switch.

Programs are made with `ALL`, but segments whose weights come in pieces without `row_tiles`; the switches are there to
be measured. `bench/heuristics.py` prints the cycles with each one off, and no option of a user's reaches them. Whatever
is off, a program that comes out has passed `check`.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Heuristics:
    """One switch per heuristic; True: it is used."""

    overlap: bool = True
    """Tensors share words one by one where live ranges allow it (`live_ranges`); off: only if lifetimes do not meet."""
    strategies: bool = True
    """Allocation in three orders (`alloc.ORDERS`), for room; off: largest first."""
    bank_preferences: bool = True
    """What is read side by side is put into different banks if possible; off: only operands of one instruction."""
    eager: bool = True
    """Work of the vector and depthwise units goes as soon as its operands are complete; off: operation by operation."""
    clock_order: bool = True
    """Where the depthwise unit works, the vector unit takes first what is ready first (`list_scheduling`)."""
    interleaving: bool = True
    """Operations that do not need each other take turns on the array."""
    short_branches: bool = True
    """Shorter branches first is tried, too (`operation_order`)."""
    row_tiles: bool = True
    """Operations are cut into row tiles so that readers begin early; off: the fewest tiles that the memories allow."""
    block_by_block: bool = True
    """With the depthwise unit, results are drained and read block by block (`tiling.block_by_block`)."""
    column_groups: bool = True
    """One instruction streams several column tiles of a small map (`column_groups`)."""
    lookahead: bool = True
    """Part of a second column-tile group goes ahead of what has to wait."""
    fewest_cycles_unit: bool = True
    """A depthwise convolution goes where it takes fewer cycles alone; off: always to the depthwise unit."""
    descent: bool = True
    """Cuts are changed one at a time where the array waits, as long as that makes cycles fewer (`search.improve`)."""


ALL = Heuristics()
"""Every heuristic; what programs are made with."""
NAMES = tuple(field.name for field in fields(Heuristics))
