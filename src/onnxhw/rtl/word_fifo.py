"""`WordFifo`: a few words that wait, in lookup tables."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


class WordFifo(wiring.Component):
    """First in, first out, a word per cycle each way; a word can be read in the cycle after it was written.

    The oldest word and what is told of the filling come from registers: users decide with them late in a cycle.

    Members
    -------
    w_data, w_en : a word; not to be given while all `depth` words are taken.
    r_data, r_rdy : the oldest word, and whether there is one.
    r_en : In(1), take it.
    half : Out(1), half of the words are taken, or more.
    """

    def __init__(self, *, width: int, depth: int) -> None:
        assert depth >= 4, depth
        assert depth & (depth - 1) == 0, depth
        self.width, self.depth = width, depth
        super().__init__(
            {
                "w_data": In(width),
                "w_en": In(1),
                "r_data": Out(width),
                "r_rdy": Out(1),
                "r_en": In(1),
                "half": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.storage = storage = memory.Memory(shape=self.width, depth=self.depth, init=[])
        write, read = storage.write_port(), storage.read_port(domain="comb")
        # What is taken is told late in a cycle, and counted in the next. Bit n of `filled`: more than n words are
        # there, with the one taken in the cycle before. The oldest has left the memory, or never was read from it.
        filled, reads, counted, loads = Signal(self.depth), Signal(), Signal(), Signal()
        m.d.comb += [
            write.data.eq(self.w_data),
            write.en.eq(self.w_en),
            self.half.eq(Mux(counted, filled[self.depth // 2], filled[self.depth // 2 - 1])),
            reads.eq(self.r_rdy & self.r_en),
            loads.eq(~self.r_rdy | self.r_en),
        ]
        one, two = Mux(counted, filled[1], filled[0]), Mux(counted, filled[2], filled[1])  # so many are there at least
        m.d.sync += [self.r_rdy.eq(self.w_en | Mux(reads, two, one)), counted.eq(reads)]
        with m.If(self.w_en):
            m.d.sync += write.addr.eq(write.addr + 1)
        with m.If(loads):
            m.d.sync += [self.r_data.eq(Mux(two, read.data, self.w_data)), read.addr.eq(read.addr + (two | self.w_en))]
        with m.If(self.w_en & ~counted):
            m.d.sync += filled.eq(Cat(Const(1, 1), filled[:-1]))
        with m.If(counted & ~self.w_en):
            m.d.sync += filled.eq(Cat(filled[1:], Const(0, 1)))
        return m
