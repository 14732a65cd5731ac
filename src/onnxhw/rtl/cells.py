"""The cells of which every device has its own form: memory, multiplier, duplicated register.

`Primitives` is what a device family makes of them; `Behavioural` is their meaning. The platform that `elaborate` is
given has an attribute ``primitives`` (`onnxhw.devices.Family.primitives` makes it). Simulation gives no platform, and
gets behavioural forms. All other RTL is the same for every family and for simulation.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from amaranth import Module, Signal, Value, signed
from amaranth.lib import io, memory, wiring
from amaranth.lib.wiring import In, Out

from ..isa.timing import MEMORY, MULTIPLY
from .delay import delay


class BlockRam(wiring.Component):
    """A memory of one write and one read port whose output is registered.

    ``r_data`` shows, `MEMORY` = 2 cycles later, the word at ``r_addr`` as written before that cycle's clock
    edge (a write in the same cycle is not seen). ``w_en`` has one bit per `granularity` data bits.

    The device does not define what a read of the address that is being written returns; a design whose
    result depends on it is wrong, and netlist simulation shows it (it reads X there).

    Parameters
    ----------
    init : words from address 0 on; the others start as 0.
    name : identity of the contents for ``--standalone`` bitstreams; empty: the place in the hierarchy.
    role : what the memory is for (`Primitives`); empty: any place will do.
    distributed : made of lookup tables instead of block RAMs.
    slices : parts of the word, of equal width, each with an address of its own to read from: `r_addr` is an array then.
    """

    latency = MEMORY

    def __init__(
        self, *, width: int, depth: int, granularity: int | None = None, init: tuple[int, ...] = (), name: str = "",
        role: str = "", distributed: bool = False, slices: int = 1,
    ) -> None:  # fmt: skip
        self.width, self.depth, self.distributed = width, depth, distributed
        self.granularity = granularity or width
        self.init = init
        self.name, self.role, self.slices = name, role, slices
        bits = max(1, (depth - 1).bit_length())
        super().__init__(
            {
                "w_addr": In(bits),
                "w_data": In(width),
                "w_en": In(-(-width // self.granularity)),
                "r_addr": In(bits) if slices == 1 else In(bits).array(slices),
                "r_data": Out(width),
            }
        )

    def read_address(self, part: int) -> Value:
        """The address from which a slice of the word is read."""
        found: Value = self.r_addr[part] if self.slices > 1 else self.r_addr
        return found

    def elaborate(self, platform: Any) -> Module:
        return primitives_of(platform).memory(self)


class DuplicatedRegister(wiring.Component):
    """``o[j] = i`` a cycle later: `count` registers of one value, for users that lie far apart.

    Synthesis makes one register of several that hold the same, so on the device these are cells. They start as `init`
    and are not reset.
    """

    latency = 1

    def __init__(self, width: int, count: int, *, init: int = 0) -> None:
        self.width, self.count, self.init = width, count, init
        super().__init__({"i": In(width), "o": Out(width).array(count)})

    def elaborate(self, platform: Any) -> Module:
        return primitives_of(platform).duplicated(self)


class Multiplier(wiring.Component):
    """``p = a * b`` of two signed operands of at most 18 bits, `latency` = `stages` cycles later.

    `style` "dsp" is the device's multiplier with all its registers, of `MULTIPLY` stages at least; "fabric" is made of
    carry chains. `role` is what it is for (`Primitives`), `shared` what `Primitives.shared` has returned for it and
    others.
    """

    def __init__(
        self, a_bits: int, b_bits: int, *, style: str = "dsp", role: str = "", shared: Any = None,
        stages: int = MULTIPLY,
    ) -> None:  # fmt: skip
        self.style, self.role, self.shared, self.latency = style, role, shared, stages
        super().__init__({"a": In(signed(a_bits)), "b": In(signed(b_bits)), "p": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: Any) -> Module:
        return primitives_of(platform).multiplier(self)


class BidirectionalPads(wiring.Component):
    """Pins with registers in their pads: ``o`` and ``oe`` leave, and ``i`` comes, a cycle later.

    From configuration to the first clock edge nothing is driven: whoever is at the other end may be driving still.
    """

    latency = 1

    def __init__(self, port: io.SingleEndedPort) -> None:
        self.port = port
        super().__init__({"o": In(len(port)), "oe": In(1), "i": Out(len(port))})

    def elaborate(self, platform: Any) -> Module:
        return primitives_of(platform).bidirectional(self)


class FlashClock(wiring.Component):
    """Drives the clock pin of the flash memory that the device was configured from, which is no pin of a design's."""

    def __init__(self) -> None:
        super().__init__({"sck": In(1)})

    def elaborate(self, platform: Any) -> Module:
        return primitives_of(platform).flash_clock(self)


class Primitives(Protocol):
    """A family's forms of the cells, of exactly the behaviour and latency of `Behavioural`.

    A cell says what it is for by its `role`. A family that has a floor plan looks its place up by that; others take
    no notice of it. Roles: ``pe_<element>_<column>`` and ``products_<element>`` (the array's multipliers),
    ``lane_<lane>_<product>`` (a requantizer lane's), ``act_<bank>``, ``acc_<bank>``, ``ucode_<unit>``, ``params``,
    ``tables_<lane>``, ``window``, ``weights <block>`` (memories of the core), ``link_input``, ``link_frame``,
    ``link_description``, ``link_reply``, ``link_start`` (of the link). An empty role has no place.
    """

    apart: bool
    """Whether registers that hold the same stay apart, each near its users: where wires are short. Else synthesis makes
    one of them: where sites are."""
    region_table: str
    """The ``ram_style`` of the table of input regions: "distributed" (lookup tables), or "block"."""

    def memory(self, ram: BlockRam) -> Module:
        """The body of a memory."""
        ...

    def multiplier(self, multiplier: Multiplier) -> Module:
        """The body of a multiplier."""
        ...

    def duplicated(self, register: DuplicatedRegister) -> Module:
        """The body of a duplicated register, which synthesis must not merge."""
        ...

    def bidirectional(self, pads: BidirectionalPads) -> Module:
        """The body of pins with registers."""
        ...

    def flash_clock(self, clock: FlashClock) -> Module:
        """The body of a `FlashClock`; of a family with `Family.flash_clock` alone."""
        ...

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Any:
        """Put into `m` the cells that the multipliers of these roles share, as tie cells for constant pins; None
        without any. What is returned is given to each of them as `Multiplier.shared`. With `spread` they are spread
        over the device, so that neighbours share; else all share the same."""
        ...


class Behavioural:
    """The cells as plain RTL: what they mean, and what simulation runs."""

    apart, region_table = True, "distributed"

    def memory(self, ram: BlockRam) -> Module:
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

    def multiplier(self, multiplier: Multiplier) -> Module:
        """A product between registers."""
        m = Module()
        a_1, b_1 = Signal.like(multiplier.a), Signal.like(multiplier.b)
        m.d.sync += [a_1.eq(multiplier.a), b_1.eq(multiplier.b)]
        m.d.comb += multiplier.p.eq(delay(m, (a_1 * b_1).as_signed(), multiplier.latency - 1, name="p"))
        return m

    def duplicated(self, register: DuplicatedRegister) -> Module:
        """As many registers."""
        m = Module()
        for j in range(register.count):
            copy = Signal(register.width, name=f"copy_{j}", init=register.init, reset_less=True)
            m.d.sync += copy.eq(register.i)
            m.d.comb += register.o[j].eq(copy)
        return m

    def bidirectional(self, pads: BidirectionalPads) -> Module:
        """The platform's buffers; what they drive before the first clock edge is the platform's choice."""
        m = Module()
        m.submodules.buffer = buffer = io.FFBuffer("io", pads.port)
        m.d.comb += [buffer.o.eq(pads.o), buffer.oe.eq(pads.oe), pads.i.eq(buffer.i)]
        return m

    def flash_clock(self, clock: FlashClock) -> Module:
        """Nothing: the signal is the pin."""
        return Module()

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Any:
        """None: constants cost nothing."""
        return None


BEHAVIOURAL: Primitives = Behavioural()


def primitives_of(platform: Any) -> Primitives:
    """The primitives of the device that a design is elaborated for; behavioural ones without a device."""
    found: Primitives = getattr(platform, "primitives", BEHAVIOURAL)
    return found
