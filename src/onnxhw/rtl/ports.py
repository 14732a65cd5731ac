"""The ports between the parts of the core, each a signature. `UnitComponent` has those that its unit declares."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.external_instructions import kinds
from ..isa.fields import WORD_BITS
from ..isa.instructions import Array
from ..isa.memory import Space
from ..isa.units import STREAMING, Unit, units_of

COUNT_BITS = 16
"""Bits of a number of instructions."""
ADDRESS_BITS = 16
"""Bits of an address of activation memory."""
TURNED = 4
"""Ways of a multiplexer that turns an operand: in one level of logic before a register."""
READS = "reads"
"""Beside the units in `completions`: vector instructions that have read their operands."""


def each(names: Iterable[str], make: Callable[[Any], Any]) -> wiring.Signature:
    """A port with a member for each name: what `make` gives, a signature or a shape."""
    return wiring.Signature({name: Out(make(name)) for name in names})


def by_name(port: Any) -> dict[str, Any]:
    """The members of such a port."""
    return {name: getattr(port, name) for name in port.signature.members}


def write_request(config: HwConfig) -> data.StructLayout:
    """A write: one enable per lane, word address, W bytes."""
    return data.StructLayout({"en": config.word, "addr": ADDRESS_BITS, "data": 8 * config.word})


def act_read(config: HwConfig, unaligned: bool = False) -> wiring.Signature:
    """Read activation memory: `word` comes `ACT_READ` cycles after its `request`, of an enable and a word address.

    Or `unaligned`, if the port can: W bytes from `byte` on, those from lane `split` on `jump` words further if `split`
    is not 0; `addr` is then the word of the first. They come as `turned`, which is to be turned by as many slices more
    as the number of the first byte's slice is modulo `unturned`.
    """
    request: dict[str, int] = {"en": 1, "addr": ADDRESS_BITS}
    answer = {"word": In(8 * config.word)}
    if unaligned:
        fields = {spec.name: spec.bits for spec in Array.specs() if spec.name in ("unaligned", "split", "jump")}
        request |= {"byte": ADDRESS_BITS, **fields}
        answer["turned"] = In(8 * config.word)
    return wiring.Signature({"request": Out(data.StructLayout(request)), **answer})


def unturned(config: HwConfig) -> int:
    """By fewer slices than this `act_read` leaves an unaligned operand to be turned: the others are turned in time."""
    return max(1, config.slices // TURNED)


def reads_unaligned(unit: Unit, config: HwConfig) -> bool:
    """Whether the read ports of a unit are `unaligned`."""
    return unit.ports.unaligned and config.unaligned > 0


def act_write(config: HwConfig) -> wiring.Signature:
    """Write activation memory."""
    return wiring.Signature({"request": Out(write_request(config))})


def issue(unit: Unit, config: HwConfig) -> wiring.Signature:
    """A fetcher gives its unit an instruction: `bits`, which may start while they are `valid`, and stand from a cycle
    before on; `free` tells that the unit could take one, `take` that it does in this cycle. `arriving` tells of each
    word whether it is `data` from the next cycle on."""
    words = kinds(config)[unit].words()
    arrives = {"arriving": Out(words), "data": Out(WORD_BITS)}
    return wiring.Signature({"bits": Out(WORD_BITS * words), "valid": Out(1), **arrives, "free": In(1), "take": In(1)})


def progress() -> wiring.Signature:
    """A fetcher tells the run control where it is: `index` is the number of its instruction, of `count`; `take`: the
    unit takes it; `waiting`: it could, but other units are not far enough."""
    return wiring.Signature({"index": Out(COUNT_BITS), "take": Out(1), "waiting": Out(1), "count": In(COUNT_BITS)})


def completions(config: HwConfig) -> wiring.Signature:
    """The run control tells all fetchers of each unit, and of `READS`: how many instructions have been completed, that
    number and one, and whether it has grown, by one, with this cycle."""
    counted = wiring.Signature({"count": Out(COUNT_BITS), "following": Out(COUNT_BITS, init=1), "grown": Out(1)})
    return each((*units_of(config), READS), lambda _: counted)


def status(unit: Unit) -> wiring.Signature:
    """A unit tells the run control: an instruction is `done`, or has read its operands (`done_reads`); the unit is
    `starved` of weights, or `busy`, if that is counted."""
    told = {"done_reads": unit.ports.drains, "starved": unit.registers.stall_weights, "busy": unit.registers.busy}
    return each(["done", *(name for name, there in told.items() if there)], lambda _: 1)


def tiles(unit: Unit, config: HwConfig) -> wiring.Signature:
    """Weight tiles for the shadow registers of a unit: `started` tells that a tile is on its way, `taken` that its unit
    begins to use it; `enable` says which registers take `weights`, which are the same for all units."""
    return wiring.Signature(
        {
            "started": Out(1),
            "taken": In(1),
            "weights": Out(8 * config.weight_word),
            "enable": Out(STREAMING[unit].enables(config)),
        }
    )


def drain(unit: Unit, config: HwConfig) -> wiring.Signature:
    """Read a row of a unit's sums: it comes `DRAIN_READ` cycles after `bank` and `row`."""
    row, sums = bits_for(STREAMING[unit].rows(config)), STREAMING[unit].row_bits(config)
    bank = {"bank": Out(1)} if STREAMING[unit].banks > 1 else {}
    return wiring.Signature({**bank, "row": Out(row), "sums": In(sums)})


def unit_ports(unit: Unit, config: HwConfig) -> dict[str, wiring.Member]:
    """The members of a unit, as its declaration says.

    ``issue`` and ``status`` are every unit's. ``read`` has a port of activation memory for each of its `Ports.reads`,
    ``write`` is the one it writes by. A unit that streams has ``tiles`` and ``drain``; one that loads has ``tiles`` for
    each that streams, and one that drains a ``drain``.
    """
    ports, streaming = unit.ports, [other for other in units_of(config) if other in STREAMING]
    unaligned = reads_unaligned(unit, config)
    members = {
        "issue": In(issue(unit, config)),
        "status": Out(status(unit)),
        "read": Out(each(ports.reads, lambda _: act_read(config, unaligned))) if ports.reads else None,
        "write": Out(act_write(config)) if ports.writes else None,
        "tiles": In(tiles(unit, config)) if ports.streams else None,
        "drain": In(drain(unit, config)) if ports.streams else None,
    }
    if ports.loads:
        members["tiles"] = Out(each(streaming, lambda other: tiles(other, config)))
    if ports.drains:
        members["drain"] = Out(each(streaming, lambda other: drain(other, config)))
    return {name: member for name, member in members.items() if member is not None}


class UnitComponent(wiring.Component):
    """What executes the instructions of a unit: its members are `unit_ports`, and `others`.

    The host writes its `memories`: by address space, what has the write port of a `BlockRam`.
    """

    UNIT: ClassVar[Unit]

    def __init__(self, config: HwConfig, others: Mapping[str, wiring.Member] = MappingProxyType({})) -> None:
        self.config = config
        self.memories: dict[Space, Any] = {}
        super().__init__({**unit_ports(self.UNIT, config), **others})
