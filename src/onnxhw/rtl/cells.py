"""The device's memory and multiplier cells, each with a portable form of the same behaviour.

The form is chosen when the platform given to `elaborate` names a device (see `is_ecp5`); simulation gives none.
"""

from typing import Any

from amaranth import Module, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..isa.timing import MEMORY, MULTIPLY
from . import ecp5
from .delay import delay


def is_ecp5(platform: Any) -> bool:
    """Whether the design is elaborated for an ECP5."""
    return str(getattr(platform, "device", "")).startswith("LFE5U")


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
    sites : places of its block RAMs on the device, in the order of `ebr.plan`; empty: anywhere.
    distributed : made of lookup tables instead of block RAMs.
    """

    latency = MEMORY

    def __init__(
        self, *, width: int, depth: int, granularity: int | None = None, init: tuple[int, ...] = (), name: str = "",
        sites: tuple[str, ...] = (), distributed: bool = False,
    ) -> None:  # fmt: skip
        self.width, self.depth, self.distributed = width, depth, distributed
        self.granularity = granularity or width
        self.init = init
        self.name = name
        self.sites = sites
        bits = max(1, (depth - 1).bit_length())
        super().__init__(
            {
                "w_addr": In(bits),
                "w_data": In(width),
                "w_en": In(-(-width // self.granularity)),
                "r_addr": In(bits),
                "r_data": Out(width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        if is_ecp5(platform) and not self.distributed:
            return ecp5.block_ram(self)
        m = Module()
        style = {"ram_style": "distributed"} if self.distributed else {}
        mem = memory.Memory(shape=self.width, depth=self.depth, init=list(self.init), attrs=style)
        m.submodules.memory = mem
        write = mem.write_port(granularity=None if self.granularity == self.width else self.granularity)
        read = mem.read_port()
        m.d.comb += [
            write.addr.eq(self.w_addr),
            write.data.eq(self.w_data),
            write.en.eq(self.w_en),
            read.addr.eq(self.r_addr),
            read.en.eq(1),
        ]
        r_data = Signal(self.width, reset_less=True)
        m.d.sync += r_data.eq(read.data)
        m.d.comb += self.r_data.eq(r_data)
        return m


class Copies(wiring.Component):
    """``o[j] = i`` a cycle later: `count` registers of one value, for users that lie far apart.

    Synthesis makes one register of several that hold the same, so on the device these are cells. They start as `init`
    and are not reset.
    """

    latency = 1

    def __init__(self, width: int, count: int, *, init: int = 0) -> None:
        self.width, self.count, self.init = width, count, init
        super().__init__({"i": In(width), "o": Out(width).array(count)})

    def elaborate(self, platform: Any) -> Module:
        if is_ecp5(platform):
            return ecp5.copies(self)
        m = Module()
        for j in range(self.count):
            register = Signal(self.width, name=f"copy_{j}", init=self.init, reset_less=True)
            m.d.sync += register.eq(self.i)
            m.d.comb += self.o[j].eq(register)
        return m


class Ties(wiring.Component):
    """``zero`` and ``one``, for the pins of neighbouring multipliers that must be constant.

    Of a multiplier's pins nextpnr ties those of a shared constant by routing it there from one place for the whole
    chip: six of each of 150 multipliers, through the rows that have the fewest wires to spare. On the device these are
    registers that hold their own value, close by.
    """

    def __init__(self) -> None:
        super().__init__({"zero": Out(1), "one": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        if is_ecp5(platform):
            return ecp5.ties(self)
        m = Module()
        m.d.comb += [self.zero.eq(0), self.one.eq(1)]
        return m


class Multiplier(wiring.Component):
    """``p = a * b`` of two signed operands of at most 18 bits, `latency` = `stages` cycles later.

    `style` "dsp" is the device's multiplier with all its registers, of `MULTIPLY` stages at least; "fabric" is made of
    carry chains. `site` is the multiplier's place on the device (nextpnr's name of it); empty: anywhere. `ties` are the
    constants for its pins.
    """

    def __init__(
        self, a_bits: int, b_bits: int, *, style: str = "dsp", site: str = "", ties: Ties | None = None,
        stages: int = MULTIPLY,
    ) -> None:  # fmt: skip
        self.style, self.site, self.ties, self.latency = style, site, ties, stages
        super().__init__({"a": In(signed(a_bits)), "b": In(signed(b_bits)), "p": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: Any) -> Module:
        if is_ecp5(platform):
            return ecp5.dsp_multiplier(self) if self.style == "dsp" else ecp5.fabric_multiplier(self)
        m = Module()
        a_1, b_1 = Signal.like(self.a), Signal.like(self.b)
        m.d.sync += [a_1.eq(self.a), b_1.eq(self.b)]
        m.d.comb += self.p.eq(delay(m, (a_1 * b_1).as_signed(), self.latency - 1, name="p"))
        return m
