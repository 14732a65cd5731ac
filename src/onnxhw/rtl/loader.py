"""The bridge between the frames of `onnxhw.isa.link` and the core's host port.

A frame is collected, checked, performed and answered before the next one is looked at. Payload waits
in a buffer until the CRC over the whole frame has been checked, so that noise never writes anything.
"""

from enum import IntEnum
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import crc, stream, wiring
from amaranth.lib.wiring import In, Out

from ..isa.link import HEADER_BYTES, MAX_WORDS, REPLY, VERSION, Command, Info, Status
from ..isa.memory import Space
from .cells import BlockRam
from .cobs import CobsDecoder, CobsEncoder
from .uart import Received

WRITABLE = tuple(space for space in Space if space != Space.EXTERNAL)
"""Address spaces that a core without external memory has."""
READABLE = (Space.CONTROL, Space.ACT)
"""Address spaces that `Core` answers reads of."""
HEADER_WORDS = HEADER_BYTES // 4


class Part(IntEnum):
    """Parts of an answer, in the order in which they are sent."""

    HEAD = 0
    REST = 1
    DATA = 2
    CRC = 3


class Collected:
    """The frame that has arrived: its last word, how many words, and what is known of it, a register for each fact."""

    def __init__(self) -> None:
        self.word = Signal(32)
        """The last four bytes; at the end of a frame, its CRC."""
        self.lane = Signal(2)
        self.index = Signal(8)
        """Words so far; later the next word of the payload."""
        self.too_long = Signal()
        self.arrived = Signal()
        self.any_byte = Signal()
        self.whole = Signal()
        self.head = Signal(32)
        self.rest = Signal(32)
        self.is_read = Signal()
        self.is_write = Signal()
        self.is_info = Signal()
        self.writable = Signal()
        self.readable = Signal()
        self.length = Signal(8)
        self.intact = Signal()
        self.formed = Signal()
        self.blocked = Signal()
        self.repeated = Signal()

    @property
    def kind(self) -> Any:
        """Command and version."""
        return self.head[0:8]

    @property
    def seq(self) -> Any:
        return self.head[8:16]

    @property
    def space(self) -> Any:
        return self.head[16:24]

    @property
    def address(self) -> Any:
        return self.rest[0:24]

    @property
    def count(self) -> Any:
        return self.rest[24:32]


class Performed:
    """The last intact WRITE, which is not performed again, and the answer under way."""

    def __init__(self) -> None:
        self.last_crc = Signal(32)
        self.last_seq = Signal(8)
        self.last_valid = Signal()
        self.status = Signal(Status)
        self.out = Signal(32)
        self.out_lane = Signal(2)
        self.part = Signal(Part)
        self.left = Signal(8)
        """Words of the payload that are still to be written or sent."""


class Loader(wiring.Component):
    """Performs the commands that arrive on `i` at the core and answers on `o`.

    * A frame that does not decode, or whose CRC or length is wrong, is dropped and answered with
      BAD_FRAME; after the next zero byte the loader listens again. Nothing was written.
    * A WRITE takes one cycle per word; a READ one host access per word, one after the other.
    * The last WRITE sent again, with the same sequence number and no other intact frame between, is acknowledged
      and not performed: a lost acknowledgement never starts a run twice.
    * Spaces that the core does not have, or cannot read, are answered with BAD_COMMAND.
    * While `running`, spaces other than CONTROL are answered with BUSY.

    Members
    -------
    i, o : streams of the line's bytes. `o` is buffered: the answer never delays the next command
        by more than its own length in cycles.
    host_space, host_addr, ... : to the ports of `Core` of the same names. `host_wstrb` is all ones.
    running : In(1), from the core.
    busy : Out(1), a command is being performed.
    bad_frame : Out(1), one cycle for each frame that was dropped.
    """

    def __init__(self, info: Info) -> None:
        self.info = info
        super().__init__(
            {
                "i": In(stream.Signature(Received)),
                "o": Out(stream.Signature(8)),
                "host_space": Out(4),
                "host_addr": Out(24),
                "host_wdata": Out(32),
                "host_wstrb": Out(4),
                "host_we": Out(1),
                "host_re": Out(1),
                "host_rdata": In(32),
                "host_rvalid": In(1),
                "running": In(1),
                "busy": Out(1),
                "bad_frame": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.encoder = encoder = CobsEncoder()
        m.submodules.crc = check = crc.catalog.CRC32_ISCSI().create()
        m.submodules.buffer = buffer = BlockRam(width=32, depth=256)
        words = tuple(self.info.to_words())
        depth = 1 << (len(words) - 1).bit_length()
        m.submodules.description = description = BlockRam(width=32, depth=depth, init=words, name="description")
        wiring.connect(m, wiring.flipped(self.i), decoder.i)
        wiring.connect(m, encoder.o, wiring.flipped(self.o))

        frame, answer = Collected(), Performed()
        self._store(m, frame, buffer)
        write_1 = self._host_port(m, frame, buffer, description)
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("LISTEN"))
            self._listen(m, frame, decoder.o, check)
            self._judge(m, frame, answer, check)
            self._decide(m, frame, answer)
            self._write(m, frame, answer, write_1)
            self._send(m, frame, answer, check, encoder.i)
            self._proceed(m, frame, answer, check)
            self._fetch(m, frame, answer, description)
        return m

    def _store(self, m: Module, frame: Collected, buffer: BlockRam) -> None:
        """Whole words go into the buffer; the two words of the header into registers, too."""
        m.d.sync += frame.arrived.eq(0)
        m.d.comb += [buffer.w_addr.eq(frame.index), buffer.w_data.eq(frame.word), buffer.w_en.eq(frame.arrived)]
        with m.If(frame.arrived):
            m.d.sync += frame.index.eq(frame.index + 1)
            with m.Switch(frame.index):
                with m.Case(0):
                    m.d.sync += frame.head.eq(frame.word)
                with m.Case(1):
                    m.d.sync += frame.rest.eq(frame.word)
                with m.Case(0xFF):
                    m.d.sync += frame.too_long.eq(1)

    def _host_port(self, m: Module, frame: Collected, buffer: BlockRam, description: BlockRam) -> Signal:
        """The host port. State WRITE sets the signal returned; a word is written two cycles after its turn there."""
        write_1 = Signal()
        m.d.sync += [write_1.eq(0), self.host_we.eq(write_1), self.host_re.eq(0)]
        m.d.comb += [self.host_wdata.eq(buffer.r_data), self.host_wstrb.eq(0xF), buffer.r_addr.eq(frame.index)]
        m.d.comb += description.r_addr.eq(self.host_addr[: len(description.r_addr)])
        with m.If(self.host_we):
            m.d.sync += self.host_addr.eq(self.host_addr + 1)
        return write_1

    # -- states: each adds its own to the FSM ------------------------------------------------------

    def _listen(self, m: Module, frame: Collected, bytes_: Any, check: Any) -> None:
        """Bytes to words and through the CRC, until a frame ends that has any."""
        item = bytes_.payload
        with m.State("LISTEN"):
            m.d.comb += [bytes_.ready.eq(1), check.data.eq(item.data)]
            with m.If(bytes_.valid & ~item.end):
                m.d.comb += check.valid.eq(1)
                m.d.sync += [frame.word.eq(Cat(frame.word[8:], item.data)), frame.lane.eq(frame.lane + 1)]
                m.d.sync += [frame.arrived.eq(frame.lane == 3), frame.any_byte.eq(1)]
            with m.If(bytes_.valid & item.end):
                m.d.sync += frame.whole.eq(item.good & (frame.lane == 0) & ~frame.too_long)
                with m.If(frame.any_byte):
                    m.next = "CHECK"

    def _judge(self, m: Module, frame: Collected, answer: Performed, check: Any) -> None:
        """What the frame is, in two cycles."""
        command, count, space = frame.kind[:4], frame.count, frame.space
        with m.State("CHECK"):
            m.d.sync += [
                frame.is_read.eq(command == Command.READ),
                frame.is_write.eq(command == Command.WRITE),
                frame.is_info.eq(command == Command.INFO),
                frame.writable.eq(_is_one_of(space, WRITABLE)),
                frame.readable.eq(_is_one_of(space, READABLE)),
                frame.intact.eq(frame.whole & check.match_detected & ~frame.too_long),
                frame.length.eq(HEADER_WORDS + 1 + Mux(command == Command.WRITE, count, 0)),
                frame.formed.eq((frame.kind[4:] == VERSION) & (count <= MAX_WORDS)),
                frame.blocked.eq(self.running & (space != Space.CONTROL)),
                frame.repeated.eq(answer.last_valid & (answer.last_crc == frame.word) & (answer.last_seq == frame.seq)),
            ]
            m.next = "JUDGE"

        with m.State("JUDGE"):
            known = frame.is_info | (frame.is_read & frame.readable) | (frame.is_write & frame.writable)
            m.d.sync += [
                frame.formed.eq(frame.formed & known & (frame.length == frame.index)),
                frame.blocked.eq(frame.blocked & ~frame.is_info),
                frame.repeated.eq(frame.repeated & frame.is_write),
            ]
            m.next = "DECIDE"

    def _decide(self, m: Module, frame: Collected, answer: Performed) -> None:
        """Refuse, write, or go on to the answer; only an intact command that is performed is remembered."""
        status, left = answer.status, answer.left
        with m.State("DECIDE"):
            m.d.sync += [self.host_space.eq(frame.space), self.host_addr.eq(frame.address), left.eq(0)]
            m.d.sync += [status.eq(Status.OK), frame.index.eq(HEADER_WORDS)]
            m.next = "ANSWER"
            with m.If(~frame.intact):
                m.d.comb += self.bad_frame.eq(1)
                m.d.sync += [status.eq(Status.BAD_FRAME), frame.head.eq(0), frame.rest.eq(0)]
            with m.Elif(~frame.formed):
                m.d.sync += [status.eq(Status.BAD_COMMAND), answer.last_valid.eq(0)]
            with m.Elif(frame.blocked):
                m.d.sync += [status.eq(Status.BUSY), answer.last_valid.eq(0)]
            with m.Else():
                m.d.sync += answer.last_valid.eq(frame.is_write)
                m.d.sync += [answer.last_crc.eq(frame.word), answer.last_seq.eq(frame.seq)]
                m.d.sync += left.eq(frame.count)
                with m.If(frame.is_write & (frame.repeated | (frame.count == 0))):
                    m.d.sync += left.eq(0)
                with m.Elif(frame.is_write):
                    m.next = "WRITE"

    def _write(self, m: Module, frame: Collected, answer: Performed, write_1: Signal) -> None:
        """A word per cycle."""
        with m.State("WRITE"):
            m.d.sync += [write_1.eq(1), frame.index.eq(frame.index + 1), answer.left.eq(answer.left - 1)]
            with m.If(answer.left == 1):
                m.next = "ANSWER"

    def _send(self, m: Module, frame: Collected, answer: Performed, check: Any, encoder: Any) -> None:
        """The answer's first word; then, for each word in `out`, its bytes."""
        out, out_lane = answer.out, answer.out_lane
        with m.State("ANSWER"):
            m.d.comb += check.start.eq(1)
            m.d.sync += out.eq(Cat(frame.kind | REPLY, frame.seq, answer.status, Const(0, 14)))
            m.d.sync += answer.part.eq(Part.HEAD)
            m.next = "SEND"

        with m.State("SEND"):
            m.d.comb += [
                encoder.valid.eq(1),
                encoder.payload.data.eq(out[:8]),
                encoder.payload.last.eq((answer.part == Part.CRC) & (out_lane == 3)),
                check.data.eq(out[:8]),
                check.valid.eq(encoder.ready),
            ]
            with m.If(encoder.ready):
                m.d.sync += [out.eq(out[8:]), out_lane.eq(out_lane + 1)]
                with m.If(out_lane == 3):
                    m.next = "NEXT"

    def _proceed(self, m: Module, frame: Collected, answer: Performed, check: Any) -> None:
        """After a word: the second one of the header, then the payload, then the CRC, then the next frame."""
        out, part, left = answer.out, answer.part, answer.left
        with m.State("NEXT"):
            with m.If(part == Part.HEAD):
                m.d.sync += [out.eq(Cat(frame.address, left)), part.eq(Part.REST)]
                m.next = "SEND"
            with m.Elif(part == Part.CRC):
                m.d.sync += [frame.lane.eq(0), frame.index.eq(0), frame.too_long.eq(0), frame.any_byte.eq(0)]
                m.d.comb += check.start.eq(1)
                m.next = "LISTEN"
            with m.Elif(left == 0):
                m.d.sync += [out.eq(check.crc), part.eq(Part.CRC)]
                m.next = "SEND"
            with m.Else():
                m.d.sync += [left.eq(left - 1), self.host_re.eq(~frame.is_info)]
                m.next = "FETCH"

    def _fetch(self, m: Module, frame: Collected, answer: Performed, description: BlockRam) -> None:
        """A word of the payload, from the core or from the description of the design."""
        with m.State("FETCH"):
            m.d.sync += answer.part.eq(Part.DATA)
            # The description has been at this address since the word before was sent.
            with m.If(frame.is_info | self.host_rvalid):
                m.d.sync += answer.out.eq(Mux(frame.is_info, description.r_data, self.host_rdata))
                m.d.sync += self.host_addr.eq(self.host_addr + 1)
                m.next = "SEND"


def _is_one_of(number: Any, spaces: tuple[Space, ...]) -> Any:
    return Cat(number == space for space in spaces).any()
