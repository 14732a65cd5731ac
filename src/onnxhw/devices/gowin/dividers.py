"""The dividers of the GW2A's PLL (rPLL) for a frequency.

The phase detector compares ``f_in / input`` with the output divided by ``feedback``, so the output is
``f_in / input * feedback``, and the oscillator inside runs `output_div` times as fast.

Limits of the PLL: those of Apicula's ``gowin_pll`` for a "GW2A-18 C8/I7", which names the data sheet DS226 as its
source; they were not compared with the document itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...errors import UsageError

PHASE_DETECTOR_HZ = (3_000_000, 500_000_000)
"""Phase detector input frequency."""
VCO_HZ = (500_000_000, 1_250_000_000)
"""PLL oscillator frequency."""
OUTPUT_HZ = (3_906_250, 625_000_000)
"""Output clock frequency."""
INPUT_DIVIDERS = FEEDBACK_DIVIDERS = range(1, 65)
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


def _dividers_for(input_hz: int, input_div: int, feedback: int) -> RpllSetting | None:
    """The setting that makes ``input_hz / input_div * feedback``, with an oscillator near the middle of its range; None
    if there is none within the limits."""
    able = [RpllSetting(input_hz, input_div, feedback, output_div) for output_div in OUTPUT_DIVIDERS]
    legal = [setting for setting in able if setting.legal and feedback in FEEDBACK_DIVIDERS]
    return min(legal, key=lambda setting: abs(setting.vco_hz - VCO_AIM), default=None)


@lru_cache(maxsize=8)
def settings(input_hz: int) -> dict[Fraction, RpllSetting]:
    """Every output frequency that an input allows, with its best setting: the one with the fastest phase detector."""
    best: dict[Fraction, RpllSetting] = {}
    for input_div in INPUT_DIVIDERS:
        for feedback in FEEDBACK_DIVIDERS:
            setting = _dividers_for(input_hz, input_div, feedback)
            if setting is not None:
                best.setdefault(setting.output_hz, setting)
    return dict(sorted(best.items()))


def choose(input_hz: int, output_hz: int, where: str = "") -> RpllSetting:
    """The setting that makes `output_hz`, to the Hz; `UsageError` E2310 names the nearest frequencies that can be made.

    `where` goes to the error.
    """
    for input_div in INPUT_DIVIDERS:
        setting = _dividers_for(input_hz, input_div, round(Fraction(output_hz * input_div, input_hz)))
        if setting is not None and round(setting.output_hz) == output_hz:
            return setting
    able = settings(input_hz)
    if not able:
        limits = f"an oscillator must have {mhz(PHASE_DETECTOR_HZ[0])} or more"
        raise UsageError("E2310", f"no clock can be made from {mhz(input_hz)}", where=where, hint=limits)
    below = [output for output in able if output < output_hz][-1:]
    above = [output for output in able if output > output_hz][:1]
    raise UsageError(
        "E2310", f"{mhz(output_hz)} cannot be made from {mhz(input_hz)}",
        where=where, hint=f"the nearest: {' and '.join(mhz(output) for output in below + above)}",
    )  # fmt: skip
