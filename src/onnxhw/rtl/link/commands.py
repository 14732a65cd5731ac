"""The bridge between the frames of `onnxhw.isa.link` and the core's host port.

A frame is collected, checked, performed and answered before the next one is looked at. Payload waits
in a buffer until the CRC over the whole frame has been checked, so that noise never writes anything.
"""

from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import crc, memory, wiring
from amaranth.lib import stream as streams
from amaranth.lib.wiring import In, Out

from ...isa.link import SEND_WINDOW, Command, Info, Register, Status, commit_words
from ...isa.memory import Control, Space
from ..cells import BlockRam
from .checks import HEADER_WORDS, FrameChecks
from .frames import FrameCollector, FrameSender
from .input_stream import begin, stream
from .state import LinkState
from .uart import Received
from .verdict import FrameVerdict, decide


class CommandEngine(wiring.Component):
    """Performs the commands that arrive on `i` at the core and answers on `o`.

    * A frame that does not decode, or whose CRC or length is wrong, is dropped, and answered with BAD_FRAME if no
      answer is on its way. After the next zero byte the loader listens again. Nothing was written.
    * Commands of the session are performed once and in order: the number that is due is performed, a
      recent one acknowledged (reads with the words that they have brought, as long as these are kept), any other
      answered with SEQUENCE, once.
    * RUN needs a complete program: COMMIT after writes whose CRC is the one it brings, or `baked`. It begins once the
      inputs are complete, or at once if it says so. With external memory there is an image besides, which outlives
      other programs; a run with moves that is `stopped` leaves no program.
    * While `running`, a WRITE to ACT, INPUT or EXTERNAL_INPUT waits for `input_free`, a POLL of the end for that, and
      everything behind them; other commands that need a memory of the core are answered with BUSY.
    * A WRITE takes eight cycles per word (its CRC is accumulated), more where the run writes the bank; to INPUT one,
      while the port keeps up, and until all of them are in their places; to EXTERNAL until its last is in the memory.
      A READ takes one host access per word.

    Members
    -------
    i, o : streams of the line's bytes. Both are buffered.
    host_space, host_addr, ... : to the ports of `Core` of the same names. `host_wstrb` is all ones. What comes from
        there is looked at a cycle late, from registers, but for words of input, which `host_waiting` stops at once.
    host_last : Out(1), of a device with external memory: see `SdramHostPort`.
    stopped : In(1), of such a device: see `Core`.
    running, input_free, input_busy, input_over : In(1), from the core.
    baked : In(1), one cycle tells that the memories hold a complete program.
    loaded : Out(1), a complete program is there.
    busy : Out(1), a command is being performed.
    bad_frame : Out(1), one cycle for each frame that was dropped.
    """

    def __init__(self, info: Info) -> None:
        self.info = info
        more = {"host_last": Out(1), "stopped": In(1)} if info.external else {}
        super().__init__(
            {
                "i": In(streams.Signature(Received)),
                "o": Out(streams.Signature(8)),
                "host_space": Out(4),
                "host_addr": Out(24),
                "host_wdata": Out(32),
                "host_wstrb": Out(4),
                "host_we": Out(1),
                "host_re": Out(1),
                "host_rdata": In(32),
                "host_rvalid": In(1),
                "host_waiting": In(1),
                "input_busy": In(1),
                "input_over": In(1),
                "running": In(1),
                "input_free": In(1),
                "baked": In(1),
                "loaded": Out(1),
                "busy": Out(1),
                "bad_frame": Out(1),
                **more,
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.collector = frame = FrameCollector()
        m.submodules.sender = sender = FrameSender()
        m.submodules.answers = answers = memory.Memory(shape=32, depth=SEND_WINDOW, init=[])
        m.submodules.load_crc = load_crc = crc.catalog.CRC32_ISCSI().create()
        words = tuple(self.info.to_words())
        depth = 1 << (len(words) - 1).bit_length()
        m.submodules.description = description = BlockRam(
            width=32, depth=depth, init=words, name="description", role="link_description"
        )
        wiring.connect(m, wiring.flipped(self.i), frame.i)
        wiring.connect(m, sender.o, wiring.flipped(self.o))

        checks, state = FrameChecks(self.info.external), LinkState(self.info.external)
        arrives, one = Signal(), ~checks.command[Command.RESET]
        for name in ("running", "input_free", "input_over", "host_waiting", "host_rvalid", "host_rdata"):
            m.d.sync += getattr(state, name).eq(getattr(self, name))
        m.d.sync += [arrives.eq(state.read), self.host_we.eq(arrives), self.host_re.eq(0)]
        m.d.sync += [state.clears.eq(0), state.forgets.eq(0), state.restarts.eq(0)]
        m.d.comb += [
            self.host_wdata.eq(Cat(Mux(state.first, one, frame.r_data[0]), frame.r_data[1:])),
            self.host_wstrb.eq(0xF),
            self.loaded.eq(state.loaded),
            load_crc.start.eq(state.clears),
            frame.r_addr.eq(Mux(state.again, Cat(state.kept, 1), state.index)),
        ]
        # The core's answer takes longer than any of these: a register on the way does not matter.
        own, where = Signal(32), Signal.like(description.r_addr)
        m.d.sync += [own.eq(self._registers(state, load_crc)), where.eq(self.host_addr)]
        m.d.comb += description.r_addr.eq(where)
        if self.info.external:
            m.d.comb += self.host_last.eq((state.left == 1) | (state.step != 0))
            with m.If(self.stopped):
                m.d.sync += state.loaded.eq(0)
        self._aim(m, frame, checks, state)
        with m.If(self.baked):
            m.d.sync += state.loaded.eq(1)
        with m.If(state.restarts):
            m.d.sync += state.following.eq(0)
        with m.If(state.forgets):
            m.d.sync += [state.complete.eq(0), state.armed.eq(0)]
        one_left = begin(m, state, self)
        m.d.sync += checks.first_word.eq(frame.r_data)

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("LISTEN"))
            self._listen(m, frame, state)
            checks.judge(m, frame, state, load_crc)
            self._decide(m, frame, checks, state, sender, answers)
            self._accept(m, frame, checks, state, load_crc)
            self._write(m, frame, checks, state, load_crc)
            stream(m, state, self, one_left)
            self._answer(m, frame, checks, state, sender)
            self._fetch(m, frame, checks, state, sender, description.r_data, own)
        return m

    def _aim(self, m: Module, frame: Any, checks: FrameChecks, state: LinkState) -> None:
        """Where the next access goes: with what a command names, on behind each access, and to places of its own for
        words of input and the last count of a COMMIT. Registers of one bit tell when, not the FSM: the address lies on
        its way to memories all over the device, far from the FSM."""
        is_ = checks.command
        m.d.sync += [state.decides.eq(0), state.streams.eq(0), state.apart.eq(0)]
        with m.If(self.host_we | state.passes):
            m.d.sync += self.host_addr.eq(self.host_addr + state.step + 1)
        with m.If(state.decides):
            words = is_[Command.READ] | (is_[Command.WRITE] & ~checks.input)
            m.d.sync += [
                state.step.eq(Mux(words, frame.head[20:24], 0)),
                self.host_space.eq(Mux(words, frame.head[16:20], Space.CONTROL)),
                self.host_addr.eq(Control.RUN),
            ]
            with m.If(words | is_[Command.INFO]):
                m.d.sync += self.host_addr.eq(frame.rest[:24])
            with m.If(is_[Command.WRITE] & checks.input):
                m.d.sync += self.host_addr.eq(Control.LATENCY)
            with m.If(is_[Command.COMMIT]):
                m.d.sync += self.host_addr.eq(Control.LOAD_COUNT)
        with m.If(state.streams):
            m.d.sync += [self.host_space.eq(Space.INPUT), self.host_addr.eq(state.reply_address)]
        with m.If(state.apart):
            m.d.sync += self.host_addr.eq(Control.MOVE_COUNT)

    def _registers(self, state: LinkState, load_crc: Any) -> Any:
        """The word of the link's own registers at `host_addr`."""
        if not self.info.external:
            flags = Cat(state.loaded, state.armed, state.complete, Const(0, 13), state.dropped)
            return Mux(self.host_addr[0] == Register.LOAD_CRC, load_crc.crc, flags)
        flags = Cat(state.loaded, state.armed, state.complete, state.image, Const(0, 12), state.dropped)
        return Array([flags, load_crc.crc, state.image_crc, Const(0, 32)])[self.host_addr[:2]]

    # -- states: each adds its own to the FSM ------------------------------------------------------

    def _listen(self, m: Module, frame: Any, state: LinkState) -> None:
        """Wait for a frame."""
        with m.State("LISTEN"):
            m.d.sync += [state.index.eq(HEADER_WORDS), state.phase.eq(0), state.left.eq(0), state.again.eq(0)]
            m.d.sync += state.late.eq(0)
            with m.If(frame.held):
                m.next = "CHECK"

    def _decide(self, m: Module, frame: Any, checks: FrameChecks, state: LinkState, sender: Any, answers: Any) -> None:
        """Refuse it, acknowledge it or perform it; wait, if the run has to go on first.

        `answers` has, for each of the last numbers that are due, the token and where the answer's words are kept.
        """
        write, read = answers.write_port(), answers.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(state.due),
            write.data.eq(Cat(state.token, state.keep)),
            read.addr.eq(frame.head[8:16]),
        ]
        is_, status = checks.command, state.status
        found, early = decide(m, frame, checks, state)
        refusals = {
            FrameVerdict.MALFORMED: Status.BAD_COMMAND,
            FrameVerdict.FOREIGN: Status.NO_SESSION,
            FrameVerdict.MISPLACED: Status.BAD_COMMAND,
            FrameVerdict.BLOCKED: Status.BUSY,
            FrameVerdict.NOT_LOADED: Status.NOT_LOADED,
            FrameVerdict.BAD_LOAD: Status.BAD_LOAD,
        }
        with m.State("DECIDE"):
            m.d.sync += [
                state.kind.eq(frame.head[:7]),
                state.seq.eq(frame.head[8:16]),
                state.reply_address.eq(frame.rest[:24]),
                status.eq(Status.OK),
                state.first.eq(1),
            ]
            m.next = "HEAD"
            for verdict, told in refusals.items():
                with m.If(found[verdict]):
                    m.d.sync += status.eq(told)
            with m.If(found[FrameVerdict.BROKEN]):
                m.d.comb += self.bad_frame.eq(1)
                m.d.sync += state.dropped.eq(state.dropped + 1)
                m.next = "FORGET"
                with m.If(sender.idle):
                    self._call_back(m, state, Status.BAD_FRAME)
            with m.If(found[FrameVerdict.HELLO]):
                m.d.sync += [state.session.eq(frame.head[24:]), state.gap.eq(0), state.seq.eq(state.due)]
                with m.If(~checks.ours):  # another host's: nobody would know of the run, and whose inputs these are
                    self._forget_inputs(m, state)
            with m.If(found[FrameVerdict.INFO]):
                m.d.sync += state.left.eq(frame.rest[24:])
            with m.If(found[FrameVerdict.MISSED]):
                m.next = "FORGET"
                with m.If(~state.gap):
                    self._call_back(m, state, Status.SEQUENCE)
            with m.If(found[FrameVerdict.REPEATED]):
                m.d.sync += [state.left.eq(frame.rest[24:]), state.again.eq(1), state.kept.eq(read.data[24:])]
                m.d.sync += self.host_space.eq(Space.CONTROL)  # which a run does not mind
                with m.If(is_[Command.POLL]):
                    m.d.sync += state.reply_address.eq(read.data[:24])
            with m.If(early):
                m.d.sync += state.late.eq(1)
                m.next = "DECIDE"
            with m.Elif(found[FrameVerdict.PERFORMED]):
                m.d.sync += [state.left.eq(frame.rest[24:]), state.due.eq(state.due + 1), state.gap.eq(0)]
                with m.If(is_[Command.POLL]):
                    m.d.sync += state.reply_address.eq(state.token)
                m.next = "ACCEPT"
                with m.If(is_[Command.READ] | is_[Command.POLL]):
                    m.d.comb += write.en.eq(1)
                    m.d.sync += [state.kept.eq(state.keep), state.keep.eq(state.keep + frame.rest[24:])]
                    m.next = "HEAD"

    @staticmethod
    def _call_back(m: Module, state: LinkState, status: Status) -> None:
        """Tell the host which number is due."""
        m.d.sync += [state.status.eq(status), state.gap.eq(1), state.kind.eq(0), state.seq.eq(state.due)]
        m.d.sync += state.reply_address.eq(0)
        m.next = "HEAD"

    def _accept(self, m: Module, frame: Any, checks: FrameChecks, state: LinkState, load_crc: Any) -> None:
        """What a command changes beside words of memory; RUN and RESET write to Control.RUN."""
        is_ = checks.command
        with m.State("ACCEPT"):
            m.next = "WRITE"
            with m.If(is_[Command.WRITE] & checks.input):
                # The first cycle of STREAM makes an access to INPUT of what follows.
                m.d.sync += [self.host_we.eq(~state.late), state.streams.eq(1)]
                m.d.sync += [state.first.eq(0), state.complete.eq(0)]
                m.d.sync += state.following.eq(frame.rest[:24] + frame.rest[24:])
                m.next = "STREAM"
            with m.Elif(is_[Command.WRITE] & ~checks.data):
                m.d.sync += state.loaded.eq(0)
                self._forget_inputs(m, state)
            with m.If(is_[Command.COMMIT]):
                m.d.sync += [state.loaded.eq(1), state.first.eq(0)]
                m.d.sync += [state.index.eq(HEADER_WORDS + 1), state.left.eq(commit_words(self.info.external) - 1)]
            with m.If(is_[Command.RESET] & frame.rest[0]):
                m.d.sync += [state.clears.eq(1), state.loaded.eq(0)]
            begins = state.complete
            if self.info.external:
                begins = begins | frame.rest[24]
                self._accept_image(m, frame, checks, state, load_crc)
            with m.If(is_[Command.RUN]):
                m.d.sync += [state.token.eq(frame.rest[:24]), state.armed.eq(~begins), state.complete.eq(0)]
                m.d.sync += [self.host_we.eq(begins), state.left.eq(0)]
                m.next = "HEAD"
            with m.If(is_[Command.RESET]):
                m.d.sync += [self.host_we.eq(1), state.left.eq(0)]
                self._forget_inputs(m, state)
                m.next = "HEAD"

    @staticmethod
    def _accept_image(m: Module, frame: Any, checks: FrameChecks, state: LinkState, load_crc: Any) -> None:
        """What commands change of the image of external memory."""
        is_ = checks.command
        with m.If(is_[Command.WRITE] & checks.external & ~checks.data):
            m.d.sync += state.image.eq(0)
        with m.If(is_[Command.RESET] & frame.rest[1]):
            m.d.sync += [state.image.eq(0), state.loaded.eq(0)]
        with m.If(is_[Command.COMMIT] & checks.external):
            m.d.sync += state.clears.eq(1)
            m.d.sync += [state.image.eq(1), state.image_crc.eq(load_crc.crc), state.loaded.eq(0), state.left.eq(0)]
            m.next = "HEAD"

    @staticmethod
    def _forget_inputs(m: Module, state: LinkState) -> None:
        m.d.sync += [state.forgets.eq(1), state.restarts.eq(1)]

    def _write(self, m: Module, frame: Any, checks: FrameChecks, state: LinkState, load_crc: Any) -> None:
        """A word in eight cycles: wait for it, write it, add its bytes to the CRC. Before the first: where to."""
        where = Cat(frame.rest[:24], frame.head[16:24])
        lane = state.phase[:2]
        byte, some = Signal(8), Signal()
        m.d.comb += [load_crc.data.eq(byte), load_crc.valid.eq(some)]
        m.d.sync += [
            byte.eq(Mux(state.first, where.word_select(lane, 8), frame.r_data.word_select(lane, 8))),
            some.eq(0),
        ]
        # A word takes eight cycles, so its number may be compared a cycle late.
        last = Signal()
        m.d.sync += last.eq(state.left == 1)
        with m.State("WRITE"):
            counted = state.phase[2] & checks.command[Command.WRITE] & ~checks.data
            if self.info.external:  # a word of the image waits for its place in the last phase
                counted = counted & ~((state.phase == 7) & state.host_waiting)
            m.d.sync += [state.phase.eq(state.phase + 1), some.eq(counted)]
            with m.If((state.phase == 1) & ~state.first):  # the word comes in the next cycle
                m.d.sync += self.host_we.eq(1)
            if self.info.external:  # the last of the counts stands apart
                m.d.sync += state.apart.eq((state.phase == 0) & checks.command[Command.COMMIT] & (state.left == 1))
            with m.If((state.phase == 7) & state.host_waiting):
                m.d.sync += state.phase.eq(7)
            with m.Elif(state.phase == 7):
                m.d.sync += state.first.eq(0)
                with m.If(~state.first):
                    m.d.sync += [state.index.eq(state.index + 1), state.left.eq(state.left - 1)]
                    with m.If(last):
                        m.next = "HEAD"

    def _answer(self, m: Module, frame: Any, checks: FrameChecks, state: LinkState, sender: Any) -> None:
        """The two words of the header, then the payload; then the next frame."""
        word = sender.i
        with m.State("HEAD"):
            m.d.comb += [
                word.valid.eq(1),
                word.payload.word.eq(
                    Cat(state.kind, Const(1, 1), state.seq, state.status, Const(0, 8 - len(state.status)), frame.free)
                ),
            ]
            with m.If(word.ready):
                m.next = "REST"
        with m.State("REST"):
            m.d.comb += [
                word.valid.eq(1),
                word.payload.word.eq(Cat(state.reply_address, state.left)),
                word.payload.last.eq(state.left == 0),
            ]
            with m.If(word.ready):
                m.next = "FETCH"
                with m.If(state.left == 0):
                    m.next = "FORGET"
        with m.State("FORGET"):
            m.d.comb += frame.take.eq(1)
            m.next = "LISTEN"

    def _fetch(
        self, m: Module, frame: Any, checks: FrameChecks, state: LinkState, sender: Any, description: Any, own: Any
    ) -> None:
        """Words of the payload: from the core, the description of the design, the link's registers, or kept."""
        word = sender.i
        # Kept a cycle late: nobody reads it that soon. From where words come is the same from DECIDE on.
        reads_info, reads_kept, reads_own = Signal(), Signal(), Signal()
        m.d.sync += [
            frame.keep_we.eq(0), frame.keep_addr.eq(state.kept), frame.keep_data.eq(word.payload.word),
            reads_info.eq(checks.command[Command.INFO]), reads_kept.eq(state.again & ~checks.command[Command.INFO]),
            reads_own.eq(checks.registers & checks.command[Command.READ] & ~state.again), state.passes.eq(0),
        ]  # fmt: skip
        with m.State("FETCH"), m.If(word.ready):
            m.d.sync += self.host_re.eq(1)
            m.next = "TAKE"
        # The core answers any read; the sender, which was ready, takes the word in that cycle.
        with m.State("TAKE"):
            m.d.comb += [word.valid.eq(state.host_rvalid), word.payload.last.eq(state.left == 1)]
            with m.If(reads_info):
                m.d.comb += word.payload.word.eq(description)
            with m.Elif(reads_kept):
                m.d.comb += word.payload.word.eq(frame.r_data)
            with m.Elif(reads_own):
                m.d.comb += word.payload.word.eq(own)
            with m.Else():
                m.d.comb += word.payload.word.eq(state.host_rdata)
            m.d.sync += frame.keep_we.eq(state.host_rvalid & ~reads_info & ~reads_kept)
            with m.If(state.host_rvalid):
                m.d.sync += [state.passes.eq(1), state.kept.eq(state.kept + 1), state.left.eq(state.left - 1)]
                m.next = "FETCH"
                with m.If(state.left == 1):
                    m.next = "FORGET"
