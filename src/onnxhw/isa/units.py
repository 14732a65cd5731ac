"""The units of the core, each declared once: its name, its microcode memory, its ports and its control registers.

What loops over units takes these from here. What an instruction of a unit does, its class declares
(`onnxhw.isa.instructions`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..config import HwConfig
from .memory import Control, Space


@dataclass(frozen=True)
class Stream:
    """How a unit streams pixels under weight tiles into sums of its own.

    `enables`: bits that say which of its shadow registers take a weight word. `banks`, `rows`, `row_bits`: its sums.
    """

    enables: Callable[[HwConfig], int]
    banks: int
    rows: Callable[[HwConfig], int]
    row_bits: Callable[[HwConfig], int]


@dataclass(frozen=True)
class Ports:
    """What a unit reads and writes.

    `reads`: its read ports of activation memory. `writes`: whether it writes there. `streams`: what it needs to stream
    pixels, if it does. `unaligned`: whether it may read bytes from anywhere, where a configuration can. `loads`:
    whether it gives such units their weight tiles. `drains`: whether it reads their sums, and tells when an instruction
    has read all its operands.
    """

    reads: tuple[str, ...] = ()
    writes: bool = False
    streams: Stream | None = None
    unaligned: bool = False
    loads: bool = False
    drains: bool = False


@dataclass(frozen=True)
class Registers:
    """A unit's control registers: instructions of its program, and those completed; and cycles in which an instruction
    waited for other units, in which one waited for weights, and in which the unit was at work, if they are counted."""

    count: Control
    done: Control
    stall_order: Control
    stall_weights: Control | None = None
    busy: Control | None = None


@dataclass(frozen=True)
class _Declared:
    """A unit's microcode memory, how many words a configuration gives it, its ports and registers.

    `built`: whether a configuration has it. `in_luts`: words up to which its microcode memory is of lookup tables.
    `overlaps`: whether an instruction may begin before the one before it is done.
    """

    microcode: Space
    words: Callable[[HwConfig], int]
    ports: Ports
    registers: Registers
    built: Callable[[HwConfig], bool] = lambda config: True
    in_luts: int = 0
    overlaps: bool = False


_UNITS = {
    "load": _Declared(
        Space.LOAD_UCODE, lambda config: config.load_ucode, Ports(loads=True),
        Registers(Control.LOAD_COUNT, Control.LOAD_DONE, Control.STALL_ORDER_LOAD),
    ),
    "array": _Declared(
        Space.ARRAY_UCODE, lambda config: config.array_ucode,
        Ports(
            reads=("array",),
            unaligned=True,
            streams=Stream(
                lambda config: config.tile_words, 2, lambda config: config.acc_depth,
                lambda config: config.cols * config.acc_bits,
            ),
        ),
        Registers(
            Control.ARRAY_COUNT, Control.ARRAY_DONE, Control.STALL_ORDER_ARRAY, Control.STALL_WEIGHTS_ARRAY,
            Control.BUSY_ARRAY,
        ),
    ),
    "depthwise": _Declared(
        Space.DEPTHWISE_UCODE, lambda config: config.depthwise_ucode,
        Ports(
            reads=("depthwise",),
            streams=Stream(
                lambda config: 1, 1, lambda config: config.window_depth,
                lambda config: config.depthwise_lanes * config.sum_bits,
            ),
        ),
        Registers(
            Control.DEPTHWISE_COUNT, Control.DEPTHWISE_DONE, Control.STALL_ORDER_DEPTHWISE,
            Control.STALL_WEIGHTS_DEPTHWISE, Control.BUSY_DEPTHWISE,
        ),
        built=lambda config: config.depthwise > 0,
        in_luts=384,  # the 320 words of `ulx3s-45f` are; 512 and more are worth a block RAM
    ),
    "vector": _Declared(
        Space.VECTOR_UCODE, lambda config: config.vector_ucode, Ports(reads=("a", "b"), writes=True, drains=True),
        Registers(
            Control.VECTOR_COUNT, Control.VECTOR_DONE, Control.STALL_ORDER_VECTOR, busy=Control.BUSY_VECTOR
        ),
        overlaps=True,
    ),
    "move": _Declared(
        Space.MOVE_UCODE, lambda config: config.move_ucode, Ports(reads=("move",), writes=True),
        Registers(Control.MOVE_COUNT, Control.MOVE_DONE, Control.STALL_ORDER_MOVE, busy=Control.BUSY_MOVE),
        built=lambda config: config.external is not None,
    ),
}  # fmt: skip


class Unit(str, Enum):
    """A unit of the core, in the order of the completion counters and of the numbers in the ring.

    A unit is its name: it is equal to the word by which files and reports know it, and `Unit` of the word is the unit.
    """

    microcode: Space
    ports: Ports
    registers: Registers
    overlaps: bool
    _declared: _Declared

    LOAD = "load"
    ARRAY = "array"
    DEPTHWISE = "depthwise"
    VECTOR = "vector"
    MOVE = "move"

    def __init__(self, name: str) -> None:
        self._declared = declared = _UNITS[name]
        self.microcode, self.ports, self.registers = declared.microcode, declared.ports, declared.registers
        self.overlaps = declared.overlaps
        self.after = f"after_{name}"
        """The ordering field of this unit: how many of its instructions to wait for (`instructions.Ordered`)."""

    def __str__(self) -> str:
        """The name, in every Python: some show `Unit.LOAD`."""
        return str.__str__(self)

    def __format__(self, form: str) -> str:
        """The same."""
        return str.__format__(self, form)

    @property
    def number(self) -> int:
        """Its number in the ring, from 1."""
        return 1 + tuple(Unit).index(self)

    def ucode(self, config: HwConfig) -> int:
        """Words of its microcode memory, if there is such a unit."""
        return self._declared.words(config)

    def built(self, config: HwConfig) -> bool:
        """Whether a configuration has such a unit."""
        return self._declared.built(config)

    def in_luts(self, config: HwConfig) -> bool:
        """Whether its microcode memory is of lookup tables, not of block RAM."""
        return self.ucode(config) <= self._declared.in_luts


STREAMING = {unit: stream for unit in Unit if (stream := unit.ports.streams)}
"""The units that stream pixels under weight tiles, and how: the array and the depthwise unit."""


def units_of(config: HwConfig) -> list[Unit]:
    """The units that a configuration has."""
    return [unit for unit in Unit if unit.built(config)]


def ucode_words(config: HwConfig, unit: Unit) -> int:
    """Words of a unit's microcode memory; 0 where there is no such unit."""
    return unit.ucode(config) if unit.built(config) else 0
