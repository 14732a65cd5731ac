"""`Banks`: which rows are open, and what each bank allows in this cycle."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...external import ExternalMemory
from .countdown import Countdown
from .segments import segment_shape


class Bank:
    """One bank: whether a row is open, and from when on what may come."""

    def __init__(self, external: ExternalMemory, number: int) -> None:
        self.open = Signal(name=f"open_{number}")
        self.opened = Countdown(external.rcd, f"opened_{number}")
        """Until a column may come, after ACTIVATE."""
        self.closed = Countdown(external.rp, f"closed_{number}")
        """Until ACTIVATE may come, after PRECHARGE."""
        self.active = Countdown(external.ras, f"active_{number}")
        """Until PRECHARGE may come, after ACTIVATE."""
        self.written = Countdown(external.wr, f"written_{number}")
        """Until PRECHARGE may come, after a column was written."""
        self.closable = Signal(init=1, name=f"closable_{number}")
        """Closed, or may be, if no command came in the cycle before: from a cycle ahead, for the controller asks all
        banks at once, and where it asks no command came."""


class Banks(wiring.Component):
    """Chooses the command for the current or the next segment by the rules of the banks, and keeps these rules.

    What decides is worked out bank by bank, and of the two segments' banks a cycle ahead, so that little logic lies
    between a register and what becomes of it. The host's slot is not seen here: it begins and ends with all banks
    closed, and lasts longer than any rule.

    Members
    -------
    current, following, current_valid, following_valid : In, of `Segments`.
    current_comes, following_comes, coming : In, of `Segments`.
    clear : In(1), of `Segments`.
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
            "current_comes": In(1), "following_comes": In(1), "coming": In(external.bank_bits), "clear": In(1),
            "enable": In(1), "now": Out(1), "then": Out(1), "column": Out(1), "now_open": Out(1), "then_open": Out(1),
            "rows": Out(external.row_bits).array(external.banks), "close": In(1), "closable": Out(1),
            "host_read": In(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external, current, following = self.external, self.current, self.following
        banks = [Bank(external, number) for number in range(external.banks)]
        between, turn = Countdown(external.rrd, "between"), Countdown(external.turn, "turn")

        now, then, column = Signal(), Signal(), Signal()
        # Of each segment's bank: a row is open; and if the segment is there, a row's command may come, or a column.
        now_open, then_open = self.now_open, self.then_open
        now_ready, now_opened, then_ready = (Signal(name=name) for name in ("now_ready", "now_opened", "then_ready"))
        self._now_ready, self._now_opened, self._then_ready = now_ready, now_opened, then_ready
        # Both segments are there, and of two banks.
        apart, both = Signal(), Signal()
        with m.If(self.following_comes):
            m.d.sync += apart.eq(self.coming != current.bank)
        m.d.sync += both.eq(
            ~self.clear & ~self.current_comes
            & Mux(self.following_comes, self.coming != current.bank, self.following_valid & apart)
        )  # fmt: skip
        m.d.comb += [
            now.eq(now_ready & ~(now_open & current.match)),
            then.eq(both & then_ready & ~(then_open & following.match)),
            column.eq(current.match & (~current.write | turn.ready) & now_opened),  # never with `now`: the row is open
            self.now.eq(self.enable & now),
            self.then.eq(self.enable & ~now & then),
            self.column.eq(self.enable & ~then & column),
            self.closable.eq(Cat(bank.closable for bank in banks).all()),
        ]
        activate = Signal()
        m.d.comb += activate.eq((self.now & ~now_open) | (self.then & ~then_open))
        between.run(m, activate)
        turn.run(m, (self.column & ~current.write) | self.host_read)
        # A row is noted a cycle late: its segment is the same then, and no segment of another one is cut before.
        of_current = Signal()
        m.d.sync += of_current.eq(self.now)
        row = Mux(of_current, current.row, following.row)
        for number, bank in enumerate(banks):
            touched, touched_late = (Signal(name=f"{name}_{number}") for name in ("touched", "touched_late"))
            m.d.comb += touched.eq((self.now & current.hot[number]) | (self.then & following.hot[number]))
            m.d.sync += touched_late.eq(touched)
            opens, writes = touched & ~bank.open, self.column & current.write & current.hot[number]
            bank.opened.run(m, opens)
            bank.active.run(m, opens)
            bank.closed.run(m, touched & bank.open)
            bank.written.run(m, writes)
            m.d.sync += bank.open.eq((bank.open ^ touched) & ~self.close)
            # Asked for a cycle behind the last command at the earliest, so none of this cycle counts.
            m.d.sync += bank.closable.eq(~bank.open | (bank.active.ends & bank.written.ends))
            with m.If(touched_late & bank.open):
                m.d.sync += self.rows[number].eq(row)
        self._follow(m, banks, between, activate, apart)
        return m

    def _follow(self, m: Module, banks: list[Bank], between: Countdown, activate: Value, apart: Value) -> None:
        """What is known of a segment's bank follows the segment.

        Of the bank it is chosen as it will be without a command in this cycle, which comes late and changes it then.
        """
        external, current, following = self.external, self.current, self.following
        opens = Cat(bank.open for bank in banks)
        readies = Cat(Mux(bank.open, bank.active.ends & bank.written.ends, bank.closed.ends & between.ends)
                      for bank in banks)  # fmt: skip
        columns = Cat(bank.opened.ends for bank in banks)
        coming = Const(1, external.banks) << self.coming
        same = self.coming == current.bank

        def of(hot: Value, values: Value) -> Value:
            return (hot & values).any()

        def ready(hot: Value, is_open: Value, touched: Value) -> Value:
            """A row's command may come in the next cycle, to a bank that such a command has `touched` in this one."""
            if_touched = Mux(is_open, (external.rp == 1) & between.ends, external.ras == 1)
            return Mux(touched, if_touched, of(hot, readies) & ~(activate & ~is_open & (external.rrd > 1)))

        def opened(hot: Value, is_open: Value, touched: Value) -> Value:
            """The same of a column."""
            return Mux(touched, ~is_open & (external.rcd == 1), is_open & of(hot, columns)) & ~self.close

        # With two segments of one bank `then_ready` is not asked for: what it tells is right where they are apart, and
        # when the next segment becomes the current one after a column, its bank may be the one that was written.
        comes, written = self.current_comes, self.column & current.write & (external.wr > 1)
        now_open, then_open, now, then = self.now_open, self.then_open, self.now, self.then
        comes_ready = ready(following.hot, then_open, then) & ~(written & ~apart)
        comes_opened = opened(following.hot, then_open, then)
        m.d.sync += [
            now_open.eq(Mux(comes, then_open ^ then, now_open ^ now) & ~self.close),
            self._now_ready.eq(
                ~self.clear
                & Mux(comes, self.following_valid & comes_ready, ready(current.hot, now_open, now) & ~written)
            ),
            self._now_opened.eq(
                ~self.clear & Mux(comes, self.following_valid & comes_opened, opened(current.hot, now_open, now))
            ),
        ]  # fmt: skip
        first_open = of(coming, opens)
        m.d.sync += [
            then_open.eq(
                Mux(self.following_comes, first_open ^ (now & same), then_open ^ (then | (now & ~apart))) & ~self.close
            ),
            self._then_ready.eq(
                Mux(self.following_comes, ready(coming, first_open, Const(0)), ready(following.hot, then_open, then))
            ),
        ]  # fmt: skip
