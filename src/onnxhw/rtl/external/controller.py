"""`Controller`: commands of the external memory, cycle by cycle as `onnxhw.isa.external.SdramTiming` has them."""

from types import SimpleNamespace
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...external import SLOT_COLUMNS, ExternalMemory
from ...isa.external import ALL, INITIAL_REFRESHES, SdramCommand, mode
from .banks import Banks
from .countdown import Countdown
from .segments import Segments, request_shape


def pins(external: ExternalMemory) -> wiring.Signature:
    """The memory's pins as the controller drives and sees them: high is active; its registers are before the pads'."""
    return wiring.Signature({
        "cke": Out(1), "cs": Out(1), "ras": Out(1), "cas": Out(1), "we": Out(1), "dqm": Out(external.data_bits // 8),
        "ba": Out(external.bank_bits), "a": Out(external.address_pins), "dq_o": Out(external.data_bits),
        "dq_oe": Out(1), "dq_i": In(external.data_bits),
    })  # fmt: skip


def host_shape(external: ExternalMemory) -> data.StructLayout:
    """A burst of the host: `count` columns, 1 to 8, of one row, from `address` on."""
    return data.StructLayout({"write": 1, "address": external.address_bits, "count": range(SLOT_COLUMNS + 1)})


def requester(external: ExternalMemory) -> wiring.Signature:
    """The side of `Controller` that a unit of the core uses: its requests, and the columns of either direction."""
    return wiring.Signature({
        "request": Out(stream.Signature(request_shape(external))), "w_data": Out(external.data_bits),
        "w_next": In(1), "r_data": In(external.data_bits), "r_valid": In(1),
    })  # fmt: skip


class Controller(wiring.Component):
    """One SDR SDRAM.

    Members
    -------
    request : stream of `request_shape`.
    w_data : In, the next column to be written, always there; `w_next`: Out(1), it is taken in this cycle.
    r_data, r_valid : Out, columns read, in order, `ExternalMemory.read_latency` cycles after their command.
    host : stream of `host_shape`; a burst is taken with the last cycle of its slot.
    host_w_data, host_w_next, host_r_valid : as `w_data`, `w_next`, `r_valid`, of the host's burst (`r_data` is shared).
    running : In(1), the host waits for slots of refreshes that are due.
    start : In(1), one cycle asks for the sequence that a run begins with; `started`: Out(1), its last cycle.
    clear : In(1), requests are forgotten, but for the column of this cycle and words that are being read.
    initialised : Out(1).
    memory : see `pins`.
    """

    def __init__(self, external: ExternalMemory) -> None:
        self.external = external
        super().__init__({
            "request": In(stream.Signature(request_shape(external))),
            "w_data": In(external.data_bits), "w_next": Out(1), "r_data": Out(external.data_bits), "r_valid": Out(1),
            "host": In(stream.Signature(host_shape(external))), "host_w_data": In(external.data_bits),
            "host_w_next": Out(1), "host_r_valid": Out(1),
            "running": In(1), "clear": In(1), "start": In(1), "started": Out(1), "initialised": Out(1),
            "memory": Out(pins(external)),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external = self.external
        m.submodules.segments = segments = Segments(external)
        m.submodules.banks = banks = Banks(external)
        wiring.connect(m, wiring.flipped(self.request), segments.request)
        self._of_run, self._of_sequence = (
            SimpleNamespace(
                op=Signal(SdramCommand, name=f"op_{of}"), bank=Signal(external.bank_bits, name=f"bank_{of}"),
                address=Signal(external.address_pins, name=f"address_{of}"),
            )
            for of in ("run", "sequence")
        )  # fmt: skip
        """The command of this cycle, in state RUN and in any other."""
        self._of_host, self._in_run, self._enable = Signal(), Signal(), Signal()
        """The command is a column of the host's, which is known a cycle ahead; the state is RUN; and no refresh is due,
        so segments may have commands."""
        self._timer, self._due, self._asked = Signal(range(external.refresh)), Signal(), Signal()
        """Cycles until the next refresh is due; one is due; the start of a run has asked for a sequence."""
        self._before_start, self._again = Countdown(external.sequence, "before_start"), Signal()
        """When its sequence may begin; its first refresh has been."""
        self._before_start.run(m, self.start)
        m.d.comb += segments.clear.eq(self.clear)
        longest = max(external.power_up, external.rp, external.rfc, external.mrd)
        self._wait, self._waited, self._nearly = Signal(range(longest + 1)), Signal(), Signal()
        """Cycles that the state's next command has to wait; there are none left; there is one."""
        self._of_start = Signal()
        m.d.sync += [self._timer.eq(self._timer - 1), self._wait.eq(self._wait - 1), self.started.eq(0)]
        m.d.sync += [self._waited.eq(self._wait == 1), self._nearly.eq(self._wait == 2), self._of_host.eq(0)]
        self._becomes_due = (self._timer == 0) | self._due
        m.d.sync += self._enable.eq(0)
        with m.If(self._timer == 0):
            m.d.sync += [self._timer.eq(external.refresh - 1), self._due.eq(1)]
        with m.If(self.start):
            m.d.sync += self._asked.eq(1)
        with m.FSM():
            self._initialise(m)
            self._run(m, segments, banks)
            self._refresh(m, banks)
            self._slot(m)
        self._give(m, banks)
        return m

    def _wait_for(self, cycles: int) -> list[Any]:
        """Assignments with which the next command comes so many cycles after that of this cycle."""
        return [self._wait.eq(cycles - 1), self._waited.eq(cycles == 1), self._nearly.eq(cycles == 2)]

    def _initialise(self, m: Module) -> None:
        """Power-up: wait, precharge, refresh, write the mode register."""
        external, done, command = self.external, self._waited, self._of_sequence
        left = Signal(range(INITIAL_REFRESHES + 1), init=INITIAL_REFRESHES)
        with m.State("POWER_UP"):
            m.d.sync += self._wait_for(external.power_up + 1)
            m.next = "CLOCK"
        with m.State("CLOCK"), m.If(done):
            m.d.comb += [command.op.eq(SdramCommand.PRECHARGE), command.address.eq(ALL)]
            m.d.sync += self._wait_for(external.rp)
            m.next = "REFRESHES"
        with m.State("REFRESHES"), m.If(done):
            m.d.comb += command.op.eq(SdramCommand.REFRESH)
            m.d.sync += [*self._wait_for(external.rfc), left.eq(left - 1)]
            with m.If(left == 1):
                m.next = "MODE"
        with m.State("MODE"), m.If(done):
            m.d.comb += [command.op.eq(SdramCommand.MODE), command.address.eq(mode(external))]
            m.d.sync += self._wait_for(external.mrd)
            m.next = "MODE_WAIT"
        with m.State("MODE_WAIT"), m.If(done):
            m.d.sync += [self._timer.eq(external.refresh - 1), self._due.eq(0), self.initialised.eq(1)]
            m.d.sync += self._in_run.eq(1)
            m.next = "RUN"

    def _run(self, m: Module, segments: Segments, banks: Banks) -> None:
        """One command for the current or the next segment, or a sequence begins."""
        current, following = segments.current, segments.following
        m.d.comb += [
            banks.current.eq(current), banks.current_valid.eq(segments.current_valid),
            banks.following.eq(following), banks.following_valid.eq(segments.following_valid),
            banks.current_comes.eq(segments.current_comes), banks.following_comes.eq(segments.following_comes),
            banks.coming.eq(segments.coming), banks.clear.eq(self.clear),
            *(mine.eq(theirs) for mine, theirs in zip(segments.rows, banks.rows, strict=True)),
            segments.step.eq(banks.column),
            segments.current_opened.eq(banks.now & ~banks.now_open),
            segments.following_opened.eq(banks.then & ~banks.then_open),
            banks.enable.eq(self._enable),
        ]  # fmt: skip
        # With nothing under way there is no command that a sequence could displace.
        of_start, begins = segments.idle & self._asked, Signal()
        of_others = self._due | (segments.idle & self.host.valid & ~self.running)
        m.d.comb += begins.eq(Mux(of_start, self._before_start.ready, of_others))
        # There is none of these in a cycle in which a sequence begins. Whether it is a command for the next segment is
        # known last.
        column_or_row = Mux(banks.now_open, Mux(current.match, current.column, 0), current.row)
        m.d.comb += [
            self._of_run.op.eq(Cat(
                (banks.now & banks.now_open) | (banks.then & banks.then_open) | (banks.column & current.write),
                banks.column,
                banks.now | banks.then,
            )),
            self._of_run.bank.eq(Mux(banks.then, following.bank, current.bank)),
            self._of_run.address.eq(Mux(banks.then, Mux(banks.then_open, 0, following.row), column_or_row)),
        ]  # fmt: skip
        with m.State("RUN"):
            m.d.sync += self._enable.eq(~self._becomes_due)
            with m.If(begins):
                m.d.sync += [self._due.eq(self._timer == 0), self._of_start.eq(of_start)]
                m.d.sync += self._in_run.eq(0)
                m.next = "CLOSE"

    def _refresh(self, m: Module, banks: Banks) -> None:
        """The sequence before its slot."""
        external, command = self.external, self._of_sequence
        with m.State("CLOSE"), m.If(banks.closable):
            m.d.comb += banks.close.eq(1)
            m.d.comb += [command.op.eq(SdramCommand.PRECHARGE), command.address.eq(ALL)]
            m.d.sync += self._wait_for(external.rp)
            m.next = "REFRESH"
        with m.State("REFRESH"), m.If(self._waited):
            m.d.comb += command.op.eq(SdramCommand.REFRESH)
            m.d.sync += self._wait_for(external.rfc)
            m.next = "SLOT_WAIT"
            if external.rfc == 1:
                m.next = "SLOT"
            with m.If(self._of_start):
                m.d.sync += [self._timer.eq(external.refresh - 2), self._due.eq(0), self._asked.eq(0)]
                m.d.sync += self._again.eq(~self._again)
                with m.If(~self._again):
                    m.next = "REFRESH"

    def _slot(self, m: Module) -> None:
        """The host's slot: cycle 0 is the one in which all has been waited for."""
        external, host, command = self.external, self.host.payload, self._of_sequence
        cycle, given = Signal(range(external.slot)), Signal(range(SLOT_COLUMNS + 1))
        # A column comes in the next cycle; a burst was there in cycle 0; it is cycle 0; the slot's PRECHARGE comes; its
        # last cycle is there.
        gives, used, opens, closes, ends = Signal(), Signal(), Signal(init=1), Signal(), Signal()
        column = Signal(external.column_bits)
        columns, banks = external.column_bits, external.bank_bits
        bank = host.address[columns : columns + banks]
        with m.State("SLOT_WAIT"), m.If(self._nearly):
            m.next = "SLOT"
        with m.State("SLOT"):
            there, early = Mux(opens, self.host.valid, used), cycle < external.rcd - 1
            m.d.comb += gives.eq(there & (given != host.count) & ~early)
            m.d.sync += [cycle.eq(cycle + 1), opens.eq(0), closes.eq(cycle == external.slot_precharge - 1)]
            m.d.sync += [self._of_host.eq(gives), given.eq(given + gives)]
            with m.If(opens):
                m.d.sync += [used.eq(self.host.valid), column.eq(host.address[:columns])]
                with m.If(self.host.valid):
                    m.d.comb += [command.op.eq(SdramCommand.ACTIVATE), command.bank.eq(bank)]
                    m.d.comb += command.address.eq(host.address[columns + banks :])
            with m.Elif(closes):
                m.d.comb += [command.op.eq(SdramCommand.PRECHARGE), command.address.eq(ALL)]
            with m.Elif(self._of_host):
                m.d.comb += [
                    command.bank.eq(bank),
                    command.op.eq(Mux(host.write, SdramCommand.WRITE, SdramCommand.READ)),
                ]
                m.d.comb += command.address.eq(column)
                m.d.sync += column.eq(column + 1)
            # A register, so that it can have another one far away, before the run's first cycle.
            with m.If(cycle == external.slot - 2):
                m.d.sync += self.started.eq(self._of_start)
            m.d.sync += ends.eq(cycle == external.slot - 2)
            with m.If(ends):
                m.d.comb += self.host.ready.eq(used)
                m.d.sync += [self._of_start.eq(0), cycle.eq(0), given.eq(0), opens.eq(1)]
                m.d.sync += [self._in_run.eq(1), self._enable.eq(~self._becomes_due)]
                m.next = "RUN"

    def _give(self, m: Module, banks: Banks) -> None:
        """The command of this cycle: the output registers, and when its data comes."""
        external, memory = self.external, self.memory
        run, other = self._of_run, self._of_sequence
        m.d.comb += [
            banks.host_read.eq(self._of_host & ~self.host.payload.write),
            self.host_w_next.eq(self._of_host & self.host.payload.write),
            self.w_next.eq(banks.column & banks.current.write),
        ]
        m.d.sync += [
            memory.cke.eq(1),
            memory.cs.eq(1),
            Cat(memory.we, memory.cas, memory.ras).eq(Mux(self._in_run, run.op, other.op)),
            memory.ba.eq(Mux(self._in_run, run.bank, other.bank)),
            memory.a.eq(Mux(self._in_run, run.address, other.address)),
            memory.dqm.eq(Mux(self.initialised, 0, Const(-1, len(memory.dqm)))),
            memory.dq_o.eq(Mux(self._in_run, self.w_data, self.host_w_data)),
            memory.dq_oe.eq(self.w_next | self.host_w_next),
        ]
        reads = Signal(external.read_latency)
        of_host = Signal(external.read_latency)
        read = (banks.column & ~banks.current.write) | banks.host_read
        m.d.sync += [reads.eq(Cat(read, reads)), of_host.eq(Cat(self._of_host, of_host))]
        m.d.comb += [
            self.r_data.eq(memory.dq_i),
            self.r_valid.eq(reads[-1] & ~of_host[-1]),
            self.host_r_valid.eq(reads[-1] & of_host[-1]),
        ]
