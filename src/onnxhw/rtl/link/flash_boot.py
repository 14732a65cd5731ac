"""`FlashBoot`: the frames of an image in SPI flash, as if a host had sent them."""

from typing import Any

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.flash import ADDRESS_BITS, HEADER_BYTES, MAGIC, READ, WAKE, WAKE_SECONDS, half_period
from .uart import Received

DUMMY_BYTES = 2
"""Bytes of clocks before the memory is selected: the device's own driver of the clock pin may swallow the first edges
after its configuration. How many is not told by a source that we have; sixteen cost nothing."""
PATIENCE = 1 << 16
"""Cycles after the last byte until the program must be complete. What is in the link's memory then, 4,096 bytes at
most, is performed within eight cycles a word and the refreshes between."""


class FlashBoot(wiring.Component):
    """Reads an image (`onnxhw.isa.flash`) after reset and gives its frames to the link's `CommandEngine`.

    SPI mode 0. It ends when the program is complete, and fails if there is no image, when the first frame is damaged,
    or if the program is not complete after the last one.

    Parameters
    ----------
    clock_hz : of domain "sync".
    offset : where in the flash the image begins, in bytes.

    Members
    -------
    o : Out, stream of `Received`; one every `isa.flash.byte_cycles`, later where it is not taken.
    loaded, bad_frame : In(1), from `CommandEngine`.
    active : Out(1), the link's bytes are those of `o`, and its answers are for nobody.
    failed : Out(1), it has ended without a program.
    cs, sck, copi, cipo : the memory's pins, `cs` high while it is selected.
    """

    def __init__(self, *, clock_hz: int, offset: int) -> None:
        self.half, self.offset = half_period(clock_hz), offset
        self.wake_cycles = max(1, round(clock_hz * WAKE_SECONDS))
        super().__init__({
            "o": Out(stream.Signature(Received)), "loaded": In(1), "bad_frame": In(1),
            "active": Out(1, init=1), "failed": Out(1),
            "cs": Out(1), "sck": Out(1), "copi": Out(1), "cipo": In(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        out, heard = Signal(8, init=0), Signal(8)
        """What is being sent, the next bit highest; what came, the last bit lowest."""
        go, done = Signal(), Signal()
        self._byte(m, out, heard, go, done)
        m.d.comb += [self.copi.eq(out[-1]), self.o.payload.data.eq(heard)]

        count, wait = Signal(range(max(DUMMY_BYTES, HEADER_BYTES) + 1)), Signal(range(self.wake_cycles + 1))
        header, left, late = Signal(8 * HEADER_BYTES), Signal(ADDRESS_BITS), Signal(range(PATIENCE))
        command = Const(READ | int.from_bytes(self.offset.to_bytes(ADDRESS_BITS // 8, "big"), "little") << 8, 32)
        rest, spoiled = Signal(ADDRESS_BITS), Signal()
        m.d.comb += left.eq(header[32 : 32 + ADDRESS_BITS])
        m.d.sync += spoiled.eq(spoiled | self.bad_frame)
        with m.FSM():
            with m.State("DUMMY"):
                m.d.comb += go.eq(1)
                with m.If(done):
                    m.d.sync += count.eq(count + 1)
                    with m.If(count == DUMMY_BYTES - 1):
                        m.d.sync += [self.cs.eq(1), out.eq(WAKE), count.eq(0)]
                        m.next = "WAKE"
            with m.State("WAKE"):
                m.d.comb += go.eq(1)
                with m.If(done):
                    m.d.sync += [self.cs.eq(0), wait.eq(self.wake_cycles)]
                    m.next = "REST"
            with m.State("REST"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.sync += [self.cs.eq(1), out.eq(command[:8])]
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += go.eq(1)
                with m.If(done):
                    m.d.sync += [count.eq(count + 1), out.eq(command.bit_select(8 * (count[:2] + 1), 8))]
                    with m.If(count == 3):
                        m.d.sync += [count.eq(0), out.eq(0)]
                        m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += go.eq(1)
                with m.If(done):
                    m.d.sync += [count.eq(count + 1), header.eq(Cat(header[8:], heard))]
                    with m.If(count == HEADER_BYTES - 1):
                        m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.sync += rest.eq(left)
                m.next = "FRAMES"
                with m.If((header[:32] != MAGIC) | (header[32 + ADDRESS_BITS :] != 0) | (left == 0)):
                    m.next = "FAIL"
            with m.State("FRAMES"):
                m.d.comb += go.eq(1)
                with m.If(spoiled):
                    m.next = "FAIL"
                with m.Elif(done):
                    m.next = "BYTE"
            with m.State("BYTE"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += rest.eq(rest - 1)
                    m.next = "FRAMES"
                    with m.If(rest == 1):
                        m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += [self.cs.eq(0), late.eq(late + 1)]
                with m.If(self.loaded):
                    m.next = "END"
                with m.Elif(spoiled | (late == PATIENCE - 1)):
                    m.next = "FAIL"
            with m.State("FAIL"):
                m.d.sync += self.failed.eq(1)
                m.next = "END"
            with m.State("END"):
                m.d.sync += [self.active.eq(0), self.cs.eq(0)]
        return m

    def _byte(self, m: Module, out: Signal, heard: Signal, go: Signal, done: Signal) -> None:
        """While `go`: the eight bits of `out`, each `half` cycles low and `half` high, and in `heard` what came. `done`
        is high in a cycle after the last, in which `out` may be written anew.

        What the memory shows goes through a register and is taken as the clock falls: it has the whole bit.
        """
        phase, bit, seen = Signal(range(2 * self.half)), Signal(range(9)), Signal()
        moves, ends, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            moves.eq(go & (bit != 8)),
            ends.eq(moves & (phase == 2 * self.half - 1)),
            done.eq((bit == 8) & ~taken),
        ]
        m.d.sync += [
            seen.eq(self.cipo),
            taken.eq(ends),
            self.sck.eq(moves & (phase >= self.half - 1) & ~ends),
        ]
        with m.If(done):
            m.d.sync += bit.eq(0)
        with m.Elif(ends):
            m.d.sync += [phase.eq(0), bit.eq(bit + 1), out.eq(out << 1)]
        with m.Elif(moves):
            m.d.sync += phase.eq(phase + 1)
        with m.If(taken):
            m.d.sync += heard.eq(Cat(seen, heard[:-1]))
