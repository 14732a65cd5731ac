"""`RpllClocked`: a design with the core's clock, made from the board's oscillator with one rPLL of the GW2A.

The phase detector compares ``f_in / input`` with the output divided by ``feedback``, so the output is
``f_in / input * feedback``, and the oscillator inside runs `output_div` times as fast.

Limits of the PLL: those of Apicula's ``gowin_pll`` for a "GW2A-18 C8/I7", which names the data sheet DS226 as its
source; they were not compared with the document itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from amaranth import ClockDomain, ClockSignal, Const, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from ...errors import UsageError

PHASE_DETECTOR_HZ = (3_000_000, 500_000_000)
"""Phase detector input frequency."""
VCO_HZ = (500_000_000, 1_250_000_000)
"""PLL oscillator frequency."""
OUTPUT_HZ = (3_906_250, 625_000_000)
"""Output clock frequency."""
INPUT_DIVIDERS = range(1, 65)
OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)
VCO_AIM = 875_000_000
"""The middle of the oscillator's range."""


@dataclass(frozen=True)
class RpllSetting:
    """The three dividers, and what they make of an input frequency."""

    input_hz: int
    input_div: int
    feedback_div: int
    output_div: int

    @property
    def detector_hz(self) -> Fraction:
        """What the phase detector compares."""
        return Fraction(self.input_hz, self.input_div)

    @property
    def output_hz(self) -> Fraction:
        """The clock that comes out, exactly."""
        return self.detector_hz * self.feedback_div

    @property
    def vco_hz(self) -> Fraction:
        """The oscillator inside."""
        return self.output_hz * self.output_div

    @property
    def legal(self) -> bool:
        """Whether all limits are kept."""
        pairs = ((self.detector_hz, PHASE_DETECTOR_HZ), (self.vco_hz, VCO_HZ), (self.output_hz, OUTPUT_HZ))
        return all(low <= value <= high for value, (low, high) in pairs)


def mhz(hz: int | Fraction) -> str:
    """A frequency for people."""
    return f"{float(hz) / 1e6:.6f}".rstrip("0").rstrip(".") + " MHz"


@lru_cache(maxsize=8)
def settings(input_hz: int) -> dict[Fraction, RpllSetting]:
    """Every output frequency that an input allows, with its best setting: the fastest phase detector, then an
    oscillator near the middle of its range."""
    best: dict[Fraction, tuple[tuple[int, Fraction], RpllSetting]] = {}
    for input_div in INPUT_DIVIDERS:
        for feedback in INPUT_DIVIDERS:
            for output_div in OUTPUT_DIVIDERS:
                setting = RpllSetting(input_hz, input_div, feedback, output_div)
                if not setting.legal:
                    continue
                rank = (input_div, abs(setting.vco_hz - VCO_AIM))
                if setting.output_hz not in best or rank < best[setting.output_hz][0]:
                    best[setting.output_hz] = (rank, setting)
    return {output: setting for output, (_, setting) in sorted(best.items())}


def choose(input_hz: int, output_hz: int) -> RpllSetting:
    """The setting that makes `output_hz`, to the Hz; `UsageError` E2310 names the nearest frequencies that can be made.
    """
    able = settings(input_hz)
    found = next((setting for output, setting in able.items() if round(output) == output_hz), None)
    if found is not None:
        return found
    if not able:
        raise UsageError("E2310", f"no clock can be made from {mhz(input_hz)}")
    below = [output for output in able if output < output_hz][-1:]
    above = [output for output in able if output > output_hz][:1]
    raise UsageError(
        "E2310", f"{mhz(output_hz)} cannot be made from {mhz(input_hz)}",
        hint=f"the nearest: {' and '.join(mhz(output) for output in below + above)}",
    )  # fmt: skip


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
