"""`PllClocked`: a design with the core's clock, made from the board's oscillator, with one EHXPLLL of the ECP5; with a
USB link a second one makes its clocks.

The phase detector compares ``f_in / input`` with the output CLKOP divided by ``feedback``, so that the oscillator
inside runs at ``f_in / input * feedback * loop``, where ``loop`` is CLKOP's divider. The core's clock is CLKOP itself,
or the second output CLKOS with a divider of its own: then every multiple of the detector's frequency within the
oscillator's range, over any divider, can be made.

Limits of the PLL: ECP5 and ECP5-5G Family Data Sheet (FPGA-DS-02012), table "sysCLOCK PLL Timing". They were compared
with quotations of that table (prjtrellis' ecppll and LiteX use the same), not with the document itself. The limit of
the clock network, fMAX_PRI of the table "External Switching Characteristics", could not be confirmed in this way.
"""

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from ...errors import UsageError

INPUT_HZ = (8_000_000, 400_000_000)
"""fIN, input clock frequency (CLKI, CLKFB)."""
PHASE_DETECTOR_HZ = (10_000_000, 400_000_000)
"""fPFD, phase detector input frequency."""
VCO_HZ = (400_000_000, 800_000_000)
"""fVCO, PLL oscillator frequency."""
OUTPUT_HZ = (3_125_000, 400_000_000)
"""fOUT, output clock frequency (CLKOP, CLKOS)."""
NETWORK_HZ = {"6": 257_000_000, "7": 303_000_000, "8": 370_000_000}
"""fMAX_PRI, frequency of the primary clock tree, by speed grade; not confirmed, see above."""
DIVIDERS = range(1, 129)
VCO_AIM = 600_000_000
"""The middle of the oscillator's range."""
USB_HZ = 48_000_000
"""The fast clock of a USB link; the slow one is a quarter of it."""
USB_WITHIN = Fraction(25, 10_000)
"""How far full speed may be off: 0.25 % (USB 2.0, 7.1.11)."""
USB_RATIO = 4


def mhz(hz: int | Fraction) -> str:
    """A frequency for people: MHz to the Hz, and the exact fraction where that is none: ``33.333333 MHz (100/3)``."""
    exact = Fraction(hz) / 1_000_000
    rounded = f"{round(exact * 1_000_000) / 1e6:.6f}".rstrip("0").rstrip(".")
    return f"{rounded} MHz" + ("" if 1_000_000 % exact.denominator == 0 else f" ({exact})")


@dataclass(frozen=True)
class PllSetting:
    """The four dividers, and what they make of an input frequency. With `loop_div` 0, CLKOP is feedback and output."""

    input_hz: int
    input_div: int
    feedback_div: int
    output_div: int
    loop_div: int = 0

    @property
    def detector_hz(self) -> Fraction:
        """What the phase detector compares."""
        return Fraction(self.input_hz, self.input_div)

    @property
    def vco_hz(self) -> Fraction:
        """The oscillator inside."""
        return self.detector_hz * self.feedback_div * (self.loop_div or self.output_div)

    @property
    def output_hz(self) -> Fraction:
        """The clock that comes out, exactly."""
        return self.vco_hz / self.output_div

    @property
    def loop_hz(self) -> Fraction:
        """The output that is fed back, before `feedback_div`."""
        return self.detector_hz * self.feedback_div

    @property
    def legal(self) -> bool:
        """Whether every frequency is within the device's limits."""
        pairs = (
            (Fraction(self.input_hz), INPUT_HZ),
            (self.loop_hz, INPUT_HZ),  # as an input, CLKFB
            (self.detector_hz, PHASE_DETECTOR_HZ),
            (self.vco_hz, VCO_HZ),
            (self.loop_hz, OUTPUT_HZ),
            (self.output_hz, OUTPUT_HZ),
        )
        within = all(low <= value <= high for value, (low, high) in pairs)
        return within and {self.input_div, self.feedback_div, self.output_div, self.loop_div or 1} <= set(DIVIDERS)


@lru_cache(maxsize=8)
def settings(input_hz: int) -> dict[Fraction, PllSetting]:
    """Every output frequency that an input allows, with its best setting.

    The best one has a single output, then the fastest phase detector, then an oscillator near the middle of its range.
    Two outputs need no feedback divider: what it multiplies, CLKOP's divider does as well.
    """
    best: dict[Fraction, tuple[tuple[bool, int, Fraction], PllSetting]] = {}
    for input_div in DIVIDERS:
        detector = Fraction(input_hz, input_div)
        for factor in range(math.ceil(VCO_HZ[0] / detector), math.floor(VCO_HZ[1] / detector) + 1):
            for output_div in DIVIDERS:
                feedback, rest = divmod(factor, output_div)
                if rest == 0 and feedback in DIVIDERS:
                    setting = PllSetting(input_hz, input_div, feedback, output_div)
                else:
                    setting = PllSetting(input_hz, input_div, 1, output_div, loop_div=factor)
                if not setting.legal:
                    continue
                rank = (setting.loop_div != 0, input_div, abs(setting.vco_hz - VCO_AIM))
                if setting.output_hz not in best or rank < best[setting.output_hz][0]:
                    best[setting.output_hz] = (rank, setting)
        if detector < PHASE_DETECTOR_HZ[0]:
            break
    return {output: setting for output, (_, setting) in sorted(best.items())}


def choose(input_hz: int, output_hz: int, speed: str = "6") -> PllSetting:
    """The setting that makes `output_hz`, to the Hz; `UsageError` E2310 names the nearest frequencies that can be made.

    `speed` is the device's speed grade, which limits what the clock network carries.
    """
    most, able = NETWORK_HZ[speed], settings(input_hz)
    outputs = list(able)
    outputs = outputs[: bisect.bisect_right(outputs, most)]
    if not outputs:
        raise UsageError("E2310", f"no clock can be made from {mhz(input_hz)}")
    place = bisect.bisect_left(outputs, output_hz)
    near = outputs[max(0, place - 1) : place + 1]
    for output in near:
        if round(output) == output_hz:
            return able[output]
    names = " and ".join(mhz(output) for output in near)
    limit = f", and {mhz(most)} is the most that the clock network carries" if place == len(outputs) else ""
    raise UsageError(
        "E2310",
        f"{mhz(output_hz)} cannot be made from {mhz(input_hz)}{limit}",
        hint=f"the nearest: {names}",
    )


@lru_cache(maxsize=8)
def choose_usb(input_hz: int) -> PllSetting:
    """The setting nearest to 48 MHz of one PLL, whose output and a quarter of it are the clocks of a USB link.

    `UsageError` E2310 if none is within 0.25 %. Exactly 48 MHz from 25 MHz takes two PLLs in a chain, because the phase
    detector of one would compare at 5 MHz, below its limit; one makes 48.077 MHz (+0.16 %).
    """
    able = [setting for setting in settings(input_hz).values() if USB_RATIO * setting.output_div in DIVIDERS]
    best = min(able, key=lambda setting: abs(setting.output_hz - USB_HZ), default=None)
    if best is None or abs(best.output_hz - USB_HZ) > USB_WITHIN * USB_HZ:
        near = f"; the nearest: {mhz(best.output_hz)}" if best else ""
        raise UsageError(
            "E2310", f"USB needs 48 MHz within 0.25 %, which cannot be made from {mhz(input_hz)}{near}",
            hint="--link uart, or another oscillator",
        )  # fmt: skip
    return best


class PllClocked(Elaboratable):
    """A design whose domain "sync" runs at `output_hz`, made from the board's clock `resource`.

    The domain has no reset: its clock stands still until the PLL has locked, so that every register keeps the value of
    the configuration until the first edge of a good clock. A reset would be a net to every corner of the device that
    must settle within a cycle. The design must not make the domain itself. With `usb` the same holds for domains
    "usb_io", 48 MHz within 0.25 %, and "usb", a quarter of it, whose edges are at edges of "usb_io".
    """

    def __init__(
        self, design: Any, *, resource: str, input_hz: int, output_hz: int, speed: str = "6", usb: bool = False
    ) -> None:
        self.design, self.config = design, getattr(design, "config", None)
        self.resource = resource
        self.setting = choose(input_hz, output_hz, speed)
        self.usb = choose_usb(input_hz) if usb else None

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.pin = pin = io.Buffer("i", platform.request(self.resource, 0, dir="-"))
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.domains.pll = ClockDomain("pll", reset_less=True, local=True)
        locked, loop, clock, settled = Signal(), Signal(), Signal(), Signal()
        m.submodules.pll = _pll(self.setting, pin.i, loop, clock, locked)
        m.d.comb += ClockSignal("pll").eq(clock)
        m.submodules.settled = FFSynchronizer(locked, settled, o_domain="pll", stages=3)
        # The gate opens and closes while its clock is low.
        m.submodules.gate = Instance("DCCA", i_CLKI=clock, i_CE=settled, o_CLKO=ClockSignal("sync"))
        if self.usb:
            self._add_usb(m, self.usb, pin.i)
        m.submodules.design = self.design
        return m

    def _add_usb(self, m: Module, setting: PllSetting, pin: Any) -> None:
        """The clocks of a USB link, from a PLL of their own."""
        m.domains.usb_io = ClockDomain("usb_io", reset_less=True)
        m.domains.usb = ClockDomain("usb", reset_less=True)
        m.domains.usb_pll = ClockDomain("usb_pll", reset_less=True, local=True)
        names = ("locked", "loop", "fast", "slow", "settled")
        locked, loop, fast, slow, settled = (Signal(name=f"usb_{name}") for name in names)
        m.submodules.usb_pll = _pll(setting, pin, loop, fast, locked, slow)
        m.d.comb += ClockSignal("usb_pll").eq(slow)
        m.submodules.usb_settled = FFSynchronizer(locked, settled, o_domain="usb_pll", stages=3)
        for name, clock in (("usb_io", fast), ("usb", slow)):
            m.submodules[f"{name}_gate"] = Instance("DCCA", i_CLKI=clock, i_CE=settled, o_CLKO=ClockSignal(name))


def _pll(setting: PllSetting, pin: Any, loop: Any, clock: Any, locked: Any, quarter: Any = None) -> Instance:
    """The PLL: `clock` is CLKOP and fed back, or CLKOS, and CLKOP (`loop`) is fed back. `quarter` is the next output,
    with
    edges at edges of `clock`."""
    outputs = {"CLKOP": (setting.output_div, clock)}
    if setting.loop_div:
        outputs = {"CLKOP": (setting.loop_div, loop), "CLKOS": (setting.output_div, clock)}
    if quarter is not None:
        outputs["CLKOS2" if setting.loop_div else "CLKOS"] = (USB_RATIO * setting.output_div, quarter)
    arguments: dict[str, Any] = {}
    for name, (divider, net) in outputs.items():
        arguments |= {
            f"a_FREQUENCY_PIN_{name}": f"{float(setting.vco_hz / divider) / 1e6:g}",
            f"p_{name}_ENABLE": "ENABLED", f"p_{name}_DIV": divider, f"p_{name}_CPHASE": divider - 1,
            f"p_{name}_FPHASE": 0, f"i_EN{name}": 0, f"o_{name}": net,
        }  # fmt: skip
    return Instance(
        "EHXPLLL",
        a_ICP_CURRENT="12",
        a_LPF_RESISTOR="8",
        a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        a_FREQUENCY_PIN_CLKI=f"{setting.input_hz / 1e6:g}",
        p_CLKI_DIV=setting.input_div,
        p_CLKFB_DIV=setting.feedback_div,
        p_FEEDBK_PATH="CLKOP",
        p_OUTDIVIDER_MUXA="DIVA",
        p_OUTDIVIDER_MUXB="DIVB",
        p_OUTDIVIDER_MUXC="DIVC",
        p_OUTDIVIDER_MUXD="DIVD",
        p_INTFB_WAKE="DISABLED",
        p_STDBY_ENABLE="DISABLED",
        p_DPHASE_SOURCE="DISABLED",
        p_PLLRST_ENA="DISABLED",
        i_CLKI=pin, i_CLKFB=outputs["CLKOP"][1], i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0,
        i_PHASEDIR=1, i_PHASESTEP=1, i_PHASELOADREG=1, i_PLLWAKESYNC=0, o_LOCK=locked,
        **arguments,
    )  # fmt: skip
