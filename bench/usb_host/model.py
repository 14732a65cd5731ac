"""The complete device with a USB link as compiled designs: `onnxhw.rtl.top.LinkedCore` behind its D+ and D-, driven in
C++."""

import ctypes
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth import ClockDomain, Elaboratable, Module, Signal
from amaranth.back import rtlil

from onnxhw.build.cache import sources
from onnxhw.config import HwConfig
from onnxhw.engines.cxxrtl.build import Progress, build, ports_of
from onnxhw.engines.cxxrtl.core_model import core_library
from onnxhw.engines.cxxrtl.design import CHUNK
from onnxhw.engines.cxxrtl.rtl_device import BlackBox, Libraries, PinModel, driver_text
from onnxhw.engines.cxxrtl.sdram_model import SdramNumbers
from onnxhw.errors import InternalError

DOMAINS = ("usb_io", "usb")
"""Domains of a USB link besides the core's."""
TICK_HZ = 625_000_000 / 13
"""What one PLL makes of 25 MHz for 48 MHz (0.16 % more): the clock of simulated devices, so that the bits of host and
device drift as they do on a board."""
DP, DM, DRIVEN, PULLUP, BUSY = 1, 2, 4, 8, 16
"""Bits of a level on the bus, and of what a tick leaves in a trace (see usb_line.cc)."""
ANSWER = 6000
"""Ticks after which an answer that has not ended is cut."""
IDS = (0x1209, 0x0001)
"""Vendor and product of a simulated device: pid.codes' ids for tests."""


class Clocked(Elaboratable):
    """A component with a port for the clock of each of its domains, and no resets."""

    def __init__(self, component: Any) -> None:
        self.component = component
        self.clocks = {"sync": Signal(name="clk"), **{name: Signal(name=f"{name}_clk") for name in DOMAINS}}

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for name, clock in self.clocks.items():
            m.domains += (domain := ClockDomain(name, reset_less=True))
            m.d.comb += domain.clk.eq(clock)
        m.submodules.top = self.component
        return m


def usb_libraries(config: HwConfig, *, clock_hz: int, progress: Progress | None = None) -> Libraries:
    """The compiled device of a configuration; from the cache, if there, without elaborating it.

    `ToolError` E7120 if luna-usb is not installed.
    """
    def make() -> str:
        from onnxhw.rtl.external.pads import with_pads
        from onnxhw.rtl.top import LinkedCore

        hole = BlackBox(config.external)
        device = with_pads(LinkedCore(config, clock_hz=clock_hz, core=hole, usb=IDS))
        top = Clocked(device)
        ports = ports_of(device)
        text: str = rtlil.convert(top, ports=[*top.clocks.values(), *ports, *hole.signals.values()], emit_src=False)
        return text

    parts = {
        "design": "device with a USB link around its core",
        "config": config.to_json(),
        "clock": str(clock_hz),
        "sources": sources("rtl/top.py"),
        "own model": Path(__file__).read_text(),
        "python": sys.version,
        **{name: metadata.version(name) for name in ("amaranth", "luna-usb", "usb-protocol")},
    }
    driver = driver_text("sdram_part.h", Path(__file__).with_name("usb_line.cc"))
    label = f"device {config.name} at {clock_hz / 1e6:g} MHz, USB"
    around = build(make, drivers=[driver], parts=parts, label=label, progress=progress)
    return Libraries(core_library(config, progress=progress).path, around.path, config.external)


class UsbModel(PinModel):
    """A running device and the host's end of its cable; a context manager.

    Every level of the bus is there in every tick of the device's fast USB clock (`TICK_HZ`). Nobody driving, the bus
    is J if the device has its pull-up connected (also without a host), else SE0. `clock_hz` is the core's.
    """

    def __init__(self, libraries: Libraries, *, clock_hz: int) -> None:
        memory = SdramNumbers.of(libraries.external).array() if libraries.external else None
        super().__init__(libraries, "usb", clock_hz=clock_hz, ratio=clock_hz / TICK_HZ, more=[memory])
        for name in ("run", "ticks", "cycles"):
            self.around.library[f"onnxhw_usb_{name}"].restype = ctypes.c_uint64
        self.around.library.onnxhw_usb_violation.restype = ctypes.c_char_p

    def run(self, levels: bytes = b"", ticks: int = 0, *, rest: int = 0, listen: bool = False) -> bytes:
        """Drive `levels`, one per tick (`DP`, `DM`; without `DRIVEN`: nothing), then for `ticks` ticks the level
        `rest`.

        With `listen` a device that begins to drive within these ticks is heard to its end, and one tick on. Returns
        the level of the bus in each tick, with `DRIVEN` where the device drives it. `InternalError` E1470 if the design
        violates a rule of its external memory.
        """
        trace = b""
        while True:
            portion = min(ticks, max(0, CHUNK - len(levels)))
            room = ctypes.create_string_buffer(len(levels) + max(portion, ANSWER))
            done = self.around.library.onnxhw_usb_run(
                self._pins, levels, ctypes.c_uint64(len(levels)), ctypes.c_uint64(portion), ctypes.c_uint8(rest),
                ctypes.c_bool(listen), room,
            )  # fmt: skip
            if violation := self.around.library.onnxhw_usb_violation(self._pins):
                raise InternalError("E1470", f"a rule of the external memory was violated in {violation.decode()}")
            trace += room.raw[:done]
            ticks -= portion
            if not ticks or (listen and done != len(levels) + portion):
                return trace
            levels = b""

    @property
    def ticks(self) -> int:
        """Ticks since the start."""
        return int(self.around.library.onnxhw_usb_ticks(self._pins))

    @property
    def cycles(self) -> int:
        """Cycles of the core's clock since the start."""
        return int(self.around.library.onnxhw_usb_cycles(self._pins))
