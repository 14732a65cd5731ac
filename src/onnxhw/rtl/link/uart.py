"""A serial line, 8 data bits, no parity, 1 stop bit: receiver and transmitter."""

from collections.abc import Sequence
from typing import Any

from amaranth import Array, Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ...errors import UsageError
from ...isa.link import MIN_RATIO


def bit_phase(clock_hz: float, baud: float) -> tuple[int, int]:
    """Width and step of a phase accumulator that wraps once per bit: ``baud ~ clock * step / 2**width``.

    The rate is met within 1/2048; `UsageError` E2140 if the clock has less than `MIN_RATIO` cycles per bit.
    """
    ratio = clock_hz / baud
    if ratio < MIN_RATIO:
        raise UsageError(
            "E2140",
            f"{baud:,.0f} baud needs a clock of at least {MIN_RATIO * baud / 1e6:g} MHz, not {clock_hz / 1e6:g} MHz",
            hint=f"at most {clock_hz // MIN_RATIO:,.0f} baud with this clock",
        )
    width = 11 + int(ratio).bit_length()
    return width, round((1 << width) / ratio)


def bit_phases(clock_hz: float, rates: Sequence[float]) -> tuple[int, list[int]]:
    """As `bit_phase` for several rates: one width, and the step of each."""
    width = max(bit_phase(clock_hz, rate)[0] for rate in rates)
    return width, [round((1 << width) * rate / clock_hz) for rate in rates]


BREAK_SECONDS = 0.03
"""How long the line must be low, behind a byte's time, to ask for the next rate: no noise on a connected line is that
long, and a host that holds it for `driver.transport.BREAK` is heard."""


class LineRate(wiring.Component):
    """Which of the line's rates applies: the first after reset, and after each long break the next one, around.

    So a host whose adapter or cable does not do the first rate comes to one that it can have. A line that has been low
    since reset asks for nothing: nobody is connected.

    Members
    -------
    line_break : In(1), as of `UartReceiver`.
    rate : Out, the number of the rate; it changes as the break ends.
    """

    def __init__(self, *, clock_hz: float, rates: int) -> None:
        self.rates, self.cycles = rates, max(1, round(clock_hz * BREAK_SECONDS))
        super().__init__({"line_break": In(1), "rate": Out(range(rates))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left, connected = Signal(range(self.cycles + 1)), Signal()
        with m.If(~self.line_break):
            m.d.sync += [left.eq(self.cycles), connected.eq(1)]
            with m.If(connected & (left == 0)):
                m.d.sync += self.rate.eq(self.rate + 1)
                with m.If(self.rate == self.rates - 1):
                    m.d.sync += self.rate.eq(0)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m


Received = data.StructLayout({"data": 8, "error": 1})
"""One item of the receiver: a byte, or (`error`) the mark that it or bytes before it are lost or unreadable."""


def _step(m: Module, steps: Sequence[int], width: int, rate: Signal) -> Signal:
    """The phase's step at a rate, in a register."""
    step = Signal(width, init=steps[0])
    m.d.sync += step.eq(Array(Const(each, width) for each in steps)[rate])
    return step


class UartReceiver(wiring.Component):
    """Bytes of the line `rx`, each sampled three times and decided by majority.

    The start bit is checked again like any other. A bit is sampled at 2/8, 3/8 and 4/8 of its time. The stop
    bit ends with its last sample: later than half would let a transmitter 2 % fast run ahead at 8 to 11
    cycles per bit, byte by byte.

    Parameters
    ----------
    rates : in baud; the least ratio of clock and rate is `MIN_RATIO`.

    Members
    -------
    rate : In, the number of the rate that applies.
    o : Out(stream of Received)
        `error` is set if the stop bit was low (framing error, break) or the byte before was lost because
        nobody had taken it in time: data is then not to be trusted.
    line_break : Out(1)
        The line has been low since a missing stop bit (or since reset).
    """

    def __init__(self, *, clock_hz: float, rates: Sequence[float]) -> None:
        self.width, self.steps = bit_phases(clock_hz, rates)
        super().__init__(
            {
                "rx": In(1, init=1),
                "rate": In(range(len(rates))),
                "o": Out(stream.Signature(Received)),
                "line_break": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # Low at reset: a line that stays so has no other end, and is no break that somebody sends.
        rx = Signal()
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx)

        phase, step = Signal(self.width), _step(m, self.steps, self.width, self.rate)
        eighth, eighth_was = phase[-3:], Signal(3)
        entered = Signal()
        m.d.sync += [phase.eq(phase + step), eighth_was.eq(eighth)]
        m.d.comb += entered.eq(eighth != eighth_was)

        samples, bit = Signal(2), Signal()
        with m.If(entered & ((eighth == 2) | (eighth == 3))):
            m.d.sync += samples.eq(Cat(samples[1:], rx))
        m.d.comb += bit.eq(samples.all() | (samples.any() & rx))
        decided = entered & (eighth == 4)

        index, byte = Signal(4), Signal(8)
        complete, shifts = Signal(), Signal()
        with m.FSM(init="BREAK"):
            with m.State("BREAK"):
                m.d.comb += self.line_break.eq(1)
                with m.If(rx):
                    m.next = "IDLE"
            with m.State("IDLE"), m.If(~rx):
                m.d.sync += [phase.eq(step), eighth_was.eq(0), index.eq(0)]
                m.next = "START"
            with m.State("START"), m.If(decided):
                m.next = "BITS"
                with m.If(bit):
                    m.next = "IDLE"
            with m.State("BITS"), m.If(decided):
                m.d.sync += index.eq(index + 1)
                with m.If(index == 8):
                    m.d.comb += complete.eq(1)
                    m.next = "IDLE"
                    with m.If(~bit):
                        m.next = "BREAK"
                with m.Else():
                    m.d.comb += shifts.eq(1)

        # A cycle later: whoever takes the byte may stand far from what decides.
        lost, arrived, shifting, broken = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [arrived.eq(complete), shifting.eq(shifts), broken.eq(~bit)]
        with m.If(shifting):
            m.d.sync += byte.eq(Cat(byte[1:], ~broken))
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(arrived):
            with m.If(self.o.valid & ~self.o.ready):
                m.d.sync += lost.eq(1)
            with m.Else():
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.payload.data.eq(byte),
                    self.o.payload.error.eq(lost | broken),
                    lost.eq(0),
                ]
        return m


class UartTransmitter(wiring.Component):
    """Sends the bytes of `i` on the line `tx`; one byte takes ten bit times and at most two cycles.

    `rates` and `rate` as of `UartReceiver`.
    """

    def __init__(self, *, clock_hz: float, rates: Sequence[float]) -> None:
        self.width, self.steps = bit_phases(clock_hz, rates)
        super().__init__({"i": In(stream.Signature(8)), "rate": In(range(len(rates))), "tx": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        phase, step = Signal(self.width + 1), _step(m, self.steps, self.width, self.rate)
        bits, left = Signal(9), Signal(4)
        m.d.comb += self.i.ready.eq(left == 0)
        m.d.sync += phase.eq(phase[:-1] + step)
        with m.If(self.i.ready & self.i.valid):
            m.d.sync += [self.tx.eq(0), bits.eq(Cat(self.i.payload, 1)), left.eq(10), phase.eq(step)]
        with m.Elif(~self.i.ready & phase[-1]):
            m.d.sync += left.eq(left - 1)
            with m.If(left != 1):
                m.d.sync += [self.tx.eq(bits[0]), bits.eq(Cat(bits[1:], 1))]
        return m
