"""`InputRegions`: the table of regions that `InputPort` works through, again for each inference."""

from itertools import pairwise
from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.input_port import REGION_STRIDE, REGION_WORDS, REGIONS
from .cells import primitives_of
from .input_port import regions

PLACES = ("first", "lead", "gap", "row_gap", "tail")


class InputRegions(wiring.Component):
    """A region shows `REGION_CYCLES` cycles after the one before has been taken, up to the final one.

    Members
    -------
    w_addr, w_data, w_en : write a word of the table (`Region.to_words`, `REGION_STRIDE` words each).
    restart : In(1), one cycle: the first region is next.
    over : Out(1), the final one has been taken; no other is shown before a restart.
    o : the regions.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "w_addr": In(bits_for(REGIONS * REGION_STRIDE)),
                "w_data": In(32),
                "w_en": In(1),
                "restart": In(1),
                "over": Out(1, init=1),
                "o": Out(regions(config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # A block RAM takes the last register of `words` for its own.
        style = {"ram_style": primitives_of(platform).region_table}
        m.submodules.table = table = memory.Memory(shape=32, depth=REGIONS * REGION_STRIDE, init=[], attrs=style)
        write, read = table.write_port(), table.read_port(domain="comb")
        m.d.comb += [write.addr.eq(self.w_addr), write.data.eq(self.w_data), write.en.eq(self.w_en)]
        number, index = Signal(range(REGIONS)), Signal(range(REGION_STRIDE))
        words = [Signal(32, name=f"word_{at}", reset_less=True) for at in range(REGION_WORDS)]
        whole = Signal()
        m.d.comb += [read.addr.eq(Cat(index, number)), whole.eq(index == REGION_WORDS)]
        m.d.comb += self.o.valid.eq(whole & ~self.over)
        with m.If(~whole):
            m.d.sync += [index.eq(index + 1), words[-1].eq(read.data)]
            m.d.sync += [word.eq(following) for word, following in pairwise(words)]
        with m.Elif(self.o.ready & ~self.over):
            m.d.sync += [index.eq(0), number.eq(number + 1), self.over.eq(words[1][26])]
        with m.If(self.restart):
            m.d.sync += [index.eq(0), number.eq(0), self.over.eq(0)]

        shown = self.o
        for name, word in zip(PLACES, words, strict=False):
            place = getattr(shown, name)
            m.d.comb += [place.word.eq(word[:16]), place.lane.eq(word[16:24])]
        m.d.comb += [shown.fill.eq(words[0][24:]), shown.fills.eq(words[1][24]), shown.ends.eq(words[1][25])]
        # A run of no byte would take no word: whatever the table says, each word of the stream keeps the port busy for
        # its four bytes, with a gap of the whole memory behind each at most.
        empty = words[5][: len(shown.run)] == 0
        m.d.comb += [shown.run.eq(words[5] | empty), shown.runs.eq(words[6][:16]), shown.rows.eq(words[6][16:])]
        return m
