"""The instructions of configurations with external memory: those of all units wait for one unit more, `Move`.

A program may have more instructions than an ordering field of other configurations counts, so the fields are wider
here. The microcode memories are *rings*: behind the last word comes the first one again, and moves write a program's
further words where instructions have been fetched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..config import HwConfig
from .early_instructions import EARLY, as_early
from .fields import flag, unsigned
from .instructions import UNITS, Array, Code, Depthwise, Load, Ordered, Vector, wait_reads
from .microcode import given
from .units import Unit, units_of

AFTER, AFTER_VECTOR = tuple(unit.after for unit in Unit), Unit.VECTOR.after
"""The ordering fields, of each unit in turn, and that of the vector unit."""
COUNT_BITS = 16
"""Bits of the ordering fields, and of the counters that they are compared with."""


@dataclass(frozen=True)
class ExternallyOrdered(Ordered):
    """The ordering fields where there is external memory."""

    after_load: int = unsigned(COUNT_BITS, "completed load instructions to wait for")
    after_array: int = unsigned(COUNT_BITS, "completed array instructions to wait for")
    after_depthwise: int = unsigned(COUNT_BITS, "completed depthwise instructions to wait for")
    after_vector: int = unsigned(COUNT_BITS, "completed vector instructions to wait for")
    after_move: int = unsigned(COUNT_BITS, "completed move instructions to wait for")

    @property
    def waits(self) -> tuple[int, ...]:
        return *super().waits, self.after_move


@dataclass(frozen=True)
class ExternalLoad(ExternallyOrdered, Load):
    __doc__ = Load.__doc__


@dataclass(frozen=True)
class ExternalArray(ExternallyOrdered, Array):
    __doc__ = Array.__doc__


@dataclass(frozen=True)
class ExternalDepthwise(ExternallyOrdered, Depthwise):
    __doc__ = Depthwise.__doc__


@dataclass(frozen=True)
class ExternalVector(ExternallyOrdered, Vector):
    __doc__ = Vector.__doc__


@dataclass(frozen=True)
class Move(ExternallyOrdered):
    """Copy 32-bit words between external memory and a memory of the core::

        for block in range(block_n):
          for run in range(run_n):
            for w in range(word_n):
              c = chip + block * c_block + run * c_run + w          # host words of the memory `space`, modulo 2**24
              e = external + block * e_block + run * e_run + w      # words of external memory, modulo 2**24
              if store: external_memory[e] = memory[space][c]
              else:     memory[space][c] = external_memory[e]

    `space` is an `onnxhw.isa.memory.Space`: ACT, WEIGHT, PARAM, TABLE or a microcode memory; only ACT can be stored. A
    run is one request of the controller, the next one is offered while its columns are transferred.
    """

    UNIT = Unit.MOVE
    LEADING = ("chip", "space", "external", "store", "after_load", "after_vector", "word_n")

    space: int = unsigned(4, "which memory of the core")
    store: int = flag("to external memory, else from it")
    chip: int = unsigned(24, "first host word of the memory", base=True)
    external: int = unsigned(24, "first word of external memory", base=True)
    block_n: int = unsigned(12, "blocks", 1, least=1)
    run_n: int = unsigned(12, "runs of each block", 1, least=1)
    word_n: int = unsigned(14, "words of each run, one after the other on both sides", 1, least=1)
    c_block: int = unsigned(24, "step in the memory per block")
    c_run: int = unsigned(24, "step in the memory per run")
    e_block: int = unsigned(24, "step in external memory per block")
    e_run: int = unsigned(24, "step in external memory per run")

    @property
    def what(self) -> str:
        return "store" if self.store else "load"

    @property
    def runs(self) -> int:
        """Requests that it makes."""
        return self.block_n * self.run_n


ADDRESS = (1 << 24) - 1
"""Addresses of a `Move` are modulo 2**24 words."""
EXTERNAL: dict[Unit, type[Ordered]] = {
    Unit.LOAD: ExternalLoad, Unit.ARRAY: ExternalArray, Unit.DEPTHWISE: ExternalDepthwise,
    Unit.VECTOR: ExternalVector, Unit.MOVE: Move,
}  # fmt: skip
"""What the instructions of each unit are where there is external memory."""
_PLAIN = {unit: kind() for unit, kind in EXTERNAL.items()}


def kinds(config: HwConfig) -> Mapping[Unit, type[Ordered]]:
    """What the instructions of each unit are in a configuration."""
    if config.external is not None:
        return EXTERNAL
    return EARLY if config.early_completion else UNITS


def code_for(config: HwConfig, code: Code) -> dict[Unit, list[Ordered]]:
    """Instructions as a configuration has them: as they are, in their external forms, waiting for no move, or in those
    of early completion, none of them early."""
    if config.external is None and not config.early_completion:
        return {unit: list(code.get(unit, ())) for unit in Unit}
    form = as_early if config.early_completion else as_external
    return {unit: [form(instruction) for instruction in code.get(unit, ())] for unit in Unit}


def as_external(instruction: Ordered) -> Ordered:
    """The external form of an instruction."""
    kind = EXTERNAL[instruction.UNIT]
    if isinstance(instruction, kind):
        return instruction
    return _PLAIN[instruction.UNIT].but(**instruction.__dict__)


def reads_waited(instruction: Ordered) -> int:
    """Vector instructions that must have read their operands before it; 0 for units that cannot wait for that."""
    return instruction.after_vector + instruction.more_reads if isinstance(instruction, (Array, Depthwise)) else 0


def waiting(instruction: Ordered, counts: Sequence[int], reads: int = 0) -> Ordered:
    """The instruction with these numbers to wait for, of each `Unit` in turn, and of vector instructions that must have
    read their operands."""
    values = dict(zip(AFTER, counts, strict=True))
    if isinstance(instruction, (Array, Depthwise)):
        written = values[AFTER_VECTOR]
        values |= wait_reads(written, max(reads, written))
    return instruction.but(**values)


@dataclass(frozen=True)
class Fetched:
    """Words of a unit's microcode, counted from its first one on, that are read before an instruction can issue:
    ``first <= word < end``. With an instruction comes the mask of the next one."""

    first: int
    end: int


def fetched(instructions: Sequence[Ordered]) -> list[Fetched]:
    """The words that each instruction of a unit takes."""
    found, at = [], 0
    for index, words in enumerate(given(instructions)):
        end = at + words + (index + 1 < len(instructions))
        found.append(Fetched(at, end))
        at = end
    return found


def ring_units(config: HwConfig) -> list[Unit]:
    """The units whose microcode memory is a ring: all, where there is external memory."""
    return units_of(config) if config.external is not None else []
