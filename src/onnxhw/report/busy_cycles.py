"""What an instruction does in a cycle of its unit: its own work, or waiting for others."""

from collections.abc import Sequence

from ..config import HwConfig
from ..isa.external_instructions import Move
from ..isa.instructions import Array, Depthwise, Load, Ordered, Vector
from ..isa.timeline import IssueRecord
from ..isa.timing import load_steps, pixels, tiles, vector_cycles
from ..isa.units import Unit


def busy(instruction: Ordered, config: HwConfig) -> int:
    """Cycles of an instruction's own work: load steps, pixels, vector groups and window positions, columns of external
    memory."""
    if isinstance(instruction, Load):
        return tiles(instruction) * load_steps(instruction, config)
    if isinstance(instruction, (Array, Depthwise)):
        return tiles(instruction) * pixels(instruction)
    if isinstance(instruction, Move):
        assert config.external is not None
        return instruction.runs * instruction.word_n * 32 // config.external.data_bits
    assert isinstance(instruction, Vector)
    return vector_cycles(instruction, config)


def order_wait(spans: Sequence[IssueRecord], index: int, unit: Unit) -> int:
    """Cycles for which an instruction, fetched and with its unit free, waited for other units."""
    span = spans[index]
    return span.issue - max(span.ready, free(spans, index, unit))


def free(spans: Sequence[IssueRecord], index: int, unit: Unit) -> int:
    """First cycle in which the unit could take the instruction, as far as the one before lets it.

    From one instruction's to the next one's is the time that the unit spends on it, waiting included.
    """
    if index == 0:
        return 0
    if not unit.overlaps:
        return spans[index - 1].end
    return spans[index].free if index < len(spans) else spans[-1].over
