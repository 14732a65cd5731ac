"""`Gw2aCells`: the GW2A forms of the cells in `onnxhw.rtl.cells`.

Yosys infers neither the output register of a block RAM nor any register of a multiplier, so both are instantiated.
"""

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, ClockSignal, Const, Instance, Module, Signal
from amaranth.hdl import Value

from ...rtl.cells import BEHAVIOURAL, BidirectionalPads, BlockRam, DuplicatedRegister, FlashClock, Multiplier
from ...rtl.delay import delay
from .. import block_ram
from ..contents import ATTRIBUTE
from ..tiled import tiled
from .timing import MULTIPLIER

NARROW = 9
"""Bits of the operands of half a multiplier block."""
LEAST = 2
"""Fewest stages of a multiplier block: its input and output registers. Yosys makes 120 LUT4 of a product of 8 bits, and
the depthwise unit's 36 do not fit beside the core."""
REGISTERED = 36
"""The aspect whose block RAMs use their output registers. nextpnr has it that some chips cannot at other widths
(``bsram_fix_outreg``, for the ports of SP and DPB cells); narrower ones have their output register in fabric."""


def init_word(data: Sequence[int], row: int, bits: int) -> int:
    """The parameter ``INIT_RAM_<row>``: 32 bytes of `bits` bits each, 8 or 9, first byte lowest."""
    return sum((data[row * 32 + index] & ((1 << bits) - 1)) << bits * index for index in range(32))


def bsram(
    tile: block_ram.BlockRamTile, memory: BlockRam, segment_enable: Value | int, number: int
) -> tuple[Module, Signal]:
    """One block RAM of `memory`, and its data outputs two cycles after the address, in the order of `DataSlot.at`.

    Port A writes, port B reads. Byte enables are the low address bits of the wide aspects, and there is a clock enable
    in the place of a write enable (SUG283, as Yosys's own mapping has it).
    """
    aspect, byte = tile.aspect, block_ram.BYTE
    x9 = aspect >= byte
    width = 36 if x9 else 32
    data, enable = [Const(0, 1)] * width, [Const(0, 1)] * 4
    for slot in tile.slots:
        for bit in range(slot.bits):
            data[slot.at + bit] = memory.w_data[slot.low + bit]
        enable[slot.at // byte] = memory.w_en[slot.enable] & segment_enable
    low = (aspect // byte).bit_length() + 2 if x9 else aspect.bit_length() - 1
    part = tile.slots[0].low * memory.slices // memory.width
    bytes_enabled = enable[: aspect // byte] if aspect >= 18 else []
    zeros = [Const(0, 1)] * low
    w_addr = Cat(bytes_enabled, zeros[len(bytes_enabled) :], memory.w_addr[: 14 - low])
    r_addr = Cat(zeros, memory.read_address(part)[: 14 - low])
    registered = aspect == REGISTERED
    parameters: dict[str, Any] = {
        "p_READ_MODE": Const(registered, 1), "p_BIT_WIDTH_0": aspect, "p_BIT_WIDTH_1": aspect,
        "p_BLK_SEL_0": Const(0, 3), "p_BLK_SEL_1": Const(0, 3), "p_RESET_MODE": "SYNC",
    }  # fmt: skip
    image, bits = block_ram.contents(tile, memory.init), 9 if x9 else 8
    for row in range(64):
        parameters[f"p_INIT_RAM_{row:02X}"] = Const(init_word(image, row, bits), 32 * bits)
    identity = f"{memory.name}:{memory.width}:{memory.depth}:{memory.granularity}:{number}"
    m, out = Module(), Signal(width)
    m.submodules.cell = Instance(
        "SDPX9B" if x9 else "SDPB",
        ("a", ATTRIBUTE, identity),
        **parameters,
        i_CLKA=ClockSignal("sync"), i_CEA=Cat(enable).any(), i_RESETA=0, i_BLKSELA=Const(0, 3),
        i_CLKB=ClockSignal("sync"), i_CEB=1, i_OCE=1, i_RESETB=0, i_BLKSELB=Const(0, 3),
        i_ADA=_of(w_addr, 14), i_ADB=_of(r_addr, 14), i_DI=Cat(data), o_DO=out,
    )  # fmt: skip
    if registered:
        return m, out
    register = Signal(width, reset_less=True)
    m.d.sync += register.eq(out)
    return m, register


def _of(value: Any, width: int) -> Any:
    """A value with zeros above, up to a port's width."""
    return Cat(value, Const(0, width - len(value))) if len(value) < width else value


def dsp_multiplier(multiplier: Multiplier) -> Module:
    """`Multiplier` as one MULT18X18, or a MULT9X9 (half of one), with input, pipeline and output registers; others of
    its stages follow. One of two stages does without the pipeline register.

    Operands are left-justified (their low bits are 0), which spares the fan-out of a sign extension.
    """
    m = Module()
    a, b, p = multiplier.a, multiplier.b, multiplier.p
    width = NARROW if max(len(a), len(b)) <= NARROW else 2 * NARROW
    product = Signal(2 * width)
    m.submodules.cell = Instance(
        f"MULT{width}X{width}",
        p_AREG=Const(1, 1), p_BREG=Const(1, 1), p_OUT_REG=Const(1, 1),
        p_PIPE_REG=Const(multiplier.latency >= MULTIPLIER, 1),
        p_ASIGN_REG=Const(0, 1), p_BSIGN_REG=Const(0, 1), p_SOA_REG=Const(0, 1), p_MULT_RESET_MODE="SYNC",
        i_CLK=ClockSignal("sync"), i_CE=1, i_RESET=0, i_ASIGN=1, i_BSIGN=1, i_ASEL=0, i_BSEL=0,
        i_A=Cat(Const(0, width - len(a)), a), i_B=Cat(Const(0, width - len(b)), b),
        i_SIA=Const(0, width), i_SIB=Const(0, width), o_DOUT=product,
    )  # fmt: skip
    found = product[2 * width - len(p) :].as_signed()
    m.d.comb += p.eq(delay(m, found, max(0, multiplier.latency - MULTIPLIER), name="p", reset=False))
    return m


class Gw2aCells:
    """`onnxhw.rtl.cells.Primitives` of a GW2A. There is no floor plan: cells go where the placer puts them.

    Sites are what is short: a register takes one, its lookup table with it, unless that is what drives it; and so do
    eight for every 16 words of four bits of LUT RAM.
    """

    apart, region_table = False, "block"

    def memory(self, ram: BlockRam) -> Module:
        """Block RAMs; what is `distributed` Yosys maps to lookup tables."""
        if ram.distributed:
            return BEHAVIOURAL.memory(ram)

        def cell(tile: block_ram.BlockRamTile, enable: Value | int, number: int) -> tuple[Any, Signal]:
            return bsram(tile, ram, enable, number)

        return tiled(ram, cell)

    def multiplier(self, multiplier: Multiplier) -> Module:
        """A multiplier block where it is to be one, or where half of one will do; else as Yosys makes it of logic."""
        narrow = max(len(multiplier.a), len(multiplier.b)) <= NARROW and multiplier.latency >= LEAST
        return dsp_multiplier(multiplier) if multiplier.style == "dsp" or narrow else BEHAVIOURAL.multiplier(multiplier)

    def duplicated(self, register: DuplicatedRegister) -> Module:
        """Copies that synthesis makes one register of."""
        return BEHAVIOURAL.duplicated(register)

    def bidirectional(self, pads: BidirectionalPads) -> Module:
        """The platform's buffers with registers in fabric."""
        return BEHAVIOURAL.bidirectional(pads)

    def flash_clock(self, clock: FlashClock) -> Module:
        """Never asked for: `Family.flash_clock` is False."""
        return BEHAVIOURAL.flash_clock(clock)

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Any:
        """None: a constant pin costs nothing."""
        return None
