"""`Clocked`: a design with the core's clock, made from the board's oscillator, with one EHXPLLL of the ECP5.

With the feedback from the primary output, ``f_out = f_in * feedback / input`` and the oscillator inside runs at
``f_out * output``. Limits from the data sheet (FPGA-DS-02012, sysCLOCK PLL timing).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from ..errors import UsageError

VCO_HZ = (400_000_000, 800_000_000)
PHASE_DETECTOR_HZ = (3_125_000, 400_000_000)
INPUT_HZ = (8_000_000, 400_000_000)
OUTPUT_HZ = (3_125_000, 400_000_000)
DIVIDERS = range(1, 129)
VCO_AIM = 600_000_000
"""The middle of the oscillator's range."""


@dataclass(frozen=True)
class PllSetting:
    """The three dividers, and what they make of an input frequency."""

    input_hz: int
    input_div: int
    feedback_div: int
    output_div: int

    @property
    def output_hz(self) -> Fraction:
        """The clock that comes out, exactly."""
        return Fraction(self.input_hz * self.feedback_div, self.input_div)

    @property
    def vco_hz(self) -> Fraction:
        """The oscillator inside."""
        return self.output_hz * self.output_div

    @property
    def legal(self) -> bool:
        """Whether every frequency is within the device's limits."""
        detector = Fraction(self.input_hz, self.input_div)
        pairs = (
            (Fraction(self.input_hz), INPUT_HZ),
            (detector, PHASE_DETECTOR_HZ),
            (self.vco_hz, VCO_HZ),
            (self.output_hz, OUTPUT_HZ),
        )
        return all(low <= value <= high for value, (low, high) in pairs)


@lru_cache(maxsize=8)
def settings(input_hz: int) -> tuple[PllSetting, ...]:
    """Every legal setting for an input, one (the best) per output frequency."""
    best: dict[Fraction, tuple[tuple[int, Fraction], PllSetting]] = {}
    for input_div in DIVIDERS:
        for feedback_div in DIVIDERS:
            output = Fraction(input_hz * feedback_div, input_div)
            ideal = int(VCO_AIM / output)
            for output_div in {max(1, min(128, ideal)), max(1, min(128, ideal + 1))}:
                setting = PllSetting(input_hz, input_div, feedback_div, output_div)
                if not setting.legal:
                    continue
                rank = (input_div, abs(setting.vco_hz - VCO_AIM))
                if output not in best or rank < best[output][0]:
                    best[output] = (rank, setting)
    return tuple(setting for _, setting in best.values())


def choose(input_hz: int, output_hz: int) -> PllSetting:
    """The setting that makes `output_hz` exactly; `UsageError` E2310 names the nearest frequency that can be made."""
    found = settings(input_hz)
    for setting in found:
        if setting.output_hz == output_hz:
            return setting
    if not found:
        raise UsageError("E2310", f"no clock can be made from {input_hz / 1e6:g} MHz")
    near = min(found, key=lambda setting: (abs(setting.output_hz - output_hz), setting.output_hz))
    raise UsageError(
        "E2310",
        f"{output_hz / 1e6:g} MHz cannot be made exactly from {input_hz / 1e6:g} MHz",
        hint=f"the nearest is {float(near.output_hz) / 1e6:g} MHz",
    )


class Clocked(Elaboratable):
    """A design whose domain "sync" runs at `output_hz`, made from the board's clock `resource`.

    The domain has no reset: its clock stands still until the PLL has locked, so that every register keeps the value of
    the configuration until the first edge of a good clock. A reset would be a net to every corner of the device that
    must settle within a cycle. The design must not make the domain itself.
    """

    def __init__(self, design: Any, *, resource: str, input_hz: int, output_hz: int) -> None:
        self.design = design
        self.resource = resource
        self.setting = choose(input_hz, output_hz)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.pin = pin = io.Buffer("i", platform.request(self.resource, 0, dir="-"))
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.domains.pll = ClockDomain("pll", reset_less=True, local=True)
        locked, clock, settled = Signal(), Signal(), Signal()
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            a_FREQUENCY_PIN_CLKI=f"{self.setting.input_hz / 1e6:g}",
            a_FREQUENCY_PIN_CLKOP=f"{float(self.setting.output_hz) / 1e6:g}",
            p_CLKI_DIV=self.setting.input_div,
            p_CLKFB_DIV=self.setting.feedback_div,
            p_CLKOP_DIV=self.setting.output_div,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=self.setting.output_div - 1,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            p_OUTDIVIDER_MUXA="DIVA",
            p_OUTDIVIDER_MUXB="DIVB",
            p_OUTDIVIDER_MUXC="DIVC",
            p_OUTDIVIDER_MUXD="DIVD",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_PLLRST_ENA="DISABLED",
            i_CLKI=pin.i, i_CLKFB=clock, i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0,
            i_PHASEDIR=1, i_PHASESTEP=1, i_PHASELOADREG=1, i_PLLWAKESYNC=0, i_ENCLKOP=0,
            o_CLKOP=clock, o_LOCK=locked,
        )  # fmt: skip
        m.d.comb += ClockSignal("pll").eq(clock)
        m.submodules.settled = FFSynchronizer(locked, settled, o_domain="pll", stages=3)
        # The gate opens and closes while its clock is low.
        m.submodules.gate = Instance("DCCA", i_CLKI=clock, i_CE=settled, o_CLKO=ClockSignal("sync"))
        m.submodules.design = self.design
        return m
