"""Frames of `onnxhw.isa.link` in gateware: `FrameCollector` from bytes, `FrameSender` to bytes."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import crc, data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.link import ANSWER_WORDS, FIFO_BYTES
from ..cells import BlockRam
from .cobs import CobsDecoder, CobsEncoder
from .fifo import ByteFifo
from .uart import Received

BUFFER_WORDS = 256
Word = data.StructLayout({"word": 32, "last": 1})
"""A word of a frame to be sent; `last` before its CRC."""


class FrameCollector(wiring.Component):
    """Collects a frame and holds it until it is taken, while what follows waits in a `ByteFifo`.

    Empty frames are passed over. One byte every four cycles.

    Members
    -------
    i : stream of the line's bytes.
    free : Out(8), free bytes of the input in units of 16.
    held : Out(1), a frame is there: the other members describe it.
    take : In(1), one cycle ends that.
    intact : Out(1), it decoded to whole words, and the CRC is right.
    head, rest : Out(32), its first two words (`rest` is 0 if there is no second).
    length : Out(8), its words, with the CRC.
    r_addr, r_data : its words, two cycles later; from `BUFFER_WORDS` on those that were kept.
    keep_addr, keep_data, keep_we : write a word to be kept, while a frame is held or a cycle later.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Received)),
                "free": Out(8),
                "held": Out(1),
                "take": In(1),
                "intact": Out(1),
                "head": Out(32),
                "rest": Out(32),
                "length": Out(8),
                "r_addr": In(9),
                "r_data": Out(32),
                "keep_addr": In(8),
                "keep_data": In(32),
                "keep_we": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifo = fifo = ByteFifo(depth=FIFO_BYTES, role="link_input")
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.crc = check = crc.catalog.CRC32_ISCSI().create()
        m.submodules.buffer = buffer = BlockRam(width=32, depth=BUFFER_WORDS + ANSWER_WORDS, role="link_frame")
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        wiring.connect(m, fifo.o, decoder.i)
        m.d.comb += self.free.eq(fifo.free)

        word, lane, arrived = Signal(32), Signal(2), Signal()
        any_byte, too_long, whole = Signal(), Signal(), Signal()
        m.d.sync += arrived.eq(0)
        # Written a cycle late; nobody reads a word that soon.
        m.d.sync += [
            buffer.w_addr.eq(Mux(self.keep_we, Cat(self.keep_addr, 1), self.length)),
            buffer.w_data.eq(Mux(self.keep_we, self.keep_data, word)),
            buffer.w_en.eq(arrived | self.keep_we),
        ]
        m.d.comb += [buffer.r_addr.eq(self.r_addr), self.r_data.eq(buffer.r_data)]
        with m.If(arrived):
            m.d.sync += self.length.eq(self.length + 1)
            with m.Switch(self.length):
                with m.Case(0):
                    m.d.sync += self.head.eq(word)
                with m.Case(1):
                    m.d.sync += self.rest.eq(word)
                with m.Case(BUFFER_WORDS - 1):
                    m.d.sync += too_long.eq(1)

        item = decoder.o.payload
        m.d.comb += check.data.eq(item.data)
        with m.FSM():
            with m.State("LISTEN"):
                m.d.comb += decoder.o.ready.eq(1)
                with m.If(decoder.o.valid & ~item.end):
                    m.d.comb += check.valid.eq(1)
                    m.d.sync += [word.eq(Cat(word[8:], item.data)), lane.eq(lane + 1)]
                    m.d.sync += [arrived.eq(lane == 3), any_byte.eq(1)]
                with m.If(decoder.o.valid & item.end):
                    m.d.sync += whole.eq(item.good & (lane == 0))
                    with m.If(any_byte):
                        m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [self.intact.eq(whole & check.match_detected & ~too_long), self.held.eq(1)]
                m.next = "HOLD"
            with m.State("HOLD"), m.If(self.take):
                m.d.sync += [lane.eq(0), any_byte.eq(0), too_long.eq(0), self.held.eq(0)]
                m.d.sync += [self.length.eq(0), self.rest.eq(0)]
                m.d.comb += check.start.eq(1)
                m.next = "LISTEN"
        return m


SETTLED = 20
"""From a frame's last word until the encoder has all of it. The next frame is not looked at sooner: its header alone
takes longer to be collected."""


class FrameSender(wiring.Component):
    """Sends the words of `i`, each frame with its CRC behind, COBS-coded and delimited.

    Members
    -------
    i : stream of `Word`; five cycles per word while there is room in the encoder's buffer.
    o : stream of the line's bytes.
    idle : Out(1), nothing waits to be sent; right from `SETTLED` cycles after a frame's last word on.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(Word)), "o": Out(stream.Signature(8)), "idle": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.encoder = encoder = CobsEncoder(role="link_reply")
        m.submodules.crc = check = crc.catalog.CRC32_ISCSI().create()
        wiring.connect(m, encoder.o, wiring.flipped(self.o))

        # A register before the bytes: words come from afar, of several sources, while those before are sent.
        given, offered = Signal(Word), Signal()
        m.d.comb += self.i.ready.eq(~offered)
        with m.If(self.i.ready):
            m.d.sync += [given.eq(self.i.payload), offered.eq(self.i.valid)]
        word, lane, last, closing = Signal(32), Signal(2), Signal(), Signal()
        sending = Signal()  # state BYTES, in a register of its own: it enables registers here and of the encoder
        # Bytes are counted into the CRC a cycle late: that the encoder takes one is known late in a cycle.
        counted, byte = Signal(), Signal(8)
        m.d.sync += [counted.eq(0), byte.eq(word[:8])]
        m.d.comb += [
            encoder.i.valid.eq(sending),
            encoder.i.payload.data.eq(word[:8]),
            encoder.i.payload.last.eq(closing & (lane == 3)),
            check.data.eq(byte),
            check.valid.eq(counted),
        ]
        with m.If(sending & encoder.i.ready):
            m.d.sync += [word.eq(word[8:]), lane.eq(lane + 1), counted.eq(~closing), sending.eq(lane != 3)]
        with m.FSM() as fsm:
            m.d.sync += self.idle.eq(fsm.ongoing("WORD") & encoder.empty)
            with m.State("WORD"):
                m.d.sync += [word.eq(given.word), last.eq(given.last)]
                with m.If(offered):
                    m.d.sync += [offered.eq(0), sending.eq(1)]
                    m.next = "BYTES"
            with m.State("BYTES"), m.If(encoder.i.ready & (lane == 3)):
                m.next = "WORD"
                with m.If(closing):
                    m.next = "CLOSE"
                with m.Elif(last):
                    m.next = "COUNTED"
            with m.State("COUNTED"):
                m.next = "CRC"
            with m.State("CRC"):
                m.d.sync += [word.eq(check.crc), closing.eq(1), sending.eq(1)]
                m.next = "BYTES"
            with m.State("CLOSE"):
                m.d.comb += check.start.eq(1)
                m.d.sync += closing.eq(0)
                m.next = "WORD"
        return m
