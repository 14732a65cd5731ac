"""`WindowReduce`: zero points, and sum or maximum over a window, for all W lanes of a word."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fixed import SUM_BITS
from ..isa.instructions import VectorOp
from ..isa.timing import REDUCE
from .cells import DuplicatedRegister


class WindowReduce(wiring.Component):
    """One word of each operand per cycle; ``a`` and ``b`` show 2 cycles later. `inside` comes a cycle before its word;
    `op` and the zero points hold still from a cycle before the first word to the last.

    ``a[i]``: sum (or, for MAX, maximum) of ``word_a[i] - za`` since the last `first`, leaving out positions that
    are not `inside`; -256 or 0 if there was none. ``b[i] = word_b[i] - zb``. They hold until the next `valid`. For
    operations without such a window every word is a `first`.
    """

    latency = REDUCE

    def __init__(self, word: int) -> None:
        self.word = word
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "inside": In(1),
                "op": In(3),
                "za": In(signed(8)),
                "zb": In(signed(8)),
                "word_a": In(8 * word),
                "word_b": In(8 * word),
                "a": Out(signed(SUM_BITS)).array(word),
                "b": Out(signed(9)).array(word),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # A register of each lane's own for what decides in all of them.
        m.submodules.insides = insides = DuplicatedRegister(1, self.word)
        m.submodules.when = when = DuplicatedRegister(2, self.word)
        m.d.comb += [insides.i.eq(self.inside), when.i.eq(Cat(self.valid, self.first))]
        # And for every two lanes one of what holds still.
        m.submodules.settings = settings = DuplicatedRegister(17, -(-self.word // 2))
        m.d.comb += settings.i.eq(Cat(self.op == VectorOp.MAX, self.za, self.zb))
        for i in range(self.word):
            # Cycle 1: without zero point; a position outside gives what changes nothing.
            a_1 = Signal(signed(9), name=f"a_1_{i}", reset_less=True)
            b_1 = Signal(signed(9), name=f"b_1_{i}", reset_less=True)
            valid_1, first_1 = when.o[i]
            held = settings.o[i // 2]
            maximum, za, zb = held[0], held[1:9], held[9:].as_signed()
            # What is left out is so before the difference, whose carry cells have room for that.
            inside, byte = insides.o[i].replicate(8), self.word_a.word_select(i, 8)
            counted = Cat(byte & inside, Mux(insides.o[i], byte[-1], maximum)).as_signed()
            m.d.sync += [
                a_1.eq(counted - (za & inside).as_signed()),
                b_1.eq(self.word_b.word_select(i, 8).as_signed() - zb),
            ]
            # Cycle 2: reduce.
            a_2 = Signal(signed(SUM_BITS), name=f"a_2_{i}", reset_less=True)
            b_2 = Signal(signed(9), name=f"b_2_{i}", reset_less=True)
            with m.If(valid_1):
                m.d.sync += b_2.eq(b_1)
                with m.If(first_1):
                    m.d.sync += a_2.eq(a_1)
                with m.Elif(~maximum):
                    m.d.sync += a_2.eq(a_2 + a_1)
                with m.Elif((a_2[:9].as_signed() - a_1) < 0):  # a sign, where a comparison has a table behind it
                    m.d.sync += a_2.eq(a_1)
            m.d.comb += [self.a[i].eq(a_2), self.b[i].eq(b_2)]
        return m
