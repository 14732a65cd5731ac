"""`ByteFifo`: what the line has brought and nobody has looked at yet, in block RAM."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..cells import BlockRam
from .uart import Received


class ByteFifo(wiring.Component):
    """First in, first out; takes an item per cycle and gives one every four cycles, many times the line's speed.

    `role` is that of its memory (`Primitives`).

    Members
    -------
    i, o : streams of `Received`; `i` waits while it is full (the receiver then marks what it had to drop).
    free : Out(8), room for at least this many times ``depth // 256`` items.
    """

    def __init__(self, *, depth: int, role: str = "") -> None:
        assert depth >= 512, depth
        assert depth & (depth - 1) == 0, depth
        self.depth, self.role = depth, role
        super().__init__({"i": In(stream.Signature(Received)), "o": Out(stream.Signature(Received)), "free": Out(8)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = mem = BlockRam(width=9, depth=self.depth, role=self.role)
        bits = (self.depth - 1).bit_length()
        head, tail, used = Signal(bits), Signal(bits), Signal(bits)
        # Room is judged two cycles late: the counters may lie far away, beside the memory.
        full = Signal()
        m.d.sync += [used.eq(head - tail), full.eq(used >= self.depth - 8), self.free.eq(~used[-8:])]

        m.d.comb += [
            self.i.ready.eq(~full),
            mem.w_addr.eq(head),
            mem.w_data.eq(self.i.payload),
            mem.w_en.eq(self.i.valid & self.i.ready),
            mem.r_addr.eq(tail),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += head.eq(head + 1)

        # Two cycles from EMPTY to TAKE are the memory's latency. Whether there is an item is told a cycle late, too:
        # the last one is counted by then.
        some = Signal()
        m.d.sync += some.eq(tail != head)
        with m.FSM():
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
