"""The cells of which every device has its own form: memory, multiplier, duplicated register (`Primitives`)."""

from typing import Any

from amaranth import Module, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa.timing import MEMORY, MULTIPLY
from .primitives import primitives_of


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
