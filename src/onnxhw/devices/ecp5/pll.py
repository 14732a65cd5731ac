"""`PllClocked`: a design with the core's clock, made from the board's oscillator, with one EHXPLLL of the ECP5; with a
USB link a second one makes its clocks."""

from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from .dividers import USB_RATIO, PllSetting, choose, choose_usb


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
