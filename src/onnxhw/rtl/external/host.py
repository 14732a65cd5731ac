"""`SdramHostPort`: 32-bit words of the loader, as bursts of the external memory's host slots."""

from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...external import SLOT_COLUMNS, ExternalMemory
from .controller import host_shape

WORD = 32


class SdramHostPort(wiring.Component):
    """Accesses one at a time. Words that follow one another share a slot, as far as it goes: a *group*, of
    `SLOT_COLUMNS` columns that begin at a multiple of so many, hence of one row.

    Written words wait for the end of their group or of their row of accesses (`last`), and go as one burst. The first
    word that is read brings what follows in its group, from which the next accesses are answered. Behind `last` nothing
    is left here: what was written is in the memory once `waiting` has fallen, and what is read next comes from there.

    Members
    -------
    addr, wdata, we, re : In, as of `Core`'s host port, for this memory alone: words of 32 bits. `addr` stays until the
        answer of a read.
    last : In(1), with an access and until its answer: the next one is not of the same kind at the next address.
    rdata, rvalid : Out, the answer of a read, whenever it comes.
    waiting : Out(1), no other word can be written yet.
    burst, w_data, w_next, r_data, r_valid : the host's side of `Controller`.
    """

    def __init__(self, external: ExternalMemory) -> None:
        self.external = external
        super().__init__({
            "addr": In(24), "wdata": In(WORD), "we": In(1), "re": In(1), "last": In(1),
            "rdata": Out(WORD), "rvalid": Out(1), "waiting": Out(1),
            "burst": Out(stream.Signature(host_shape(external))), "w_data": Out(external.data_bits), "w_next": In(1),
            "r_data": In(external.data_bits), "r_valid": In(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        columns, burst = WORD // self.external.data_bits, self.burst
        words = SLOT_COLUMNS // columns
        place = self.addr[: words.bit_length() - 1]
        column, count = Signal(range(SLOT_COLUMNS)), Signal(range(SLOT_COLUMNS + 1))
        """The burst's next column, as its place in the group; how many it has."""
        following = Signal.like(column, name="following")
        """The column behind it: what is written is read a column ahead, for it travels far."""
        left, reading, there = Signal(range(SLOT_COLUMNS + 1)), Signal(), Signal()
        """Columns that are still to come; a read waits for them; words from `addr` on are there."""
        address = burst.payload.address
        begin = [address.eq(self.addr * columns), column.eq(place * columns), following.eq(place * columns + 1)]
        ends = Signal()
        m.d.comb += [
            ends.eq(self.last | place.all()),
            burst.payload.count.eq(count),
            self.waiting.eq(burst.valid & burst.payload.write),
        ]
        behind = self._store(m, place, column, following)

        m.d.sync += self.rvalid.eq(0)
        with m.If(self.w_next | self.r_valid):
            m.d.sync += [column.eq(column + 1), following.eq(following + 1), left.eq(left - 1), self.w_data.eq(behind)]
        with m.If(burst.ready):
            m.d.sync += [burst.valid.eq(0), count.eq(0)]
        with m.If(self.we):
            m.d.sync += [count.eq(count + columns), burst.payload.write.eq(1), burst.valid.eq(ends)]
            with m.If(count == 0):
                m.d.sync += [*begin, self.w_data.eq(self.wdata[: self.external.data_bits])]
        with m.Elif(self.re & there):
            m.d.sync += [self.rvalid.eq(1), there.eq(~ends)]
        with m.Elif(self.re):
            wanted = Mux(self.last, columns, SLOT_COLUMNS - place * columns)
            m.d.sync += [count.eq(wanted), left.eq(wanted), burst.payload.write.eq(0), burst.valid.eq(1), *begin]
            m.d.sync += reading.eq(1)
        with m.If(reading & ~burst.valid & (left == 0)):
            m.d.sync += [self.rvalid.eq(1), reading.eq(0), there.eq(~ends)]
        return m

    def _store(self, m: Module, place: Value, column: Value, following: Value) -> Value:
        """The group's columns, in a memory for each of a word's, so that a word is accessed as a whole; what is in
        column `following`."""
        bits = self.external.data_bits
        columns = WORD // bits
        within, word = column[: columns - 1], column[columns - 1 :]  # 1 or 2 columns are 0 or 1 bits
        found, ahead = [], []
        for number in range(columns):
            part = memory.Memory(shape=bits, depth=SLOT_COLUMNS // columns, init=[])
            m.submodules[f"columns_{number}"] = part
            write, read, burst = part.write_port(), *(part.read_port(domain="comb") for _ in range(2))
            m.d.comb += [
                write.addr.eq(Mux(self.we, place, word)),
                write.data.eq(Mux(self.we, self.wdata.word_select(number, bits), self.r_data)),
                write.en.eq(self.we | (self.r_valid & (within == number))),
                read.addr.eq(place),
                burst.addr.eq(following[columns - 1 :]),
            ]
            found.append(read.data)
            ahead.append(burst.data)
        m.d.comb += self.rdata.eq(Cat(found))
        return Array(ahead)[following[: columns - 1]]
