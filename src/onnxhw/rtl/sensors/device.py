"""`CameraDevice`: a core that classifies what a camera sees, with plain pins."""

from math import ceil
from typing import Any

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import HwConfig
from ...errors import UsageError
from ...isa.camera import SETTINGS, SETTINGS_WORDS
from ...isa.ov7670 import SCCB_HZ, XCLK_LEAST, XCLK_MOST
from ..autorun import Autorun
from ..cells import BlockRam
from ..core import Core
from ..link.uart import UartTransmitter
from .average import BoxAverage
from .capture import Capture
from .quantize import Quantizer
from .report import AnswerReport
from .sccb import Sccb
from .session import CameraSession


def xclk_half(clock_hz: int) -> int:
    """Cycles of half a period of the camera's clock, for one of at most `XCLK_MOST`; `UsageError` E2380 if it would be
    slower than `XCLK_LEAST`."""
    half = ceil(clock_hz / (2 * XCLK_MOST))
    if clock_hz < 2 * half * XCLK_LEAST:
        what = f"a camera needs a clock of {2 * XCLK_LEAST / 1e6:g} MHz or more, not {clock_hz / 1e6:g} MHz"
        raise UsageError("E2380", what, hint="a higher clock, with --freq")
    return half


class CameraDevice(wiring.Component):
    """Core, camera and answers. The memories of the core, "autorun" and `SETTINGS` have a program (they can be replaced
    in a routed design); there is no host.

    Parameters
    ----------
    clock_hz, baud : the clock of domain "sync" and the line's speed.
    core : another component with the host port of `Core`.
    sccb_hz : rate at which the camera's registers are written.

    Members
    -------
    pclk, vsync, href, d : from the camera (`Capture`). xclk, reset_n, sioc, siod : to it (`Sccb`).
    tx : the serial line: a line of text for each answer (`AnswerReport`).
    number, answered : class of the last answer, and that there was one; `tells` for one cycle with each.
    running : a run is in progress.
    """

    def __init__(
        self, config: HwConfig, *, clock_hz: int, baud: int, core: Any = None, sccb_hz: int = SCCB_HZ
    ) -> None:  # fmt: skip
        self.config, self.clock_hz, self.baud = config, clock_hz, baud
        self.half = xclk_half(clock_hz)
        self.core = core if core is not None else Core(config)
        self.sccb = Sccb(clock_hz=clock_hz, sccb_hz=sccb_hz)
        self.transmitter = UartTransmitter(clock_hz=clock_hz, rates=[baud])
        super().__init__({
            "pclk": In(1), "vsync": In(1), "href": In(1), "d": In(8), "xclk": Out(1), "reset_n": Out(1),
            "sioc": Out(1, init=1), "siod": Out(1, init=1), "tx": Out(1, init=1), "number": Out(8), "answered": Out(1),
            "tells": Out(1), "running": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.session = session = CameraSession()
        m.submodules.settings = settings = BlockRam(width=32, depth=SETTINGS_WORDS, name=SETTINGS)
        m.submodules.capture, m.submodules.average = capture, average = Capture(), BoxAverage()
        quantizer = Quantizer()
        m.submodules.quantizer = ResetInserter(session.begin)(quantizer)
        m.submodules.report, m.submodules.transmitter = report, transmitter = AnswerReport(), self.transmitter
        m.submodules.sccb = sccb = self.sccb
        self._clock(m)
        for one, other in (
            (average.o, quantizer.i), (quantizer.o, session.i), (report.o, transmitter.i),
        ):  # fmt: skip
            wiring.connect(m, one, other)
        m.d.comb += [getattr(capture, name).eq(getattr(self, name)) for name in ("pclk", "vsync", "href", "d")]
        m.d.comb += [getattr(self, name).eq(getattr(sccb, name)) for name in ("reset_n", "sioc", "siod")]
        m.d.comb += [
            average.geometry.eq(session.geometry), average.begin.eq(session.begin), average.pixel.eq(capture.pixel),
            average.valid.eq(capture.valid), average.end_of_line.eq(capture.end_of_line),
            session.frame.eq(capture.frame & sccb.done), session.ready.eq(report.idle),
            session.data.eq(settings.r_data), quantizer.data.eq(settings.r_data),
            report.number.eq(session.number), report.score.eq(session.score), report.send.eq(session.tells),
            self.tx.eq(transmitter.tx), self.running.eq(core.running),
        ]  # fmt: skip
        m.d.comb += [getattr(self, name).eq(getattr(session, name)) for name in ("number", "answered", "tells")]
        m.d.comb += settings.r_addr.eq(quantizer.addr)
        with m.If(session.reads):
            m.d.comb += settings.r_addr.eq(session.addr)
        self._host_port(m, core, session)
        return m

    def _clock(self, m: Module) -> None:
        """XCLK, high as long as low."""
        left = Signal(range(self.half))
        with m.If(left == 0):
            m.d.sync += [left.eq(self.half - 1), self.xclk.eq(~self.xclk)]
        with m.Else():
            m.d.sync += left.eq(left - 1)

    def _host_port(self, m: Module, core: Any, session: CameraSession) -> None:
        """`CameraSession` has the core's host port, but for the counts at the beginning, and where it starts a run."""
        m.submodules.autorun = autorun = Autorun()
        baked = Signal()
        with m.If(autorun.baked):
            m.d.sync += baked.eq(1)
        m.d.comb += [
            session.baked.eq(baked), autorun.start.eq(session.start),
            autorun.loaded.eq(baked), autorun.granted.eq(1), core.host_wstrb.eq(0xF),
        ]  # fmt: skip
        given = ("host_space", "host_addr", "host_wdata", "host_we", "host_re")
        m.d.comb += [getattr(core, name).eq(getattr(session, name)) for name in given]
        with m.If(autorun.we):
            m.d.comb += [core.host_space.eq(autorun.space), core.host_addr.eq(autorun.addr), core.host_we.eq(1)]
            m.d.comb += core.host_wdata.eq(autorun.data)
        shown = ("host_rdata", "host_rvalid", "host_waiting", "running", "input_busy", "input_over")
        m.d.comb += [getattr(session, name).eq(getattr(core, name)) for name in shown]
