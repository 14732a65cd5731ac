"""`Primitives`: what a device family makes of the cells in `cells.py`; and `Behavioural`, their meaning.

The platform that `elaborate` is given has an attribute ``primitives`` (`onnxhw.devices.Family.primitives` makes it).
Simulation gives no platform, and gets behavioural forms. All other RTL is the same for every family and for simulation.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from amaranth import Module, Signal
from amaranth.lib import memory

from .delay import delay

if TYPE_CHECKING:
    from .cells import BlockRam, DuplicatedRegister, Multiplier


class Primitives(Protocol):
    """A family's forms of the cells, of exactly the behaviour and latency of `Behavioural`.

    A cell says what it is for by its `role`. A family that has a floor plan looks its place up by that; others take
    no notice of it. Roles: ``pe_<element>_<column>`` and ``products_<element>`` (the array's multipliers),
    ``lane_<lane>_<product>`` (a requantizer lane's), ``act_<bank>``, ``acc_<bank>``, ``ucode_<unit>``, ``params``,
    ``tables_<lane>``, ``window``, ``weights <block>`` (memories of the core), ``link_input``, ``link_frame``,
    ``link_description``, ``link_reply``, ``link_start`` (of the link). An empty role has no place.
    """

    def memory(self, ram: "BlockRam") -> Module:
        """The body of a memory."""
        ...

    def multiplier(self, multiplier: "Multiplier") -> Module:
        """The body of a multiplier."""
        ...

    def duplicated(self, register: "DuplicatedRegister") -> Module:
        """The body of a duplicated register, which synthesis must not merge."""
        ...

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Any:
        """Put into `m` the cells that the multipliers of these roles share, as tie cells for constant pins; None
        without any. What is returned is given to each of them as `Multiplier.shared`. With `spread` they are spread
        over the device, so that neighbours share; else all share the same."""
        ...


class Behavioural:
    """The cells as plain RTL: what they mean, and what simulation runs."""

    def memory(self, ram: "BlockRam") -> Module:
        """Block RAM or, for one that is `distributed`, lookup tables: as synthesis infers them."""
        m = Module()
        style = {"ram_style": "distributed"} if ram.distributed else {}
        mem = memory.Memory(shape=ram.width, depth=ram.depth, init=list(ram.init), attrs=style)
        m.submodules.memory = mem
        write = mem.write_port(granularity=None if ram.granularity == ram.width else ram.granularity)
        m.d.comb += [write.addr.eq(ram.w_addr), write.data.eq(ram.w_data), write.en.eq(ram.w_en)]
        r_data, width = Signal(ram.width, reset_less=True), ram.width // ram.slices
        for part in range(ram.slices):
            read = mem.read_port()
            m.d.comb += [read.addr.eq(ram.read_address(part)), read.en.eq(1)]
            m.d.sync += r_data.word_select(part, width).eq(read.data.word_select(part, width))
        m.d.comb += ram.r_data.eq(r_data)
        return m

    def multiplier(self, multiplier: "Multiplier") -> Module:
        """A product between registers."""
        m = Module()
        a_1, b_1 = Signal.like(multiplier.a), Signal.like(multiplier.b)
        m.d.sync += [a_1.eq(multiplier.a), b_1.eq(multiplier.b)]
        m.d.comb += multiplier.p.eq(delay(m, (a_1 * b_1).as_signed(), multiplier.latency - 1, name="p"))
        return m

    def duplicated(self, register: "DuplicatedRegister") -> Module:
        """As many registers."""
        m = Module()
        for j in range(register.count):
            copy = Signal(register.width, name=f"copy_{j}", init=register.init, reset_less=True)
            m.d.sync += copy.eq(register.i)
            m.d.comb += register.o[j].eq(copy)
        return m

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Any:
        """None: constants cost nothing."""
        return None


BEHAVIOURAL: Primitives = Behavioural()


def primitives_of(platform: Any) -> Primitives:
    """The primitives of the device that a design is elaborated for; behavioural ones without a device."""
    found: Primitives = getattr(platform, "primitives", BEHAVIOURAL)
    return found
