"""`Sccb`: brings a camera out of reset and writes its registers, once."""

from math import ceil
from typing import Any

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import Out

from ...isa.ov7670 import DEVICE, REGISTERS, RESET, RESET_US, SCCB_HZ, SETTLE_US

BITS = 3 * 9
"""Of a write: address of the device, register and value, each of eight bits and one that does not count."""
QUARTERS = 4
"""Parts of a bit: SIO_C is low in the first two, and SIO_D changes at the second."""


class Sccb(wiring.Component):
    """RESET# for `RESET_US`, a pause of `SETTLE_US`, then `REGISTERS`, with a pause behind `RESET`.

    A write is three phases of nine bits, the highest bit first; in the ninth, which does not count, SIO_D is let go.
    SIO_D is high, or let go, between writes. SIO_C is driven always, for nobody else may.

    Members
    -------
    reset_n : Out(1), RESET#.
    sioc : Out(1), SIO_C.
    siod : Out(1), 0: SIO_D is driven low; 1: it is let go, and a resistor pulls it up.
    done : Out(1), all registers are written.
    """

    def __init__(self, *, clock_hz: int, sccb_hz: int = SCCB_HZ) -> None:
        self.quarter = ceil(clock_hz / sccb_hz / QUARTERS)
        self.reset, self.settle = (ceil(clock_hz * us / 1_000_000) for us in (RESET_US, SETTLE_US))
        super().__init__({"reset_n": Out(1), "sioc": Out(1, init=1), "siod": Out(1, init=1), "done": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        contents = [each.register << 8 | each.value for each in REGISTERS]
        m.submodules.registers = table = memory.Memory(shape=16, depth=len(contents), init=contents)
        read, number = table.read_port(domain="comb"), Signal(range(len(contents) + 1))
        m.d.comb += read.addr.eq(number)
        pause = Signal(range(max(self.reset, self.settle) + 1), init=self.reset)
        phase, bits, left = Signal(range(self.quarter)), Signal(BITS), Signal(range(BITS))
        quarter, due = Signal(range(QUARTERS)), Signal()
        m.d.comb += due.eq(phase == self.quarter - 1)
        m.d.sync += phase.eq(phase + 1)
        with m.If(due):
            m.d.sync += [phase.eq(0), quarter.eq(quarter + 1)]
        level = quarter[-1]  # of SIO_C in a bit

        with m.FSM():
            with m.State("RESET"):
                m.d.sync += pause.eq(pause - 1)
                with m.If(pause == 0):
                    m.d.sync += [self.reset_n.eq(1), pause.eq(self.settle)]
                    m.next = "PAUSE"
            with m.State("PAUSE"):
                m.d.sync += [pause.eq(pause - 1), phase.eq(0), quarter.eq(0)]
                with m.If(pause == 0):
                    m.d.sync += pause.eq(0)
                    m.next = "NEXT"
            with m.State("NEXT"):
                high, low = read.data[8:], read.data[:8]
                m.d.sync += [bits.eq(Cat(Const(1, 1), low, Const(1, 1), high, Const(1, 1), Const(DEVICE, 8)))]
                m.d.sync += [left.eq(BITS - 1), phase.eq(0), quarter.eq(0)]
                m.next = "START"
                with m.If(number == len(contents)):
                    m.next = "DONE"
            with m.State("START"):  # SIO_D falls while SIO_C is high, which falls a quarter later
                m.d.sync += [self.siod.eq(quarter < 2), self.sioc.eq(quarter < 3)]
                with m.If(due & (quarter == QUARTERS - 1)):
                    m.next = "BIT"
            with m.State("BIT"):
                m.d.sync += self.sioc.eq(level)
                with m.If((quarter == 1) & (phase == 0)):
                    m.d.sync += self.siod.eq(bits[-1])
                with m.If(due & (quarter == QUARTERS - 1)):
                    m.d.sync += [bits.eq(bits << 1), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.next = "STOP"
            with m.State("STOP"):  # SIO_D rises while SIO_C is high
                m.d.sync += self.sioc.eq(level)
                with m.If(quarter == 1):
                    m.d.sync += self.siod.eq(0)
                with m.If(quarter == 3):
                    m.d.sync += self.siod.eq(1)
                with m.If(due & (quarter == QUARTERS - 1)):
                    m.d.sync += number.eq(number + 1)
                    m.next = "NEXT"
                    with m.If(number == REGISTERS.index(RESET)):
                        m.d.sync += pause.eq(self.settle)
                        m.next = "PAUSE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
        return m
