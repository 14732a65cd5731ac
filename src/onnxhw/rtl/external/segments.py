"""`Segments`: requests, cut at the ends of rows: the segment whose columns are transferred, and the one after it."""

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...external import External
from ...isa.external import COUNT_BITS


def request_shape(external: External) -> data.StructLayout:
    """Columns from an address on: a count of at least 1."""
    return data.StructLayout({"write": 1, "address": external.address_bits, "count": COUNT_BITS})


def segment_shape(external: External) -> data.StructLayout:
    """Columns of one row. `left`: how many; `last`: one is left."""
    return data.StructLayout({
        "write": 1, "row": external.row_bits, "bank": external.bank_bits, "column": external.column_bits,
        "left": external.column_bits + 1, "last": 1,
    })  # fmt: skip


class Segments(wiring.Component):
    """Cuts requests (see `onnxhw.isa.external`).

    Members
    -------
    request : stream of `request_shape`.
    current, following : Out, `segment_shape`, and ``current_valid``, ``following_valid``.
    step : In(1), a column of the current segment is transferred in this cycle.
    idle : Out(1), no request is under way.
    """

    def __init__(self, external: External) -> None:
        self.external = external
        shape = segment_shape(external)
        super().__init__({
            "request": In(stream.Signature(request_shape(external))),
            "current": Out(shape), "current_valid": Out(1), "following": Out(shape), "following_valid": Out(1),
            "step": In(1), "idle": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        external, current, following = self.external, self.current, self.following
        # What is left of the request that is being cut.
        busy = Signal()
        rest = Signal(request_shape(external))
        m.d.comb += [self.request.ready.eq(~busy), self.idle.eq(~(busy | self.current_valid | self.following_valid))]
        with m.If(self.request.ready & self.request.valid):
            m.d.sync += [busy.eq(1), rest.eq(self.request.payload)]

        columns, banks = external.column_bits, external.bank_bits
        room, length = Signal(columns + 1), Signal(columns + 1)
        whole = Signal()
        m.d.comb += [
            room.eq(external.columns - rest.address[:columns]),
            whole.eq(rest.count <= room),
            length.eq(Mux(whole, rest.count, room)),
        ]
        with m.If(busy & ~self.following_valid):
            m.d.sync += [
                following.write.eq(rest.write),
                following.column.eq(rest.address[:columns]),
                following.bank.eq(rest.address[columns : columns + banks]),
                following.row.eq(rest.address[columns + banks :]),
                following.left.eq(length),
                following.last.eq(length == 1),
                self.following_valid.eq(1),
                rest.address.eq(rest.address + length),
                rest.count.eq(rest.count - length),
                busy.eq(~whole),
            ]
        with m.If(self.step):
            m.d.sync += [
                current.column.eq(current.column + 1),
                current.left.eq(current.left - 1),
                current.last.eq(current.left == 2),
            ]
        with m.If(~self.current_valid | (self.step & current.last)):
            m.d.sync += self.current_valid.eq(self.following_valid)
            m.d.sync += current.eq(following)
            with m.If(self.following_valid):
                m.d.sync += self.following_valid.eq(0)
        return m
