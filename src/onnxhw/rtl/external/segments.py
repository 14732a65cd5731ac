"""`Segments`: requests, cut at the ends of rows: the segment whose columns are transferred, and the one after it."""

from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...external import ExternalMemory
from ...isa.external import COUNT_BITS


def request_shape(external: ExternalMemory) -> data.StructLayout:
    """Columns from an address on: a count of at least 1, and how many of them are `behind` the first."""
    counts = {"count": COUNT_BITS, "behind": COUNT_BITS}
    return data.StructLayout({"write": 1, "address": external.address_bits, **counts})


def segment_shape(external: ExternalMemory) -> data.StructLayout:
    """Columns of one row. `hot`: the bank, a bit for each; `left`: how many columns; `last`: one is left; `match`: the
    bank's open row, if it has one, is this one."""
    return data.StructLayout({
        "write": 1, "row": external.row_bits, "bank": external.bank_bits, "hot": external.banks,
        "column": external.column_bits, "left": external.column_bits + 1, "last": 1, "match": 1,
    })  # fmt: skip


class Segments(wiring.Component):
    """Cuts requests (see `onnxhw.isa.external`).

    Members
    -------
    request : stream of `request_shape`.
    current, following : Out, `segment_shape`, and ``current_valid``, ``following_valid``.
    step : In(1), a column of the current segment is transferred in this cycle.
    current_opened, following_opened : In(1), its row is opened in this cycle.
    rows : In, by bank: the row that was opened last.
    clear : In(1), forgets requests.
    idle : Out(1), no request is under way.
    current_comes, following_comes : Out(1), from the next cycle on it is another one: `following`, and one of the bank
    that `coming` tells.
    """

    def __init__(self, external: ExternalMemory) -> None:
        self.external = external
        shape = segment_shape(external)
        super().__init__({
            "request": In(stream.Signature(request_shape(external))),
            "current": Out(shape), "current_valid": Out(1), "following": Out(shape), "following_valid": Out(1),
            "step": In(1), "current_opened": In(1), "following_opened": In(1),
            "rows": In(external.row_bits).array(external.banks), "clear": In(1), "idle": Out(1),
            "current_comes": Out(1), "following_comes": Out(1), "coming": Out(external.bank_bits),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external, current, following = self.external, self.current, self.following
        columns, banks = external.column_bits, external.bank_bits
        # What is left of the request that is being cut; columns up to the end of the row; how many rows' ends it goes
        # beyond, and whether that is none.
        busy, rest = Signal(), Signal(request_shape(external))
        room, beyond, whole = Signal(columns + 1), Signal(COUNT_BITS + 1 - columns), Signal()
        m.d.comb += [self.request.ready.eq(~busy), self.idle.eq(~(busy | self.current_valid | self.following_valid))]
        with m.If(self.request.ready & self.request.valid):
            begin, behind = self.request.payload.address[:columns], self.request.payload.behind
            end = begin + behind[:columns]  # of the last column, if it is in this row
            m.d.sync += [
                busy.eq(1),
                rest.eq(self.request.payload),
                room.eq(external.columns - begin),
                beyond.eq(behind[columns:] + end[columns]),
                whole.eq(~(end[columns] | behind[columns:].any())),
            ]
        length = Signal(columns + 1)
        m.d.comb += length.eq(Mux(whole, rest.count, room))
        column, bank, row = (
            rest.address[:columns], rest.address[columns : columns + banks], rest.address[columns + banks :]
        )  # fmt: skip
        m.d.comb += [
            self.current_comes.eq(~self.current_valid | (self.step & current.last)),
            self.following_comes.eq(busy & ~self.following_valid),
            self.coming.eq(bank),
        ]
        with m.If(self.following_opened):
            m.d.sync += following.match.eq(1)
        with m.If(self.following_comes):
            m.d.sync += [
                following.write.eq(rest.write),
                following.column.eq(column),
                following.bank.eq(bank),
                following.hot.eq(Const(1, external.banks) << bank),
                following.row.eq(row),
                following.left.eq(length),
                following.last.eq(length == 1),
                following.match.eq(Array([mine == row for mine in self.rows])[bank]),
                self.following_valid.eq(1),
                rest.address.eq(Cat(Const(0, columns), rest.address[columns:] + 1)),
                rest.count.eq(rest.count - room),
                room.eq(external.columns),
                beyond.eq(beyond - 1),
                whole.eq(beyond == 1),
                busy.eq(~whole),
            ]
        with m.If(self.step):
            m.d.sync += [
                current.column.eq(current.column + 1),
                current.left.eq(current.left - 1),
                current.last.eq(current.left == 2),
            ]
        with m.If(self.current_opened):
            m.d.sync += current.match.eq(1)
        with m.If(self.current_comes):
            m.d.sync += self.current_valid.eq(self.following_valid)
            m.d.sync += current.eq(following)
            # The current segment may have opened its row after the next one of the same bank was cut.
            with m.If(self.current_valid & (current.bank == following.bank)):
                m.d.sync += current.match.eq(current.row == following.row)
            with m.If(self.following_valid):
                m.d.sync += self.following_valid.eq(0)
        with m.If(self.clear):
            m.d.sync += [busy.eq(0), self.following_valid.eq(0), self.current_valid.eq(0)]
        return m
