"""The complete device with a USB link as compiled designs: `onnxhw.rtl.top.Device` behind its D+ and D-, driven in
C++."""

import ctypes
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth import ClockDomain, Elaboratable, Module, Signal
from amaranth.back import rtlil

from ...build.cache import sources
from ...closeable import Closeable
from ...config import HwConfig
from ...errors import UsageError
from .build import Progress, build
from .core_model import core_library
from .design import CHUNK, Design
from .device_model import INPUTS, OUTPUTS, BlackBox, Libraries, driver_text, pointers

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

    `ToolError` E7120 if luna-usb is not installed; `UsageError` E2470 for a configuration with external memory.
    """
    if config.external is not None:
        hint = "a serial line (onnxhw serve without --usb), or the preset without external memory"
        raise UsageError("E2470", "simulated devices with a USB link have no external memory", hint=hint)

    def make() -> str:
        from ...rtl.top import Device

        hole = BlackBox()
        device = Device(config, clock_hz=clock_hz, core=hole, usb=IDS)
        top = Clocked(device)
        ports = [getattr(device, name) for name in device.signature.members]
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
    driver = driver_text("usb_line.cc")
    label = f"device {config.name} at {clock_hz / 1e6:g} MHz, USB"
    around = build(make, drivers=[driver], parts=parts, label=label, progress=progress)
    return Libraries(core_library(config, progress=progress).path, around.path)


class UsbModel(Closeable):
    """A running device and the host's end of its cable; a context manager.

    Every level of the bus is there in every tick of the device's fast USB clock (`TICK_HZ`). Nobody driving, the bus
    is J if the device has its pull-up connected (also without a host), else SE0.

    Members: `core`, `around` (the two designs), `clock_hz` of the core.
    """

    def __init__(self, libraries: Libraries, *, clock_hz: int) -> None:
        self.clock_hz = clock_hz
        self.core, self.around = core, around = Design(libraries.core), Design(libraries.around)
        inside = [core.item(name).next for name in ("clk", *INPUTS)]
        inside += [core.item(name).curr for name in OUTPUTS.values()]
        outside = [around.item("clk").next, *(around.item(f"core_{name}").curr for name in INPUTS)]
        outside += [around.item(f"core_{name}").next for name in OUTPUTS]
        functions = (core.library[name] for name in ("onnxhw_cycle", "cxxrtl_eval", "cxxrtl_commit"))
        call = around.library
        call.onnxhw_usb_create.restype = ctypes.c_void_p
        for name in ("run", "ticks", "cycles"):
            call[f"onnxhw_usb_{name}"].restype = ctypes.c_uint64
        self._usb: ctypes.c_void_p | None = ctypes.c_void_p(
            call.onnxhw_usb_create(
                around.handle,
                ctypes.c_double(clock_hz / TICK_HZ),
                pointers(outside),
                pointers(inside),
                pointers([core.handle, *functions]),
            )
        )

    def close(self) -> None:
        """Release the designs."""
        if self._usb is not None:
            self.around.library.onnxhw_usb_destroy(self._usb)
            self._usb = None
        self.around.close()
        self.core.close()

    def run(self, levels: bytes = b"", ticks: int = 0, *, rest: int = 0, listen: bool = False) -> bytes:
        """Drive `levels`, one per tick (`DP`, `DM`; without `DRIVEN`: nothing), then for `ticks` ticks the level
        `rest`.

        With `listen` a device that begins to drive within these ticks is heard to its end, and one tick on. Returns
        the level of the bus in each tick, with `DRIVEN` where the device drives it.
        """
        trace = b""
        while True:
            portion = min(ticks, max(0, CHUNK - len(levels)))
            room = ctypes.create_string_buffer(len(levels) + max(portion, ANSWER))
            done = self.around.library.onnxhw_usb_run(
                self._usb, levels, ctypes.c_uint64(len(levels)), ctypes.c_uint64(portion), ctypes.c_uint8(rest),
                ctypes.c_bool(listen), room,
            )  # fmt: skip
            trace += room.raw[:done]
            ticks -= portion
            if not ticks or (listen and done != len(levels) + portion):
                return trace
            levels = b""

    @property
    def ticks(self) -> int:
        """Ticks since the start."""
        return int(self.around.library.onnxhw_usb_ticks(self._usb))

    @property
    def cycles(self) -> int:
        """Cycles of the core's clock since the start."""
        return int(self.around.library.onnxhw_usb_cycles(self._usb))
