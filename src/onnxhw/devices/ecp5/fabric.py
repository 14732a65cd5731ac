"""The multiplier of fabric: rows of two bits of an operand, added in carry chains as a tree.

Yosys spends four times the logic on a multiplier without the device's multiplier block.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from amaranth import Cat, Const, Instance, Module, Signal
from amaranth.hdl import Value

from ...rtl.cells import Multiplier
from ...rtl.delay import delay

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


def fabric_levels(a_bits: int, b_bits: int, stages: int) -> tuple[int, ...]:
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


def fabric_multiplier(multiplier: Multiplier) -> Module:
    """`rtl.cells.Multiplier` in carry chains: rows of two bits of the narrower operand, added as a tree.

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
