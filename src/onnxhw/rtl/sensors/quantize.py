"""`Quantizer`: averages of boxes to words of the input's stream, by the table of the settings."""

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.camera import CHANNELS, SETTINGS_WORDS, TABLE
from ...isa.input_port import LANES
from ..cells import BlockRam
from .average import Averages

Word = data.StructLayout({"word": 32, "last": 1})
"""A word of the stream; `last` of the image."""


class Quantizer(wiring.Component):
    """An entry of the table per average, four of them a word; behind the last one zeros.

    Members
    -------
    i : averages; a pixel takes `CHANNELS` times 3 cycles, and one. Behind a reset comes an image's first.
    o : the words.
    addr : the word of the settings that is wanted, and `data`, that word `BlockRam.latency` cycles later.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Averages)),
                "o": Out(stream.Signature(Word)),
                "addr": Out(range(SETTINGS_WORDS)),
                "data": In(32),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pixel = Signal(Averages, reset_less=True)
        value = pixel.channels[0]
        channel, wait = Signal(range(CHANNELS)), Signal(range(BlockRam.latency + 1))
        taken, bytes_ = Signal(range(LANES)), Signal(32, reset_less=True)
        entry = Signal(8)
        m.d.comb += [
            self.addr.eq(Cat(value[2:], (channel + TABLE // 64)[:3])),
            entry.eq(self.data.word_select(value[:2], 8)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [pixel.eq(self.i.payload), channel.eq(0), wait.eq(0)]
                with m.If(self.i.valid):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == BlockRam.latency):
                    m.d.sync += [wait.eq(0), channel.eq(channel + 1), taken.eq(taken + 1)]
                    m.d.sync += bytes_.word_select(taken, 8).eq(entry)
                    m.d.sync += Cat(pixel.channels[at] for at in range(CHANNELS)).eq(
                        Cat(pixel.channels[at] for at in (*range(1, CHANNELS), 0))
                    )
                    with m.If(channel == CHANNELS - 1):
                        m.next = "TAKE"
                        with m.If(pixel.last & (taken != LANES - 1)):
                            m.next = "PAD"
                    with m.If(taken == LANES - 1):
                        self._give(m, Cat(bytes_[:24], entry), pixel.last & (channel == CHANNELS - 1))
                        m.d.sync += bytes_.eq(0)
            with m.State("PAD"), m.If(~self.o.valid):
                self._give(m, bytes_, 1)
                m.d.sync += [taken.eq(0), bytes_.eq(0)]
                m.next = "TAKE"
        return m

    def _give(self, m: Module, word: Any, last: Any) -> None:
        m.d.sync += [self.o.valid.eq(1), self.o.payload.word.eq(word), self.o.payload.last.eq(last)]
