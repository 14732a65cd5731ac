"""`RpllClocked`: a design with the core's clock, made from the board's oscillator with one rPLL of the GW2A."""

from typing import Any

from amaranth import ClockDomain, ClockSignal, Const, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from .dividers import choose


class RpllClocked(Elaboratable):
    """A design whose domain "sync" runs at `output_hz`, made from the board's clock `resource`.

    The domain has no reset: its clock stands still until the PLL has locked, so that every register keeps the value of
    the configuration until the first edge of a good clock. The design must not make the domain itself.
    """

    def __init__(self, design: Any, *, resource: str, input_hz: int, output_hz: int) -> None:
        self.design, self.config = design, getattr(design, "config", None)
        self.resource = resource
        self.setting = choose(input_hz, output_hz)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.pin = pin = io.Buffer("i", platform.request(self.resource, 0, dir="-"))
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.domains.pll = ClockDomain("pll", reset_less=True, local=True)
        locked, settled = Signal(), Signal()
        setting = self.setting
        m.submodules.pll = Instance(
            "rPLL",
            p_DEVICE="GW2A-18C", p_FCLKIN=f"{setting.input_hz / 1e6:g}",
            p_IDIV_SEL=setting.input_div - 1, p_FBDIV_SEL=setting.feedback_div - 1, p_ODIV_SEL=setting.output_div,
            p_DYN_IDIV_SEL="false", p_DYN_FBDIV_SEL="false", p_DYN_ODIV_SEL="false", p_DYN_DA_EN="false",
            p_PSDA_SEL="0000", p_DUTYDA_SEL="1000", p_CLKFB_SEL="internal", p_CLKOUT_BYPASS="false",
            p_CLKOUTP_BYPASS="false", p_CLKOUTD_BYPASS="false", p_DYN_SDIV_SEL=2, p_CLKOUTD_SRC="CLKOUT",
            p_CLKOUTD3_SRC="CLKOUT", p_CLKOUT_FT_DIR=Const(1, 1), p_CLKOUTP_FT_DIR=Const(1, 1),
            p_CLKOUT_DLY_STEP=0, p_CLKOUTP_DLY_STEP=0,
            i_CLKIN=pin.i, i_CLKFB=0, i_RESET=0, i_RESET_P=0, i_FBDSEL=Const(0, 6), i_IDSEL=Const(0, 6),
            i_ODSEL=Const(0, 6), i_PSDA=Const(0, 4), i_DUTYDA=Const(0, 4), i_FDLY=Const(0, 4),
            o_CLKOUT=ClockSignal("pll"), o_LOCK=locked,
        )  # fmt: skip
        m.submodules.settled = FFSynchronizer(locked, settled, o_domain="pll", stages=3)
        m.submodules.gate = Instance("DQCE", i_CLKIN=ClockSignal("pll"), i_CE=settled, o_CLKOUT=ClockSignal("sync"))
        m.submodules.design = self.design
        return m
