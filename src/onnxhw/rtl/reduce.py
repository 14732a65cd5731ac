"""`WindowReduce`: zero points, and sum or maximum over a window, for all W lanes of a word."""

from typing import Any

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fixed import SUM_BITS
from ..isa.instructions import VectorOp


class WindowReduce(wiring.Component):
    """One word of each operand per cycle; ``a`` and ``b`` show 2 cycles later.

    ``a[i]``: sum (or, for MAX, maximum) of ``word_a[i] - za`` since the last `first`, leaving out positions that
    are not `inside`; -256 or 0 if there was none. ``b[i] = word_b[i] - zb``. They hold until the next `valid`.
    """

    latency = 2

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
        valid_1, first_1, inside_1 = Signal(), Signal(), Signal()
        m.d.sync += [valid_1.eq(self.valid), first_1.eq(self.first), inside_1.eq(self.inside)]
        maximum = self.op == VectorOp.MAX
        for i in range(self.word):
            a_1, b_1 = (
                Signal(signed(9), name=f"a_1_{i}", reset_less=True),
                Signal(signed(9), name=f"b_1_{i}", reset_less=True),
            )
            m.d.sync += [
                a_1.eq(self.word_a.word_select(i, 8).as_signed() - self.za),
                b_1.eq(self.word_b.word_select(i, 8).as_signed() - self.zb),
            ]
            total = self.a[i]
            with m.If(valid_1):
                m.d.sync += self.b[i].eq(b_1)
                with m.If(maximum):
                    before = Mux(first_1, -256, total[:10].as_signed())
                    m.d.sync += total.eq(Mux(inside_1 & (a_1 > before), a_1, before))
                with m.Else():
                    m.d.sync += total.eq(Mux(first_1, 0, total) + Mux(inside_1, a_1, 0))
        return m
