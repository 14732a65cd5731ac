"""Consistent overhead byte stuffing (Cheshire, Baker 1999): frames of any bytes, ended by a zero byte.

A frame is cut before each zero and after each 254 bytes; every piece is sent as its length plus one,
then its bytes. A piece of 254 bytes stands for no zero, and neither does the last piece.
"""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..cells import BlockRam
from .uart import Received

Decoded = data.StructLayout({"data": 8, "end": 1, "good": 1})
"""A byte of a frame, or (`end`) the end of one; `good` tells that the frame was whole."""
FrameByte = data.StructLayout({"data": 8, "last": 1})
"""A byte to be sent; `last` of its frame."""


class CobsDecoder(wiring.Component):
    """Frames from the bytes of the line; every zero byte starts afresh, whatever came before.

    An item with `error` spoils the frame it lies in. One cycle of latency; one item per cycle.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(Received)), "o": Out(stream.Signature(Decoded))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left = Signal(8)  # bytes left in this piece
        zero_due = Signal()  # the next piece is preceded by a zero
        spoiled = Signal()
        item, out = self.i.payload, self.o.payload

        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [out.data.eq(item.data), out.end.eq(0)]
            with m.If(item.error):
                m.d.sync += spoiled.eq(1)
            with m.Elif(item.data == 0):
                m.d.sync += [self.o.valid.eq(1), out.end.eq(1), out.good.eq(~spoiled & (left == 0))]
                m.d.sync += [left.eq(0), zero_due.eq(0), spoiled.eq(0)]
            with m.Elif(left == 0):
                m.d.sync += [left.eq(item.data - 1), zero_due.eq(item.data != 0xFF)]
                m.d.sync += [out.data.eq(0), self.o.valid.eq(zero_due)]
            with m.Else():
                m.d.sync += [left.eq(left - 1), self.o.valid.eq(1)]
        return m


class CobsEncoder(wiring.Component):
    """Bytes for the line from frames, buffered: a whole reply is taken at core speed and sent at line speed.

    The bytes of a piece are written behind a hole; when the piece ends its length goes into the
    hole and the piece is released to the reader. Takes one byte per cycle, and a cycle more per piece.
    `depth` bytes of memory, a power of two and at least 512; `i` waits while it is full. `empty` tells that all
    whole pieces have been taken. `role` is that of its memory (`Primitives`).
    """

    def __init__(self, *, depth: int = 2048, role: str = "") -> None:
        assert depth >= 512, depth
        assert depth & (depth - 1) == 0, depth
        self.depth, self.role = depth, role
        super().__init__({"i": In(stream.Signature(FrameByte)), "o": Out(stream.Signature(8)), "empty": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = mem = BlockRam(width=8, depth=self.depth, role=self.role)
        bits = (self.depth - 1).bit_length()
        hole, head, tail, released = Signal(bits), Signal(bits, init=1), Signal(bits), Signal(bits)
        readable = Signal(bits)  # `released`, once it is written
        length = Signal(8, init=1)

        # Room is judged a cycle late: four bytes may be on their way.
        full = Signal()
        used = Signal(bits)
        m.d.comb += used.eq(head - tail)
        m.d.sync += full.eq(used >= self.depth - 8)

        ending = Signal()
        item = self.i.payload
        # State COLLECT, in a register of its own: whether a byte is taken enables registers here and of the sender.
        collects, taken = Signal(init=1), Signal()
        m.d.comb += [self.i.ready.eq(collects & ~full), taken.eq(self.i.ready & self.i.valid)]
        # Written from registers: the memory may lie far away. What is released now can be read after that.
        address, byte, write = Signal(bits), Signal(8), Signal()
        m.d.comb += [address.eq(head), byte.eq(item.data)]
        m.d.sync += [mem.w_addr.eq(address), mem.w_data.eq(byte), mem.w_en.eq(write), readable.eq(released)]
        counted = Signal()
        m.d.comb += counted.eq(taken & (item.data != 0))
        with m.If(taken):
            m.d.sync += [ending.eq(item.last), collects.eq(counted & ~item.last & (length != 0xFE))]
        with m.If(counted):
            m.d.comb += write.eq(1)
            m.d.sync += [head.eq(head + 1), length.eq(length + 1)]
        with m.FSM():
            with m.State("COLLECT"), m.If(taken):
                with m.If(counted & item.last):
                    m.next = "CLOSE_LAST"
                with m.Elif(~counted | (length == 0xFE)):
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += [write.eq(1), address.eq(hole), byte.eq(length)]
                m.d.sync += [hole.eq(head), head.eq(head + 1), released.eq(head), length.eq(1)]
                m.d.sync += collects.eq(~ending)
                m.next = "COLLECT"
                with m.If(ending):
                    m.next = "CLOSE_LAST"
            with m.State("CLOSE_LAST"):
                m.d.comb += [write.eq(1), address.eq(hole), byte.eq(length)]
                m.next = "DELIMIT"
            with m.State("DELIMIT"):
                m.d.comb += [write.eq(1), byte.eq(0)]
                m.d.sync += [hole.eq(head + 1), head.eq(head + 2), released.eq(head + 1), length.eq(1)]
                m.d.sync += collects.eq(1)
                m.next = "COLLECT"

        # The line is slow: one byte every few cycles. Two cycles from EMPTY to TAKE are the memory's latency. Whether
        # there is a byte is told a cycle late, too; the last one is counted by then.
        some = Signal()
        m.d.comb += mem.r_addr.eq(tail)
        m.d.sync += [self.empty.eq((tail == released) & ~self.o.valid), some.eq(tail != readable)]
        with m.FSM(name="reader"):
            with m.State("EMPTY"), m.If(some):
                m.next = "READ"
            with m.State("READ"):
                m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += [self.o.payload.eq(mem.r_data), self.o.valid.eq(1), tail.eq(tail + 1)]
                m.next = "OFFER"
            with m.State("OFFER"), m.If(self.o.ready):
                m.d.sync += self.o.valid.eq(0)
                m.next = "EMPTY"
        return m
