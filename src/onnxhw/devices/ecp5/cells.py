"""`Cells`: the ECP5 forms of the cells in `onnxhw.rtl.cells`, at the places of the floor plan.

Yosys infers neither the output register of a block RAM nor any register of a multiplier, so both are instantiated
(timing: clock to output 5.6 -> 1.0 ns for the block RAM, two times the clock for the multiplier).
"""

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, ClockSignal, Const, Instance, Module, Signal
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ...config import HwConfig
from ...rtl.cells import BEHAVIOURAL, BidirectionalPads, BlockRam, DuplicatedRegister, FlashClock, Multiplier
from ...rtl.delay import delay
from .. import block_ram
from ..contents import ATTRIBUTE
from ..copies import copies
from ..tiled import tiled
from . import floorplan
from .fabric import fabric_multiplier
from .parts import die
from .timing import MULTIPLIER


def bus(direction: str, name: str, value: Any, width: int) -> dict[str, Any]:
    """Instance connections of the bits ``name0 ..`` of a bus; missing input bits are 0, missing outputs open."""
    bits = list(value) if value is not None else []
    if direction == "i":
        bits += [Const(0)] * (width - len(bits))
    return {f"{direction}_{name}{i}": bit for i, bit in enumerate(bits)}


def initval(data: Sequence[int], row: int) -> int:
    """The 320-bit parameter ``INITVAL_<row>``: 32 bytes, as 16 groups of 18 bits at a distance of 20."""
    value = 0
    for group in range(16):
        low, high = data[row * 32 + group * 2], data[row * 32 + group * 2 + 1]
        value |= (low | high << block_ram.BYTE) << 20 * group
    return value


def dp16kd(
    tile: block_ram.BlockRamTile, memory: BlockRam, segment_enable: Value | int, number: int, site: str
) -> tuple[Any, Signal]:
    """One EBR of `memory` as an instance, at `site` unless that is empty, and its data outputs in the order of the
    memory's `Slot.at`.

    Port A writes, port B reads; with aspect 36 both ports' data pins belong to both. The cells' chip selects are
    unused. As in Yosys's own mapping, byte enables are the low address bits of the wide aspects.
    """
    aspect = tile.aspect
    data, enable = [Const(0, 1)] * 36, [Const(0, 1)] * 4
    for slot in tile.slots:
        for bit in range(slot.bits):
            data[slot.at + bit] = memory.w_data[slot.low + bit]
        enable[slot.at // block_ram.BYTE] = memory.w_en[slot.enable] & segment_enable
    low = aspect.bit_length() - 1 if aspect < block_ram.BYTE else (aspect // block_ram.BYTE).bit_length() + 2
    bits = 14 - low
    part = tile.slots[0].low * memory.slices // memory.width
    w_addr, r_addr = memory.w_addr[:bits], memory.read_address(part)[:bits]
    bytes_enabled = enable[: aspect // block_ram.BYTE] if aspect >= 18 else []
    wide = aspect == 36
    out = Signal(36 if wide else 18, name=f"data_{number}")
    parameters: dict[str, Any] = {
        "p_DATA_WIDTH_A": aspect,
        "p_DATA_WIDTH_B": aspect,
        "p_REGMODE_A": "OUTREG" if wide else "NOREG",
        "p_REGMODE_B": "OUTREG",
        "p_RESETMODE": "SYNC",
        "p_ASYNC_RESET_RELEASE": "SYNC",
        "p_CSDECODE_A": "0b000",
        "p_CSDECODE_B": "0b000",
        "p_CLKAMUX": "CLKA",
        "p_CLKBMUX": "CLKB",
        "p_WRITEMODE_A": "NORMAL",
        "p_WRITEMODE_B": "NORMAL",
        "p_GSR": "DISABLED",
    }
    image = block_ram.contents(tile, memory.init)
    for row in range(64):
        value = initval(image, row)
        if value:
            parameters[f"p_INITVAL_{row:02X}"] = Const(value, 320)
    identity = f"{memory.name}:{memory.width}:{memory.depth}:{memory.granularity}:{number}"
    write: Any = 1 if wide else Cat(enable).any()
    cell = Instance(
        "DP16KD",
        ("a", ATTRIBUTE, identity),
        **({"a_BEL": site} if site else {}),
        **parameters,
        i_CLKA=ClockSignal("sync"), i_CEA=1, i_OCEA=1, i_RSTA=0, i_WEA=write,
        i_CLKB=ClockSignal("sync"), i_CEB=1, i_OCEB=1, i_RSTB=0, i_WEB=0,
        **bus("i", "CSA", None, 3), **bus("i", "CSB", None, 3),
        **bus("i", "ADA", [*bytes_enabled, *[Const(0)] * (low - len(bytes_enabled)), *w_addr], 14),
        **bus("i", "ADB", [*[Const(0)] * low, *r_addr], 14),
        **bus("i", "DIA", data[:18], 18), **bus("i", "DIB", data[18:], 18),
        **(bus("o", "DOA", out[:18], 18) if wide else {}),
        **bus("o", "DOB", out[18:] if wide else out, 18),
    )  # fmt: skip
    return cell, out


def dsp_multiplier(multiplier: Multiplier, site: str, ties: "TieCells | None") -> Module:
    """`Multiplier` as one MULT18X18D with input, pipeline and output registers; others of its stages follow.

    Operands are left-justified (their low bits are 0), which spares the fan-out of a sign extension.
    """
    m = Module()
    a, b, p = multiplier.a, multiplier.b, multiplier.p
    product = Signal(36)
    zero: Any = ties.zero if ties else 0
    one: Any = ties.one if ties else 1
    registers: dict[str, Any] = {}
    for stage in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT"):
        registers[f"p_REG_{stage}_CLK"] = "CLK0"
        registers[f"p_REG_{stage}_CE"] = "CE0"
        registers[f"p_REG_{stage}_RST"] = "RST0"
    m.submodules.cell = Instance(
        "MULT18X18D",
        **registers,
        **({"a_BEL": site} if site else {}),
        p_CLK0_DIV="ENABLED",
        p_SOURCEB_MODE="B_SHIFT",
        p_MULT_BYPASS="DISABLED",
        p_RESETMODE="SYNC",
        p_GSR="DISABLED",
        i_CLK0=ClockSignal("sync"), i_CE0=one, i_RST0=zero,
        i_SIGNEDA=one, i_SIGNEDB=one, i_SOURCEA=zero, i_SOURCEB=zero,
        **bus("i", "A", [*[Const(0)] * (18 - len(a)), *a], 18),
        **bus("i", "B", [*[Const(0)] * (18 - len(b)), *b], 18),
        **bus("i", "C", None, 18),
        **bus("o", "P", product, 36),
    )  # fmt: skip
    found = product[36 - len(p) :].as_signed()
    m.d.comb += p.eq(delay(m, found, multiplier.latency - MULTIPLIER, name="p", reset=False))
    return m


def flip_flop(d: Any, q: Any, *, init: int) -> Any:
    """``q`` is ``d`` a cycle later: the cell that Yosys makes of a register, so that it shares slices with others."""
    return Instance(
        "TRELLIS_FF",
        p_GSR="DISABLED", p_CEMUX="1", p_CLKMUX="CLK", p_LSRMUX="LSR", p_REGSET="SET" if init else "RESET",
        i_CLK=ClockSignal("sync"), i_LSR=0, i_DI=d, o_Q=q,
    )  # fmt: skip


def bidirectional_pads(pads: BidirectionalPads) -> Module:
    """Pads whose three registers are in the site of the pin. That of the tristate starts as 1, unlike Amaranth's: until
    the PLL has locked, no clock edge would end what it starts with."""
    m = Module()
    clock = {"i_SCLK": ClockSignal("sync"), "i_SP": Const(1)}
    for bit in range(len(pads.port)):
        invert = pads.port.invert[bit]
        out, come, still = Signal(), Signal(), Signal()
        m.submodules[f"pad_{bit}"] = Instance("BB", i_T=still, i_I=out, o_O=come, io_B=pads.port.io[bit])
        taken = Signal()
        m.submodules[f"i_{bit}"] = Instance("IFS1P3DX", i_CD=Const(0), i_D=come, o_Q=taken, **clock)
        m.submodules[f"o_{bit}"] = Instance("OFS1P3DX", i_CD=Const(0), i_D=pads.o[bit] ^ invert, o_Q=out, **clock)
        m.submodules[f"t_{bit}"] = Instance("OFS1P3BX", i_PD=Const(0), i_D=~pads.oe, o_Q=still, **clock)
        m.d.comb += pads.i[bit].eq(taken ^ invert)
    return m


class TieCells(wiring.Component):
    """``zero`` and ``one``, for the pins of neighbouring multipliers that must be constant: flip-flops that hold what
    the configuration has put into them.

    Of a multiplier's pins nextpnr ties those of a shared constant by routing it there from one place for the whole
    chip: six of each of 150 multipliers, through the rows that have the fewest wires to spare.
    """

    def __init__(self) -> None:
        super().__init__({"zero": Out(1), "one": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.zero = flip_flop(self.zero, self.zero, init=0)
        m.submodules.one = flip_flop(self.one, self.one, init=1)
        return m


Ties = dict[str, TieCells]
"""The tie cells for each role of a multiplier."""


class Cells:
    """`onnxhw.rtl.cells.Primitives` of an ECP5; a design without a configuration has no floor plan. The table of
    regions is of lookup tables, for the smallest devices have no block RAM left."""

    apart, region_table = True, "distributed"

    def __init__(self, device: str, config: HwConfig | None) -> None:
        self.plan = floorplan.plan(die(device), config) if config else floorplan.FloorPlan()

    def memory(self, ram: BlockRam) -> Module:
        """Block RAMs; what is `distributed` Yosys maps to lookup tables."""
        if ram.distributed:
            return BEHAVIOURAL.memory(ram)
        sites = self.plan.memories.get(ram.role, ())

        def cell(tile: block_ram.BlockRamTile, enable: Value | int, number: int) -> tuple[Any, Signal]:
            return dp16kd(tile, ram, enable, number, sites[number] if sites else "")

        return tiled(ram, cell)

    def multiplier(self, multiplier: Multiplier) -> Module:
        """A multiplier block, or carry chains."""
        if multiplier.style == "fabric":
            return fabric_multiplier(multiplier)
        ties: Ties = multiplier.shared or {}
        return dsp_multiplier(multiplier, self.plan.multipliers.get(multiplier.role, ""), ties.get(multiplier.role))

    def duplicated(self, register: DuplicatedRegister) -> Module:
        """A flip-flop per bit and copy."""
        return copies(register, flip_flop)

    def bidirectional(self, pads: BidirectionalPads) -> Module:
        """Registers of the pins' sites."""
        return bidirectional_pads(pads)

    def flash_clock(self, clock: FlashClock) -> Module:
        """The cell through which a design has the pin CCLK after configuration."""
        m = Module()
        m.submodules.cell = Instance("USRMCLK", i_USRMCLKI=clock.sck, i_USRMCLKTS=Const(0))
        return m

    def shared(self, m: Module, roles: Sequence[str], *, spread: bool) -> Ties:
        """Tie cells for each group of four multipliers, or for all; none where multipliers have no places."""
        found: dict[str, TieCells] = {}
        ties: Ties = {}
        for role in roles:
            if site := self.plan.multipliers.get(role):
                name = f"ties_{floorplan.group_of(site)}" if spread else "ties"
                if name not in found:
                    found[name] = TieCells()
                    m.submodules[name] = found[name]
                ties[role] = found[name]
        return ties
