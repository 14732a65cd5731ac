"""The instructions of configurations with early completion: of those of the array and the vector unit some are counted
as completed before their last effect can be seen, by as many cycles as `early` says.

Who waits for one of these takes its results one after the other, from some cycle after its own issue on: a layer that
reads the first word first need not wait for the last one. Nothing holds an instruction of the vector unit up once it
has issued, nor one of the array after its last pixel. So it is known from the instructions alone by how much one may be
early, whatever the others take (`onnxhw.sched.early_completion`).

The vector unit is not free any sooner, and completions stay in order.
"""

from dataclasses import dataclass

from ..config import EARLY_BITS, HwConfig
from .fields import unsigned
from .instructions import UNITS, Array, Ordered, Vector
from .timing import (
    ACCUMULATE,
    ACT_READ,
    MEMORY,
    ORDER,
    START,
    array_latency,
    array_pipeline,
    drain_later,
    vector_latency,
)
from .units import Unit


@dataclass(frozen=True)
class EarlyArray(Array):
    __doc__ = Array.__doc__

    LEADING = (*Array.LEADING, "early")

    early: int = unsigned(EARLY_BITS, "cycles by which it is counted as completed before its last sums can be drained")


@dataclass(frozen=True)
class EarlyVector(Vector):
    __doc__ = Vector.__doc__

    LEADING = (*Vector.LEADING, "early")

    early: int = unsigned(EARLY_BITS, "cycles by which it is counted as completed before its last result can be read")


EARLY: dict[Unit, type[Ordered]] = {**UNITS, Unit.ARRAY: EarlyArray, Unit.VECTOR: EarlyVector}
"""What the instructions of each unit are where there is early completion."""
_PLAIN = {Unit.ARRAY: EarlyArray(), Unit.VECTOR: EarlyVector()}


def as_early(instruction: Ordered) -> Ordered:
    """The form of an instruction where there is early completion; not early itself if it was not."""
    if isinstance(instruction, EARLY[instruction.UNIT]):
        return instruction
    return _PLAIN[instruction.UNIT].but(**instruction.__dict__)


def early_of(instruction: Ordered) -> int:
    """By how many cycles an instruction is early."""
    return instruction.early if isinstance(instruction, (EarlyArray, EarlyVector)) else 0


READ_SLACK = ORDER + START + ACT_READ - MEMORY - 1
"""Cycles by which an instruction may be early whose last result is the first operand of who waits for it: from its
completion that one takes so many until the address is at the bank, which holds the result by then."""


def drain_slack(config: HwConfig) -> int:
    """The same of an instruction of the array and a drain of its last row of sums."""
    added = ACT_READ + array_pipeline(config) - MEMORY + ACCUMULATE
    return array_latency(config) + ORDER + START + drain_later(config) - added


def most_early(unit: Unit, config: HwConfig) -> int:
    """By how many cycles an instruction of a unit may be early at most.

    When it is counted it has read its operands, which may be overwritten then; and the array adds to no row of its bank
    any more, for a drain reads through the same port.
    """
    if unit == Unit.ARRAY:
        most = min(array_latency(config) - ACT_READ - 1, drain_slack(config) + ACCUMULATE - 1)
    elif unit == Unit.VECTOR:
        most = vector_latency() - ACT_READ - 1
    else:
        return 0
    return max(0, min(config.early_completion, most))
