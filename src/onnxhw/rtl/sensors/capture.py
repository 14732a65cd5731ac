"""`Capture`: the pins of a parallel camera to pixels."""

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from .average import Pixel


class Capture(wiring.Component):
    """Samples the pins in every cycle, and takes what they were in the last cycle before PCLK was seen to rise.

    All pins have the same synchronizer. The sample lies within a cycle before the edge, so it is right if the camera's
    data are valid for a cycle before it (OV7670: 15 ns at 24 MHz, 5 ns less than PCLK is low in general), however the
    clocks lie to each other; and both levels of PCLK must last more than a cycle. A pixel is two bytes, red first.

    Members
    -------
    pclk, vsync, href, d : the pins, asynchronous; VSYNC is high between frames, HREF while a row's bytes come.
    pixel, valid : a pixel, for one cycle.
    end_of_line : Out(1), one cycle: HREF has fallen.
    frame : Out(1), one cycle: VSYNC has risen.
    """

    def __init__(self) -> None:
        pins = {"pclk": In(1), "vsync": In(1), "href": In(1), "d": In(8)}
        out = {"pixel": Out(Pixel), "valid": Out(1), "end_of_line": Out(1), "frame": Out(1)}
        super().__init__(pins | out)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pins = Cat(self.pclk, self.vsync, self.href, self.d)
        now, before = Signal(len(pins)), Signal(len(pins))
        m.submodules.pins = FFSynchronizer(pins, now)
        m.d.sync += before.eq(now)
        vsync, href, byte = before[1], before[2], before[3:]
        was_vsync, was_href, high, second = Signal(init=1), Signal(), Signal(8), Signal()
        m.d.sync += [self.valid.eq(0), self.end_of_line.eq(0), self.frame.eq(0)]
        with m.If(now[0] & ~before[0]):
            m.d.sync += [was_vsync.eq(vsync), was_href.eq(href), second.eq(href & ~second), high.eq(byte)]
            m.d.sync += [
                self.valid.eq(href & second),
                self.pixel.as_value().eq(Cat(byte, high)),
                self.end_of_line.eq(was_href & ~href),
                self.frame.eq(vsync & ~was_vsync),
            ]
        return m
