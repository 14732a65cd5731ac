"""The dividers of the ECP5's PLL (EHXPLLL) for a frequency.

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

Rank = tuple[bool, int, Fraction]


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


def _divided(input_hz: int, input_div: int, output_div: int, factor: int) -> tuple[Rank, PllSetting]:
    """The setting that makes ``input_hz / input_div * factor / output_div``, legal or not, and its rank: the best one
    has a single output, then the fastest phase detector, then an oscillator near the middle of its range.

    Two outputs need no feedback divider: what it multiplies, CLKOP's divider does as well.
    """
    feedback, rest = divmod(factor, output_div)
    if rest == 0 and feedback in DIVIDERS:
        setting = PllSetting(input_hz, input_div, feedback, output_div)
    else:
        setting = PllSetting(input_hz, input_div, 1, output_div, loop_div=factor)
    return (setting.loop_div != 0, input_div, abs(setting.vco_hz - VCO_AIM)), setting


def _input_dividers(input_hz: int) -> range:
    """Those with which the phase detector is in its range; none for an input that is not."""
    if not INPUT_HZ[0] <= input_hz <= INPUT_HZ[1]:
        return range(0)
    return range(1, min(input_hz // PHASE_DETECTOR_HZ[0], DIVIDERS[-1]) + 1)


@lru_cache(maxsize=8)
def settings(input_hz: int) -> dict[Fraction, PllSetting]:
    """Every output frequency that an input allows, with its best setting."""
    best: dict[Fraction, tuple[Rank, PllSetting]] = {}
    for input_div in _input_dividers(input_hz):
        detector = Fraction(input_hz, input_div)
        for factor in range(math.ceil(VCO_HZ[0] / detector), math.floor(VCO_HZ[1] / detector) + 1):
            for output_div in DIVIDERS:
                ranked = _divided(input_hz, input_div, output_div, factor)
                output = ranked[1].output_hz
                if ranked[1].legal and (output not in best or ranked[0] < best[output][0]):
                    best[output] = ranked
    return {output: setting for output, (_, setting) in sorted(best.items())}


def choose(input_hz: int, output_hz: int, speed: str = "6", where: str = "") -> PllSetting:
    """The setting that makes `output_hz`, to the Hz; `UsageError` E2310 names the nearest frequencies that can be made.

    `speed` is the device's speed grade, which limits what the clock network carries; `where` goes to the error.
    """
    most = NETWORK_HZ[speed]
    able = [
        ranked
        for input_div in _input_dividers(input_hz)
        for output_div in DIVIDERS
        if (factor := round(Fraction(output_hz * input_div * output_div, input_hz)))
        and (ranked := _divided(input_hz, input_div, output_div, factor))[1].legal
        and round(ranked[1].output_hz) == output_hz
        and ranked[1].output_hz <= most
    ]
    if able:
        return min(able, key=lambda ranked: ranked[0])[1]
    outputs = [output for output in settings(input_hz) if output <= most]
    if not outputs:
        limits = f"an oscillator must have {mhz(max(INPUT_HZ[0], PHASE_DETECTOR_HZ[0]))} to {mhz(INPUT_HZ[1])}"
        raise UsageError("E2310", f"no clock can be made from {mhz(input_hz)}", where=where, hint=limits)
    place = bisect.bisect_left(outputs, output_hz)
    limit = f", and {mhz(most)} is the most that the clock network carries" if place == len(outputs) else ""
    raise UsageError(
        "E2310",
        f"{mhz(output_hz)} cannot be made from {mhz(input_hz)}{limit}",
        where=where,
        hint=f"the nearest: {' and '.join(mhz(output) for output in outputs[max(0, place - 1) : place + 1])}",
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
