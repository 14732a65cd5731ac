"""`CameraSession`: the settings of a sensor's program, and one inference after the other on the core."""

from typing import Any

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...isa.camera import CLASSES, HEAD_WORDS, SETTINGS_WORDS
from ...isa.memory import Space
from ..cells import BlockRam
from .average import Geometry
from .quantize import Word

PLACED = 12
"""Cycles behind the last word of an input after which `Core.input_busy` and `Core.input_over` tell of it."""


class CameraSession(wiring.Component):
    """Reads the settings, then: takes the next whole frame, writes its words to the core's input, starts the run, waits
    for its end, reads the scores and tells the first of the highest. Frames that begin meanwhile are passed over. If
    the next frame begins before a frame's last word, that is given up, and the next one taken.

    Members
    -------
    addr : the word of the settings that is wanted while `reads`, and `data`, that word `BlockRam.latency` cycles later.
    geometry : of the settings.
    frame : In(1), one cycle: a frame begins. `begin`, in that cycle: it is taken.
    i : words of the image.
    baked : In(1), the program's counts are in the core. `start`: one cycle starts a run.
    host_... : ports of `Core` of the same names; `running`, `input_busy`, `input_over` of it.
    number, score : the last answer; `answered` is 1 from the first one on, `tells` for one cycle with each.
    ready : In(1), an answer can be told.
    """

    def __init__(self) -> None:
        core = {"host_space": Out(4), "host_addr": Out(24), "host_wdata": Out(32), "host_we": Out(1), "host_re": Out(1)}
        core |= {"host_rdata": In(32), "host_rvalid": In(1), "host_waiting": In(1)}
        core |= {"running": In(1), "input_busy": In(1), "input_over": In(1)}
        super().__init__({
            "addr": Out(range(SETTINGS_WORDS)), "data": In(32), "reads": Out(1), "geometry": Out(Geometry),
            "frame": In(1), "begin": Out(1), "i": In(stream.Signature(Word)), "baked": In(1), "start": Out(1),
            "number": Out(8), "score": Out(8), "answered": Out(1), "tells": Out(1), "ready": In(1), **core,
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        classes, at, written = Signal(8), Signal(8), Signal(range(PLACED + 1))
        wait, value, best = Signal(range(BlockRam.latency + 1)), Signal(8), Signal(signed(8))
        m.d.comb += [self.host_wdata.eq(self.i.payload.word), self.score.eq(best)]
        m.d.sync += [self.host_we.eq(0), self.host_re.eq(0), self.tells.eq(0)]
        with m.FSM():
            with m.State("SETTINGS"):
                m.d.comb += [self.reads.eq(1), self.addr.eq(at)]
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == BlockRam.latency):
                    m.d.sync += [wait.eq(0), at.eq(at + 1)]
                    self._settings(m, at, classes)
                    with m.If(at == HEAD_WORDS - 1):
                        m.next = "PROGRAM"
            with m.State("PROGRAM"), m.If(self.baked & (classes != 0)):
                m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += self.begin.eq(self.frame)
                m.d.sync += self.host_addr.eq(0)
                with m.If(self.frame):
                    m.next = "FEED"
            with m.State("FEED"):
                self._feed(m, written)
            with m.State("PLACE"):
                m.d.sync += written.eq(Mux(written == PLACED, written, written + 1))
                with m.If((written == PLACED) & ~self.input_busy & self.input_over):
                    m.d.comb += self.start.eq(1)
                    m.next = "START"
            with m.State("START"), m.If(self.running):
                m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += [at.eq(0), wait.eq(0)]
                with m.If(~self.running):
                    m.next = "CLASS"
            with m.State("CLASS"):
                m.d.comb += [self.reads.eq(1), self.addr.eq(CLASSES + at)]
                m.d.sync += [wait.eq(wait + 1), value.eq(self.data[:8])]
                with m.If(wait == BlockRam.latency):
                    m.d.sync += [self.host_space.eq(Space.ACT), self.host_addr.eq(self.data[2:31])]
                    m.d.sync += self.host_re.eq(~self.data[31])
                    m.next = "READ"
                    with m.If(self.data[31]):
                        m.next = "COMPARE"
            with m.State("READ"), m.If(self.host_rvalid):
                m.d.sync += value.eq(self.host_rdata.word_select(value[:2], 8))
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += [at.eq(at + 1), wait.eq(0)]
                with m.If((at == 0) | (value.as_signed() > best)):
                    m.d.sync += [best.eq(value), self.number.eq(at)]
                m.next = "CLASS"
                with m.If(at + 1 == classes):
                    m.next = "TELL"
            with m.State("TELL"), m.If(self.ready):
                m.d.sync += [self.tells.eq(1), self.answered.eq(1)]
                m.next = "WAIT"
        return m

    def _settings(self, m: Module, at: Signal, classes: Signal) -> None:
        """`isa.camera.Settings.words`."""
        crop, low, high = self.geometry, self.data[:16], self.data[16:]
        fields = ((None, classes), (crop.width, crop.height), (crop.left, crop.top), (crop.box, None))
        for number, (first, second) in enumerate(fields):
            with m.If(at == number):
                m.d.sync += [] if first is None else first.eq(low)
                m.d.sync += [] if second is None else second.eq(high)
        with m.If(at == len(fields)):
            m.d.sync += crop.divisor.eq(low)

    def _feed(self, m: Module, written: Signal) -> None:
        """Words of the image, from address 0 of INPUT on."""
        m.d.comb += self.begin.eq(self.frame)
        m.d.sync += [self.host_space.eq(Space.INPUT), written.eq(0)]
        with m.If(self.i.valid & ~self.host_waiting & ~self.host_we & ~self.frame):
            m.d.sync += self.host_we.eq(1)
        with m.If(self.host_we):
            m.d.comb += self.i.ready.eq(1)
            m.d.sync += self.host_addr.eq(self.host_addr + 1)
            with m.If(self.i.payload.last):
                m.next = "PLACE"
        with m.If(self.frame):
            m.d.sync += self.host_addr.eq(0)
