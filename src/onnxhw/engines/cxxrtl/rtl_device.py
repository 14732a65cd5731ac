"""The complete device as compiled designs: `onnxhw.rtl.top.LinkedCore` behind its serial pins, driven in C++.

The core is the library that `CxxrtlEngine` uses, so a configuration that was simulated once is not compiled again.
What is around it (serial line, loader, description) is `LinkedCore` itself with a hole in place of the core, whose
ports lead out; it is small and compiles in seconds. `RtlDevice` runs both in step.
"""

import ctypes
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, cast

from amaranth import Elaboratable, Module, Signal, Value

from ...build.cache import sources
from ...closeable import Closeable
from ...config import HwConfig
from ...errors import InternalError
from ...external import ExternalMemory
from .build import Progress, build, elaborate, ports_of
from .core_model import core_library
from .design import CHUNK, Design
from .sdram_model import SdramNumbers

ROOM = 4096
"""Bytes that one call can receive; it returns early when they have come."""
INPUTS = {"host_space": 4, "host_addr": 24, "host_wdata": 32, "host_wstrb": 4, "host_we": 1, "host_re": 1}
"""Inputs of the core with their widths, in the order of ``core_ports`` in core_part.h."""
WIDTHS = {**INPUTS, "host_rdata": 32, "host_rvalid": 1, "running": 1, "input_free": 1, "host_waiting": 1,
          "input_busy": 1, "input_over": 1}  # fmt: skip
"""All ports of the core."""
OUTPUTS = {
    "host_rdata": "top host_rdata",
    "host_rvalid": "top host_rvalid",
    "running": "top control running",
    "input_free": "top control input_free",
    "host_waiting": "top host_waiting",
    "input_busy": "top inputs busy",
    "input_over": "top inputs complete",
}
"""Outputs of the core in that order, and the registers that they show: a register is right without settling."""
FUNCTIONS = ("onnxhw_cycle", "cxxrtl_eval", "cxxrtl_commit", "onnxhw_settle")
"""Functions of the core's library, in the order of ``core_functions`` in core_part.h."""
SHOWN = ("external__request__payload", "external__request__valid", "external__w_data", "asks", "clear", "stopped")
"""What a core with external memory shows to the controller beside it, and to the link."""
SEEN = ("external__request__ready", "external__w_next", "external__r_data", "external__r_valid", "started")
"""What it sees of it."""


def driver_text(*names: str | Path) -> str:
    """C++ that drives a device's pins, files of this package or by their path, behind what runs the core beside it."""
    return "".join((Path(__file__).parent / name).read_text() for name in ("core_part.h", *names))


class BlackBox(Elaboratable):
    """In place of a core: its ports, as signals ``core_<port>`` that nothing drives or reads."""

    def __init__(self, external: ExternalMemory | None = None) -> None:
        widths = WIDTHS if external is None else {**WIDTHS, "asks": 1, "started": 1, "clear": 1, "stopped": 1}
        self.signals = {name: Signal(width, name=f"core_{name}") for name, width in widths.items()}
        for name, signal in self.signals.items():
            setattr(self, name, signal)
        if external is not None:
            from ...rtl.external.controller import requester

            signature = requester(external)
            self.external = signature.create(path=("core_external",))
            for path, _, port in signature.flatten(self.external):
                self.signals["__".join(("external", *map(str, path)))] = cast(Signal, Value.cast(port))

    def elaborate(self, platform: Any) -> Module:
        return Module()


class Libraries(NamedTuple):
    """The compiled parts of a device."""

    core: Path
    around: Path
    external: ExternalMemory | None = None


def device_libraries(
    config: HwConfig, *, clock_hz: int, baud: int, build_id: int = 0, boot_offset: int | None = None,
    progress: Progress | None = None,
) -> Libraries:  # fmt: skip
    """The compiled device of a configuration; from the cache, if there, without elaborating it.

    Parameters
    ----------
    clock_hz, baud : clock and line of the device, as `onnxhw.rtl.top.LinkedCore` takes them (`UsageError` E2140 if
        the line is too fast for the clock).
    build_id : 64 bits that the device tells the host.
    boot_offset : of `LinkedCore`.
    """

    def make() -> str:
        from ...rtl.external.pads import with_pads
        from ...rtl.top import LinkedCore

        hole = BlackBox(config.external)
        device = with_pads(LinkedCore(
            config, clock_hz=clock_hz, baud=baud, build_id=build_id, core=hole, boot_offset=boot_offset
        ))  # fmt: skip
        return elaborate(device, [*ports_of(device), *hole.signals.values()])

    parts = {
        "design": "device around its core",
        "config": config.to_json(),
        "clock": str(clock_hz),
        "baud": str(baud),
        "build id": str(build_id),
        "boot": str(boot_offset),
        "sources": sources("rtl/top.py"),
        "own model": Path(__file__).read_text(),
        "amaranth": metadata.version("amaranth"),
        "python": sys.version,
    }
    driver = driver_text("sdram_part.h", "flash_part.h", "serial_line.cc")
    label = f"device {config.name} at {clock_hz / 1e6:g} MHz, {baud} baud"
    around = build(make, drivers=[driver], parts=parts, label=label, progress=progress)
    return Libraries(core_library(config, progress=progress).path, around.path, config.external)


class PinModel(Closeable):
    """A running device, its core and what is around it in step, whose pins C++ drives; a context manager.

    `kind` names the driver's functions (``onnxhw_<kind>_create``), `ratio` is what it takes for the speed of the pins,
    `more` what it takes besides.

    Members: `core`, `around` (the two designs), `clock_hz`.
    """

    def __init__(
        self, libraries: Libraries, kind: str, *, clock_hz: int, ratio: float, more: Sequence[Any] = ()
    ) -> None:
        self.clock_hz, self._kind = clock_hz, kind
        self.core, self.around = core, around = Design(libraries.core), Design(libraries.around)
        inside = [core.item(name).next for name in ("clk", *INPUTS)]
        shown = OUTPUTS if libraries.external is None else {**OUTPUTS, "running": "running"}  # it is no register there
        inside += [core.item(name).curr for name in shown.values()]
        outside = [around.item("clk").next, *(around.item(f"core_{name}").curr for name in INPUTS)]
        outside += [around.item(f"core_{name}").next for name in OUTPUTS]
        functions = [core.library[name] for name in FUNCTIONS]
        self._wires = None if libraries.external is None else pointers(_wires(core, around))
        create = around.library[f"onnxhw_{kind}_create"]
        create.restype = ctypes.c_void_p
        self._pins: ctypes.c_void_p | None = ctypes.c_void_p(
            create(
                around.handle,
                ctypes.c_double(ratio),
                pointers(outside),
                pointers(inside),
                pointers([core.handle, *functions, self._wires]),
                *more,
            )
        )

    def close(self) -> None:
        """Release the designs."""
        if self._pins is not None:
            self.around.library[f"onnxhw_{self._kind}_destroy"](self._pins)
            self._pins = None
        self.around.close()
        self.core.close()


class RtlDevice(PinModel):
    """A running device and the host's end of its serial line; a context manager.

    Every byte goes through the pins: the line is driven and sampled in every clock cycle, by a receiver that
    samples in the middle of the bits. `baud` is the speed of the host's end; it may differ from the device's, which
    then sees what a board would see. `flash`: contents of the SPI flash of a device that was built to load its program
    from one.
    """

    def __init__(self, libraries: Libraries, *, clock_hz: int, baud: int, flash: bytes | None = None) -> None:
        memory = SdramNumbers.of(libraries.external).array() if libraries.external else None
        more = [memory, flash, ctypes.c_size_t(len(flash or b""))]
        super().__init__(libraries, "line", clock_hz=clock_hz, ratio=clock_hz / baud, more=more)
        self._baud = baud
        self.around.library.onnxhw_line_run.restype = ctypes.c_uint64
        self.around.library.onnxhw_line_violation.restype = ctypes.c_char_p
        self._found = (ctypes.c_uint64 * 5)()
        self._room = ctypes.create_string_buffer(ROOM)

    @property
    def baud(self) -> int:
        """Speed of the host's end of the line."""
        return self._baud

    @baud.setter
    def baud(self, baud: int) -> None:
        self._baud = baud
        self.around.library.onnxhw_line_speed(self._pins, ctypes.c_double(self.clock_hz / baud))

    def advance(
        self, cycles: int, data: bytes = b"", *, patience: int = 0, trace: bytearray | None = None
    ) -> tuple[int, bytes]:
        """Run at most `cycles` cycles, sending `data`; how many bytes of it were begun, and the bytes received.

        Ends early in the cycle in which nothing has happened for `patience` cycles (0: never), or when many
        bytes have been received. Nothing happens while both pins are idle, no run is in progress and no command
        is performed. Calls are of at most `CHUNK` cycles, so that an interrupt is soon noticed. A byte per cycle
        is appended to `trace`: bit 0 tx, bit 1 rx. `InternalError` E1470 if the design violates a rule of its external
        memory.
        """
        cycles = min(cycles, CHUNK)
        levels = ctypes.create_string_buffer(cycles) if trace is not None else None
        done = self.around.library.onnxhw_line_run(
            self._pins,
            ctypes.c_uint64(cycles),
            ctypes.c_uint64(patience),
            data,
            ctypes.c_size_t(len(data)),
            self._room,
            ctypes.c_size_t(ROOM),
            self._found,
            levels,
        )
        if violation := self.around.library.onnxhw_line_violation(self._pins):
            raise InternalError("E1470", f"a rule of the external memory was violated in {violation.decode()}")
        if trace is not None and levels is not None:
            trace += levels.raw[:done]
        return self._found[0], self._room.raw[: self._found[1]]

    @property
    def cycles(self) -> int:
        """Clock cycles since the start."""
        return self.around.cycles

    @property
    def quiet(self) -> int:
        """Cycles since anything happened."""
        return int(self._found[2])

    @property
    def framing_errors(self) -> int:
        """Bytes received with a low stop bit: host and device disagree about the speed."""
        return int(self._found[3])

    @property
    def slept(self) -> int:
        """Cycles in which the core was at rest, and not evaluated."""
        return int(self._found[4])


def _wires(core: Design, around: Design) -> list[Any]:
    """The words between a core and the controller of its external memory, as ``core_functions`` has them."""
    found: list[Any] = []
    for names, source, target, prefixes in ((SHOWN, core, around, ("", "core_")), (SEEN, around, core, ("core_", ""))):
        for name in names:
            one, other = source.item(prefixes[0] + name), target.item(prefixes[1] + name)
            for word in range(-(-one.width // 32)):
                found += [ctypes.byref(one.curr.contents, 4 * word), ctypes.byref(other.next.contents, 4 * word)]
        found.append(None)
    return found


def pointers(found: Any) -> "ctypes.Array[ctypes.c_void_p]":
    """A C array of pointers."""
    addresses = [ctypes.cast(pointer, ctypes.c_void_p) for pointer in found]
    return (ctypes.c_void_p * len(addresses))(*addresses)
