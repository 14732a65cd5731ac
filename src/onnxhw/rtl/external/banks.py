"""`Banks`: which rows are open, and what each bank allows in this cycle."""

from typing import Any

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...external import External
from .countdown import Countdown


class Bank:
    """One bank: its open row, and from when on what may come."""

    def __init__(self, external: External, number: int) -> None:
        self.open = Signal(name=f"open_{number}")
        self.row = Signal(external.row_bits, name=f"row_{number}")
        self.command = Countdown(max(external.rcd, external.rp), f"command_{number}")
        """Until a column may come, or ACTIVATE if no row is open."""
        self.active = Countdown(external.ras, f"active_{number}")
        self.written = Countdown(external.wr, f"written_{number}")


class Banks(wiring.Component):
    """Keeps the rules of each bank, and those between ACTIVATE commands and from reads to writes.

    Members, all for one cycle
    --------------------------
    activate, precharge, column : In(1), these commands are given, to `bank` (at most one of them).
    precharge_all : In(1), likewise, to all.
    row, write : In, what is opened; whether the column is written.
    closable : Out(1), all banks may be precharged.
    may_activate, may_write : Out(1), of the rules between banks.
    open, match, ready, closes : Out, of the bank and row asked for by ``asked_bank``, ``asked_row`` ("a"), and "b".
    """

    def __init__(self, external: External) -> None:
        self.external = external
        asked: dict[str, Any] = {}
        for name in ("a", "b"):
            asked |= {f"{name}_bank": In(external.bank_bits), f"{name}_row": In(external.row_bits)}
            asked |= {f"{name}_{what}": Out(1) for what in ("open", "match", "ready", "closes")}
        super().__init__({
            "activate": In(1), "precharge": In(1), "column": In(1), "precharge_all": In(1), "write": In(1),
            "bank": In(external.bank_bits), "row": In(external.row_bits),
            "closable": Out(1), "may_activate": Out(1), "may_write": Out(1), **asked,
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external = self.external
        banks = [Bank(external, number) for number in range(external.banks)]
        between, turn = Countdown(external.rrd, "between"), Countdown(external.turn, "turn")
        for countdown in (between, turn, *(c for bank in banks for c in (bank.command, bank.active, bank.written))):
            countdown.run(m)
        m.d.comb += [self.may_activate.eq(between.ready), self.may_write.eq(turn.ready)]
        with m.If(self.activate):
            m.d.sync += between.start(external.rrd)
        with m.If(self.column & ~self.write):
            m.d.sync += turn.start(external.turn)
        for number, bank in enumerate(banks):
            mine = self.bank == number
            with m.If(self.activate & mine):
                m.d.sync += [bank.open.eq(1), bank.row.eq(self.row)]
                m.d.sync += [*bank.command.start(external.rcd), *bank.active.start(external.ras)]
            with m.If((self.precharge & mine) | self.precharge_all):
                m.d.sync += [bank.open.eq(0), *bank.command.start(external.rp)]
            with m.If(self.column & self.write & mine):
                m.d.sync += bank.written.start(external.wr)
        closes = [bank.active.ready & bank.written.ready for bank in banks]
        m.d.comb += self.closable.eq(Cat(closes).all())
        for name in ("a", "b"):
            asked = getattr(self, f"{name}_bank")
            m.d.comb += [
                getattr(self, f"{name}_open").eq(Array(bank.open for bank in banks)[asked]),
                getattr(self, f"{name}_match").eq(
                    Array(bank.row == getattr(self, f"{name}_row") for bank in banks)[asked]
                ),
                getattr(self, f"{name}_ready").eq(Array(bank.command.ready for bank in banks)[asked]),
                getattr(self, f"{name}_closes").eq(Array(closes)[asked]),
            ]
        return m
