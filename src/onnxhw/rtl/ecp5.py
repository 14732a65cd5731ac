"""The ECP5 forms of the cells in `cells.py`: block RAM, multiplier block and carry-chain multiplier.

Yosys infers neither the output register of a block RAM nor any register of a multiplier, and spends four times
the logic on a multiplier without one, so all three are instantiated (timing: clock to output 5.6 -> 1.0 ns for
the block RAM, two times the clock for the multiplier).
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from amaranth import Array, Cat, ClockSignal, Const, Instance, Module, Signal
from amaranth.hdl import Value

from ..isa.timing import MULTIPLY
from . import ebr
from .delay import delay

ATTRIBUTE = "ONNXHW_MEMORY"
"""Attribute of a block RAM cell: ``name:width:depth:granularity:tile``."""


def bus(direction: str, name: str, value: Any, width: int) -> dict[str, Any]:
    """Instance connections of the bits ``name0 ..`` of a bus; missing input bits are 0, missing outputs open."""
    bits = list(value) if value is not None else []
    if direction == "i":
        bits += [Const(0)] * (width - len(bits))
    return {f"{direction}_{name}{i}": bit for i, bit in enumerate(bits)}


def dp16kd(tile: ebr.Tile, memory: Any, enables: Value, segment_enable: Value | int, number: int) -> Any:
    """One EBR of `memory` as an instance, and its data outputs in the order of the memory's `Slot.at`.

    Port A writes, port B reads; with aspect 36 both ports' data pins belong to both. The cells' chip selects are
    unused. As in Yosys's own mapping, byte enables are the low address bits of the wide aspects.
    """
    aspect = tile.aspect
    data, enable = [Const(0, 1)] * 36, [Const(0, 1)] * 4
    for slot in tile.slots:
        for bit in range(slot.bits):
            data[slot.at + bit] = memory.w_data[slot.low + bit]
        enable[slot.at // ebr.BYTE] = enables[slot.enable] & segment_enable
    low = aspect.bit_length() - 1 if aspect < ebr.BYTE else (aspect // ebr.BYTE).bit_length() + 2
    bits = 14 - low
    w_addr, r_addr = memory.w_addr[:bits], memory.r_addr[:bits]
    bytes_enabled = enable[: aspect // ebr.BYTE] if aspect >= 18 else []
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
    image = ebr.contents(tile, memory.init)
    for row in range(64):
        value = ebr.initval(image, row)
        if value:
            parameters[f"p_INITVAL_{row:02X}"] = Const(value, 320)
    identity = f"{memory.name}:{memory.width}:{memory.depth}:{memory.granularity}:{number}"
    write: Any = 1 if wide else Cat(enable).any()
    cell = Instance(
        "DP16KD",
        ("a", ATTRIBUTE, identity),
        **({"a_BEL": memory.sites[number]} if memory.sites else {}),
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


def block_ram(memory: Any) -> Module:
    """`cells.BlockRam`: the tiles of `ebr.plan`, their output registers, and a multiplexer of the segments."""
    m = Module()
    tiles = ebr.plan(memory.width, memory.depth, memory.granularity)
    bases = sorted({tile.base for tile in tiles})
    words = {base: Signal(memory.width, name=f"segment_{base}") for base in bases}
    limits = {base: upper for base, upper in zip(bases, [*bases[1:], 1 << len(memory.w_addr)], strict=True)}
    for number, tile in enumerate(tiles):
        here: Value | int = 1
        if len(bases) > 1:
            here = (memory.w_addr >= tile.base) & (memory.w_addr < limits[tile.base])
        cell, out = dp16kd(tile, memory, memory.w_en, here, number)
        m.submodules[f"tile_{number}"] = cell
        for slot in tile.slots:
            m.d.comb += words[tile.base][slot.low : slot.low + slot.bits].eq(out[slot.at : slot.at + slot.bits])
    if len(bases) == 1:
        m.d.comb += memory.r_data.eq(words[0])
        return m
    # Which segment the data will come from, two cycles later.
    segment_1 = Signal(range(len(bases)))
    segment_2 = Signal.like(segment_1)
    for index, base in enumerate(bases[1:], start=1):
        with m.If(memory.r_addr >= base):
            m.d.sync += segment_1.eq(index)
    with m.If(memory.r_addr < bases[1]):
        m.d.sync += segment_1.eq(0)
    m.d.sync += segment_2.eq(segment_1)
    m.d.comb += memory.r_data.eq(Array(words.values())[segment_2])
    return m


def dsp_multiplier(multiplier: Any) -> Module:
    """`cells.Multiplier` as one MULT18X18D with input, pipeline and output registers; others of its stages follow.

    Operands are left-justified (their low bits are 0), which spares the fan-out of a sign extension.
    """
    m = Module()
    a, b, p = multiplier.a, multiplier.b, multiplier.p
    product = Signal(36)
    zero: Any = multiplier.ties.zero if multiplier.ties else 0
    one: Any = multiplier.ties.one if multiplier.ties else 1
    registers: dict[str, Any] = {}
    for stage in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT"):
        registers[f"p_REG_{stage}_CLK"] = "CLK0"
        registers[f"p_REG_{stage}_CE"] = "CE0"
        registers[f"p_REG_{stage}_RST"] = "RST0"
    m.submodules.cell = Instance(
        "MULT18X18D",
        **registers,
        **({"a_BEL": multiplier.site} if multiplier.site else {}),
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
    m.d.comb += p.eq(delay(m, found, multiplier.latency - MULTIPLY, name="p", reset=False))
    return m


def flip_flop(d: Any, q: Any, *, init: int) -> Any:
    """``q`` is ``d`` a cycle later: the cell that Yosys makes of a register, so that it shares slices with others."""
    return Instance(
        "TRELLIS_FF",
        p_GSR="DISABLED", p_CEMUX="1", p_CLKMUX="CLK", p_LSRMUX="LSR", p_REGSET="SET" if init else "RESET",
        i_CLK=ClockSignal("sync"), i_LSR=0, i_DI=d, o_Q=q,
    )  # fmt: skip


def copies(registers: Any) -> Module:
    """`cells.Copies`: a flip-flop per bit and copy."""
    m = Module()
    for j in range(registers.count):
        for bit in range(registers.width):
            init = registers.init >> bit & 1
            m.submodules[f"copy_{j}_{bit}"] = flip_flop(registers.i[bit], registers.o[j][bit], init=init)
    return m


def ties(constants: Any) -> Module:
    """`cells.Ties`: two flip-flops that hold what the configuration has put into them."""
    m = Module()
    m.submodules.zero = flip_flop(constants.zero, constants.zero, init=0)
    m.submodules.one = flip_flop(constants.one, constants.one, init=1)
    return m


# What one bit of a carry chain adds, as the 16-bit table of its LUT4 (A + 2B + 4C + 8D is the index). Where the LUT4
# is 0 the carry is the LUT2 of A and B, which is the table's low four bits.
PAIR_ADD = sum(1 << i for i in range(16) if (i & 3 == 3) != (i >> 2 == 3))
"""``A & B`` plus ``C & D``."""
PAIR_SUBTRACT = PAIR_ADD ^ 0xFFFF
"""``C & D`` plus the complement of ``A & B``."""
ADD = 0x666A
"""``A`` plus ``B``; C and D are 1."""


def carry_chain(m: Module, name: str, bits: list[tuple[Any, Any, Any, Any]], table: int, carry: int) -> Signal:
    """Sum bits of a chain of CCU2C; each of `bits` is (A, B, C, D), `carry` is the constant carry into the first.

    The first half of the first cell makes the carry: its LUT4 is 0, so its LUT2 (the table's low four bits) is
    the carry, and the chain's own carry input does not matter.
    """
    one = Const(1, 1)
    units = [((one, one, one, one), 0x000F if carry else 0x0000), *[(unit, table) for unit in bits]]
    if len(units) % 2:
        units.append(((one, one, one, one), 0))
    total = Signal(len(units), name=name)
    link: Any = None
    for first in range(0, len(units), 2):
        pins: dict[str, Any] = {}
        for half in (0, 1):
            unit, init = units[first + half]
            pins[f"p_INIT{half}"] = Const(init, 16)
            pins[f"p_INJECT1_{half}"] = "NO"
            pins.update({f"i_{pin}{half}": value for pin, value in zip("ABCD", unit, strict=True)})
            pins[f"o_S{half}"] = total[first + half]
        if link is not None:
            pins["i_CIN"] = link
        if first + 2 < len(units):
            link = Signal(name=f"{name}_carry_{first}")
            pins["o_COUT"] = link
        m.submodules[f"{name}_{first}"] = Instance("CCU2C", **pins)
    return total[1 : 1 + len(bits)]


def product_rows(m: Module, a: Value, b: Value) -> list[tuple[Signal, int]]:
    """``(row, span)``: the products of `a` with each two bits of `b`, lowest first; their sum is ``a * b``.

    The highest two bits are signed. A row is ``len(a) + span`` bits wide and signed.
    """
    width = len(a) + 2
    wide = Cat(a, a[-1], a[-1])
    digits = Cat(b, b[-1]) if len(b) % 2 else b
    rows = []
    for first in range(0, len(digits), 2):
        low, high = digits[first], digits[first + 1]
        last = first + 2 == len(digits)
        pairs = [((wide[i], low), (wide[i - 1], high)) for i in range(1, width)]
        bits = [(*two, *one) if last else (*one, *two) for one, two in pairs]
        table, carry = (PAIR_SUBTRACT, 1) if last else (PAIR_ADD, 0)
        row = Signal(width, name=f"row_{first}")
        m.d.comb += row.eq(Cat(wide[0] & low, carry_chain(m, f"pair_{first}", bits, table, carry)))
        rows.append((row, 2))
    return rows


def add_rows(m: Module, rows: list[tuple[Signal, int]], a_bits: int, level: int) -> list[tuple[Signal, int]]:
    """Half as many rows: each two neighbours added; the low bits of the lower one pass by."""
    one, out = Const(1, 1), []
    for index in range(0, len(rows) - 1, 2):
        (x, low), (y, high) = rows[index], rows[index + 1]
        upper = [x[min(low + i, len(x) - 1)] for i in range(len(y))]
        bits = [(upper[i], y[i], one, one) for i in range(len(y))]
        total = Signal(a_bits + low + high, name=f"sum_{level}_{index}")
        m.d.comb += total.eq(Cat(x[:low], carry_chain(m, f"add_{level}_{index}", bits, ADD, 0)))
        out.append((total, low + high))
    return out + (rows[-1:] if len(rows) % 2 else [])


def fabric_levels(a_bits: int, b_bits: int, stages: int = MULTIPLY) -> tuple[int, ...]:
    """Levels of adders before each of the registers: two at most if that is enough, and of those ways the one with the
    fewest registers. The first stage has the least to do: its operands may come through logic."""
    levels = ((min(a_bits, b_bits) + 1) // 2 - 1).bit_length() + 1
    most = max(2, -(-levels // stages))
    ways = [way for way in product(range(most + 1), repeat=stages) if sum(way) == levels]
    return min(ways, key=lambda way: (sum(fabric_registers(a_bits, b_bits, way)), way))


def joined(spans: list[int]) -> list[int]:
    """What rows of so many digits' bits span after one level of adders."""
    pairs = [low + high for low, high in zip(spans[::2], spans[1::2], strict=False)]
    return pairs + (spans[-1:] if len(spans) % 2 else [])


def fabric_registers(a_bits: int, b_bits: int, levels: Sequence[int]) -> list[int]:
    """Bits of each stage's registers, with so many levels of adders before each."""
    wide, narrow = max(a_bits, b_bits), min(a_bits, b_bits)
    spans: list[int] = []
    found = []
    for count in levels:
        for _ in range(count):
            spans = joined(spans) if spans else [2] * -(-narrow // 2)
        found.append(sum(wide + span for span in spans) if spans else wide + narrow)
    return found


def fabric_multiplier(multiplier: Any) -> Module:
    """`cells.Multiplier` in carry chains: rows of two bits of the narrower operand, added as a tree.

    The registers of the latency lie where they are fewest (`fabric_levels`). About ``a * b + 3 * b`` LUT4.
    """
    m = Module()
    a, b = multiplier.a, multiplier.b
    if len(b) > len(a):
        a, b = b, a
    rows: list[tuple[Signal, int]] = []
    level = 0
    for stage, levels in enumerate(fabric_levels(len(a), len(b), multiplier.latency), start=1):
        for _ in range(levels):
            rows = add_rows(m, rows, len(a), level) if rows else product_rows(m, a, b)
            level += 1
        if not rows:
            a, b = (delay(m, value, 1, name=f"{name}_{stage}", reset=False) for value, name in ((a, "a"), (b, "b")))
            continue
        registered = []
        for index, (row, span) in enumerate(rows):
            register = Signal(len(row), name=f"row_{index}_stage_{stage}", reset_less=True)
            m.d.sync += register.eq(row)
            registered.append((register, span))
        rows = registered
    m.d.comb += multiplier.p.eq(rows[0][0])
    return m
