"""`Banks`: which rows are open, and what each bank allows in this cycle."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...external import ExternalMemory
from .countdown import Countdown
from .segments import segment_shape


class Bank:
    """One bank: whether a row is open, and from when on what may come."""

    def __init__(self, external: ExternalMemory, number: int) -> None:
        self.open = Signal(name=f"open_{number}")
        self.command = Countdown(max(external.rcd, external.rp), f"command_{number}")
        """Until a column may come, or ACTIVATE if no row is open."""
        self.active = Countdown(external.ras, f"active_{number}")
        self.written = Countdown(external.wr, f"written_{number}")
        self.ready = Signal(init=1, name=f"ready_{number}")
        """A row's command may come: PRECHARGE if one is open, else ACTIVATE. What it will be is worked out a cycle
        ahead."""

    def row_command(self, segment: Any) -> Value:
        """ACTIVATE or PRECHARGE may come for a segment of this bank."""
        return self.ready & ~(self.open & segment.match)


class Banks(wiring.Component):
    """Chooses the command for the current or the next segment by the rules of the banks, and keeps these rules.

    What decides is worked out bank by bank, so that little logic lies between a bank's registers and what becomes of
    them. The host's slot is not seen here: it begins and ends with all banks closed, and lasts longer than any rule.

    Members
    -------
    current, following, current_valid, following_valid : In, of `Segments`.
    enable : In(1), a command may be given in this cycle.
    now, then, column : Out(1), it is a row's command for the current or the next segment, or a column.
    now_open, then_open : Out(1), the segment's bank has an open row.
    rows : Out, by bank: the row that was opened last.
    close : In(1), all banks are precharged in this cycle; `closable` : Out(1), they may be.
    host_read : In(1), a column is read for the host in this cycle.
    """

    def __init__(self, external: ExternalMemory) -> None:
        self.external = external
        shape = segment_shape(external)
        super().__init__({
            "current": In(shape), "current_valid": In(1), "following": In(shape), "following_valid": In(1),
            "enable": In(1), "now": Out(1), "then": Out(1), "column": Out(1), "now_open": Out(1), "then_open": Out(1),
            "rows": Out(external.row_bits).array(external.banks), "close": In(1), "closable": Out(1),
            "host_read": In(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external, current, following = self.external, self.current, self.following
        banks = [Bank(external, number) for number in range(external.banks)]
        between, turn = Countdown(external.rrd, "between"), Countdown(external.turn, "turn")
        for countdown in (between, turn, *(c for bank in banks for c in (bank.command, bank.active, bank.written))):
            countdown.run(m)

        def of(segment: Any, values: list[Value]) -> Value:
            return (segment.hot & Cat(values)).any()

        now, then, column = Signal(), Signal(), Signal()
        both = self.current_valid & self.following_valid & (current.bank != following.bank)
        m.d.comb += [
            self.now_open.eq(of(current, [bank.open for bank in banks])),
            self.then_open.eq(of(following, [bank.open for bank in banks])),
            now.eq(self.current_valid & of(current, [bank.row_command(current) for bank in banks])),
            then.eq(both & of(following, [bank.row_command(following) for bank in banks])),
            column.eq(  # never with `now`: the row is open
                self.current_valid & current.match & (~current.write | turn.ready)
                & of(current, [bank.open & bank.command.ready for bank in banks])
            ),
            self.now.eq(self.enable & now),
            self.then.eq(self.enable & ~now & then),
            self.column.eq(self.enable & ~then & column),
            self.closable.eq(Cat(bank.ready | ~bank.open for bank in banks).all()),
        ]  # fmt: skip
        activate = Signal()
        m.d.comb += activate.eq((self.now & ~self.now_open) | (self.then & ~self.then_open))
        with m.If(activate):
            m.d.sync += between.start(external.rrd)
        with m.If((self.column & ~current.write) | self.host_read):
            m.d.sync += turn.start(external.turn)
        # A row is noted a cycle late: its segment is the same then, and no segment of another one is cut before.
        of_current = Signal()
        m.d.sync += of_current.eq(self.now)
        row = Mux(of_current, current.row, following.row)
        for number, bank in enumerate(banks):
            touched, opened = (self.now & current.hot[number]) | (self.then & following.hot[number]), Signal()
            between_ends = Mux(activate, external.rrd == 1, between.ends)
            m.d.sync += [
                bank.ready.eq(Mux(bank.open, bank.active.ends & bank.written.ends, bank.command.ends & between_ends)),
                opened.eq(touched & ~bank.open),
            ]
            with m.If(touched):
                m.d.sync += bank.open.eq(~bank.open)
                with m.If(bank.open):
                    m.d.sync += [*bank.command.start(external.rp), bank.ready.eq((external.rp == 1) & between.ends)]
                with m.Else():
                    m.d.sync += [*bank.command.start(external.rcd), *bank.active.start(external.ras)]
                    m.d.sync += bank.ready.eq(external.ras == 1)
            with m.If(opened):
                m.d.sync += self.rows[number].eq(row)
            with m.If(self.close):
                m.d.sync += bank.open.eq(0)
            with m.If(self.column & current.write & current.hot[number]):
                m.d.sync += [*bank.written.start(external.wr), bank.ready.eq(bank.active.ends & (external.wr == 1))]
        return m
