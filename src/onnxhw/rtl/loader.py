"""The bridge between the frames of `onnxhw.isa.link` and the core's host port.

A frame is collected, checked, performed and answered before the next one is looked at. Payload waits
in a buffer until the CRC over the whole frame has been checked, so that noise never writes anything.
"""

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

        # What has arrived: the last four bytes, how many, and the two words of the header.
        item = decoder.o.payload
        word, lane, index, too_long = Signal(32), Signal(2), Signal(8), Signal()
        arrived, any_byte, whole = Signal(), Signal(), Signal()
        head, rest = Signal(32), Signal(32)
        kind, seq, space, address, count = head[0:8], head[8:16], head[16:24], rest[0:24], rest[24:32]
        m.d.sync += arrived.eq(0)
        m.d.comb += [buffer.w_addr.eq(index), buffer.w_data.eq(word), buffer.w_en.eq(arrived)]
        with m.If(arrived):
            m.d.sync += index.eq(index + 1)
            with m.Switch(index):
                with m.Case(0):
                    m.d.sync += head.eq(word)
                with m.Case(1):
                    m.d.sync += rest.eq(word)
                with m.Case(0xFF):
                    m.d.sync += too_long.eq(1)

        # What is known of the frame, each fact in a register of its own.
        command, is_read, is_write, is_info = kind[:4], Signal(), Signal(), Signal()
        writable, readable = Signal(), Signal()
        length, intact, formed, blocked, repeated = Signal(8), Signal(), Signal(), Signal(), Signal()
        last_crc, last_seq, last_valid = Signal(32), Signal(8), Signal()
        status = Signal(Status)

        out, out_lane, part = Signal(32), Signal(2), Signal(2)
        left = Signal(8)
        HEAD, REST, DATA, CRC = range(4)

        # The host port. A word of the buffer is written two cycles after its turn in state WRITE.
        write_1 = Signal()
        m.d.sync += [write_1.eq(0), self.host_we.eq(write_1), self.host_re.eq(0)]
        m.d.comb += [self.host_wdata.eq(buffer.r_data), self.host_wstrb.eq(0xF), buffer.r_addr.eq(index)]
        m.d.comb += description.r_addr.eq(self.host_addr[: len(description.r_addr)])
        with m.If(self.host_we):
            m.d.sync += self.host_addr.eq(self.host_addr + 1)

        def listen() -> None:
            m.d.sync += [lane.eq(0), index.eq(0), too_long.eq(0), any_byte.eq(0)]
            m.d.comb += check.start.eq(1)
            m.next = "LISTEN"

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("LISTEN"))
            with m.State("LISTEN"):
                m.d.comb += [decoder.o.ready.eq(1), check.data.eq(item.data)]
                with m.If(decoder.o.valid & ~item.end):
                    m.d.comb += check.valid.eq(1)
                    m.d.sync += [word.eq(Cat(word[8:], item.data)), lane.eq(lane + 1)]
                    m.d.sync += [arrived.eq(lane == 3), any_byte.eq(1)]
                with m.If(decoder.o.valid & item.end):
                    m.d.sync += whole.eq(item.good & (lane == 0) & ~too_long)
                    with m.If(any_byte):
                        m.next = "CHECK"

            with m.State("CHECK"):
                m.d.sync += [
                    is_read.eq(command == Command.READ),
                    is_write.eq(command == Command.WRITE),
                    is_info.eq(command == Command.INFO),
                    writable.eq(_is_one_of(space, WRITABLE)),
                    readable.eq(_is_one_of(space, READABLE)),
                    intact.eq(whole & check.match_detected & ~too_long),
                    length.eq(HEADER_WORDS + 1 + Mux(command == Command.WRITE, count, 0)),
                    formed.eq((kind[4:] == VERSION) & (count <= MAX_WORDS)),
                    blocked.eq(self.running & (space != Space.CONTROL)),
                    repeated.eq(last_valid & (last_crc == word) & (last_seq == seq)),
                ]
                m.next = "JUDGE"

            with m.State("JUDGE"):
                m.d.sync += [
                    formed.eq(formed & (is_info | (is_read & readable) | (is_write & writable)) & (length == index)),
                    blocked.eq(blocked & ~is_info),
                    repeated.eq(repeated & is_write),
                ]
                m.next = "DECIDE"

            with m.State("DECIDE"):
                m.d.sync += [self.host_space.eq(space), self.host_addr.eq(address), left.eq(0)]
                m.d.sync += [status.eq(Status.OK), index.eq(HEADER_WORDS)]
                m.next = "ANSWER"
                with m.If(~intact):
                    m.d.comb += self.bad_frame.eq(1)
                    m.d.sync += [status.eq(Status.BAD_FRAME), head.eq(0), rest.eq(0)]
                with m.Elif(~formed):
                    m.d.sync += [status.eq(Status.BAD_COMMAND), last_valid.eq(0)]
                with m.Elif(blocked):
                    m.d.sync += [status.eq(Status.BUSY), last_valid.eq(0)]
                with m.Else():
                    m.d.sync += [last_valid.eq(is_write), last_crc.eq(word), last_seq.eq(seq)]
                    m.d.sync += left.eq(count)
                    with m.If(is_write & (repeated | (count == 0))):
                        m.d.sync += left.eq(0)
                    with m.Elif(is_write):
                        m.next = "WRITE"

            with m.State("WRITE"):
                m.d.sync += [write_1.eq(1), index.eq(index + 1), left.eq(left - 1)]
                with m.If(left == 1):
                    m.next = "ANSWER"

            with m.State("ANSWER"):
                m.d.comb += check.start.eq(1)
                m.d.sync += out.eq(Cat(kind | REPLY, seq, status, Const(0, 14)))
                m.d.sync += part.eq(HEAD)
                m.next = "SEND"

            with m.State("SEND"):
                m.d.comb += [
                    encoder.i.valid.eq(1),
                    encoder.i.payload.data.eq(out[:8]),
                    encoder.i.payload.last.eq((part == CRC) & (out_lane == 3)),
                    check.data.eq(out[:8]),
                    check.valid.eq(encoder.i.ready),
                ]
                with m.If(encoder.i.ready):
                    m.d.sync += [out.eq(out[8:]), out_lane.eq(out_lane + 1)]
                    with m.If(out_lane == 3):
                        m.next = "NEXT"

            with m.State("NEXT"):
                with m.If(part == HEAD):
                    m.d.sync += [out.eq(Cat(address, left)), part.eq(REST)]
                    m.next = "SEND"
                with m.Elif(part == CRC):
                    listen()
                with m.Elif(left == 0):
                    m.d.sync += [out.eq(check.crc), part.eq(CRC)]
                    m.next = "SEND"
                with m.Else():
                    m.d.sync += [left.eq(left - 1), self.host_re.eq(~is_info)]
                    m.next = "FETCH"

            with m.State("FETCH"):
                m.d.sync += part.eq(DATA)
                # The description has been at this address since the word before was sent.
                with m.If(is_info | self.host_rvalid):
                    m.d.sync += out.eq(Mux(is_info, description.r_data, self.host_rdata))
                    m.d.sync += self.host_addr.eq(self.host_addr + 1)
                    m.next = "SEND"
        return m


def _is_one_of(number: Any, spaces: tuple[Space, ...]) -> Any:
    return Cat(number == space for space in spaces).any()
