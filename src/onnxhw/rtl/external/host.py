"""`HostPort`: 32-bit words of the loader, as bursts of the external memory's host slots."""

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...external import External
from .controller import host_shape

WORD = 32


class HostPort(wiring.Component):
    """One access at a time, each a slot of its own.

    Members
    -------
    addr, wdata, we, re : In, as of `Core`'s host port, for this memory alone: words of 32 bits.
    rdata, rvalid : Out, the answer of a read, whenever it comes.
    waiting : Out(1), a write is not performed yet.
    burst, w_data, w_next, r_data, r_valid : the host's side of `Controller`.
    """

    def __init__(self, external: External) -> None:
        self.external = external
        super().__init__({
            "addr": In(24), "wdata": In(WORD), "we": In(1), "re": In(1),
            "rdata": Out(WORD), "rvalid": Out(1), "waiting": Out(1),
            "burst": Out(stream.Signature(host_shape(external))), "w_data": Out(external.data_bits), "w_next": In(1),
            "r_data": In(external.data_bits), "r_valid": In(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bits, columns = self.external.data_bits, WORD // self.external.data_bits
        data, burst = Signal(WORD), self.burst
        with m.If(self.we | self.re):
            m.d.sync += [
                burst.valid.eq(1),
                burst.payload.write.eq(self.we),
                burst.payload.address.eq(self.addr * columns),
            ]
        with m.Elif(burst.ready):
            m.d.sync += burst.valid.eq(0)
        m.d.comb += [
            burst.payload.count.eq(columns), self.waiting.eq(burst.valid & burst.payload.write),
            self.w_data.eq(data[:bits]), self.rdata.eq(data),
        ]  # fmt: skip
        # Columns leave and come at the ends of one shift register. A read is answered when its slot ends, by which its
        # columns are there: the next access may come in the cycle of the answer.
        m.d.sync += self.rvalid.eq(burst.ready & burst.valid & ~burst.payload.write)
        with m.If(self.we):
            m.d.sync += data.eq(self.wdata)
        with m.Elif(self.w_next):
            m.d.sync += data.eq(data >> bits)
        with m.Elif(self.r_valid):
            m.d.sync += data.eq(Cat(data[bits:], self.r_data))
        return m
