"""The complete device with a camera as compiled designs: `onnxhw.rtl.sensors.device.CameraDevice`, and a camera at its
pins."""

import ctypes
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...build.cache import sources
from ...closeable import Closeable
from ...config import HwConfig
from ...errors import InternalError
from ...isa.camera import SETTINGS, CameraSettings
from ...isa.ov7670 import DEVICE, FIRST_LINE, LINE_BYTES, LINES, REGISTERS, VSYNC_LINES, XCLK_LEAST
from ...program.camera import Frame
from ...program.model import Entry
from .build import Progress, build, elaborate, ports_of
from .core_model import core_library
from .design import CHUNK, MEMORY, Design
from .rtl_device import FUNCTIONS, INPUTS, OUTPUTS, BlackBox, Libraries, driver_text, pointers

PCLK, HREF, VSYNC = 1 << 8, 1 << 9, 1 << 10
"""Bits of a level of the camera's pins, above its data."""
TX, SIOC, SIOD, RESET_N = 1, 2, 4, 8
"""Bits of the device's pins in a trace."""
ROOM = 4096
"""Changes of the device's pins that one call can tell."""
Levels = npt.NDArray[np.uint16]


def camera_libraries(
    config: HwConfig, *, clock_hz: int, baud: int, sccb_hz: int, progress: Progress | None = None
) -> Libraries:
    """The compiled device of a configuration; from the cache, if there, without elaborating it. Parameters as of
    `CameraDevice`."""

    def make() -> str:
        from ...rtl.sensors.device import CameraDevice

        hole = BlackBox()
        device = CameraDevice(config, clock_hz=clock_hz, baud=baud, core=hole, sccb_hz=sccb_hz)
        return elaborate(device, [*ports_of(device), *hole.signals.values()])

    parts = {
        "design": "device with a camera around its core",
        "rates": f"{clock_hz} {baud} {sccb_hz}",
        "config": config.to_json(),
        "sources": sources("rtl/sensors/device.py"),
        "own model": Path(__file__).read_text(),
        "amaranth": metadata.version("amaranth"),
        "python": sys.version,
    }
    driver = driver_text("camera_line.cc")
    label = f"camera device {config.name} at {clock_hz / 1e6:g} MHz"
    around = build(make, drivers=[driver], parts=parts, label=label, progress=progress)
    return Libraries(core_library(config, progress=progress).path, around.path)


def frame_levels(frame: Frame, *, blanks: float = 1.0) -> Levels:
    """What the camera's pins show for a frame, two levels per byte: PCLK low, then high.

    Rows and pauses are those of `onnxhw.isa.ov7670`; `blanks` shortens the pauses. Data change when PCLK falls.
    """
    height, width = frame.shape
    sent = np.stack([frame >> 8, frame & 0xFF], axis=-1).reshape(height, 2 * width).astype(np.uint16) | HREF
    rest = round((LINE_BYTES - 2 * width) * blanks)
    row_bytes = 2 * width + rest
    rows = np.pad(sent, ((0, 0), (0, rest))).reshape(-1)
    vsync, first = (max(2, round(lines * row_bytes * blanks)) for lines in (VSYNC_LINES, FIRST_LINE - VSYNC_LINES))
    after = max(0, round((LINES - FIRST_LINE - height) * row_bytes * blanks))
    pauses = [np.full(vsync, VSYNC, np.uint16), np.zeros(first, np.uint16)]
    data = np.concatenate([*pauses, rows, np.zeros(after, np.uint16)])
    return np.stack([data, data | PCLK], axis=-1).reshape(-1)


PAUSE: Levels = np.tile(np.array([0, PCLK], np.uint16), 16)
"""What the pins show between frames, for a while: a device takes a frame if it has seen VSYNC low before it."""


class CameraModel(Closeable):
    """A running device and the camera at its pins; a context manager.

    The program is in the memories from the start, as a bitstream has it. The camera shows nothing before its registers
    are as `REGISTERS` says, nor without XCLK.

    Members: `text`, what has come over the serial line; `writes`, the registers that were written, in order; `changes`,
    the device's pins as pairs of cycle and level.
    """

    def __init__(
        self,
        libraries: Libraries,
        images: Mapping[str, Sequence[int]],
        settings: CameraSettings,
        *,
        clock_hz: int,
        baud: int,
    ) -> None:
        self.clock_hz, self.baud = clock_hz, baud
        self.core, self.around = core, around = Design(libraries.core), Design(libraries.around)
        _bake(core, {name: words for name, words in images.items() if name not in AROUND})
        _bake(around, {name: images[name] for name in AROUND if name in images})
        inside = [core.item(name).next for name in ("clk", *INPUTS)]
        inside += [core.item(name).curr for name in OUTPUTS.values()]
        outside = [around.item("clk").next, *(around.item(f"core_{name}").curr for name in INPUTS)]
        outside += [around.item(f"core_{name}").next for name in OUTPUTS]
        functions = [core.library[name] for name in FUNCTIONS]
        call = around.library
        call.onnxhw_camera_create.restype = ctypes.c_void_p
        call.onnxhw_camera_run.restype = ctypes.c_uint64
        self._camera: ctypes.c_void_p | None = ctypes.c_void_p(
            call.onnxhw_camera_create(
                around.handle, pointers(outside), pointers(inside), pointers([core.handle, *functions, None])
            )
        )
        self._found = (ctypes.c_uint64 * 6)()
        self._room = (ctypes.c_uint64 * (2 * ROOM))()
        self._serial, self._bus = _Serial(clock_hz / baud), _Bus()
        self.changes: list[tuple[int, int]] = []

    def close(self) -> None:
        """Release the designs."""
        if self._camera is not None:
            self.around.library.onnxhw_camera_destroy(self._camera)
            self._camera = None
        self.around.close()
        self.core.close()

    @property
    def text(self) -> bytes:
        """What has come over the serial line, but for the byte that is on its way."""
        return bytes(self._serial.until(self.cycles))

    @property
    def writes(self) -> list[tuple[int, int]]:
        """Registers and values of complete writes."""
        return self._bus.writes

    @property
    def cycles(self) -> int:
        """Cycles since the start."""
        return int(self._found[2])

    @property
    def configured(self) -> bool:
        """All registers are as they should be."""
        return dict(self.writes) == {each.register: each.value for each in REGISTERS}

    def place(self, entry: Entry, word: int) -> npt.NDArray[np.int8]:
        """What lies at a tensor's place in activation memory, of words of `word` lanes."""
        banks = [self.core.memory(name) for name in _banks(self.core)]
        addresses = entry.place.addresses(word)
        rows = np.concatenate(banks)[addresses].astype("<u4").view(np.uint8)[..., :word]
        return entry.place.unpack(rows, word)

    def words(self) -> npt.NDArray[np.uint32]:
        """The words of the last input that went to the core."""
        room = np.zeros(1 << 16, np.uint32)
        call = self.around.library.onnxhw_camera_inputs
        call.restype = ctypes.c_size_t
        return room[: call(self._camera, room.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(room)))]

    def run(self, cycles: int) -> None:
        """Let the clock run; the camera's pins stay as they are."""
        self._run(cycles, np.empty(0, np.uint16), 1.0)

    def show(self, levels: Levels, cycles_per_level: float) -> None:
        """The camera shows `levels`, each so long. `InternalError` E1480 if it cannot: it is not configured, or XCLK is
        too slow or not as long high as low."""
        edges, least, most = self._found[3:]
        if not self.configured or not edges or least != most or self.clock_hz < 2 * most * XCLK_LEAST:
            raise InternalError("E1480", f"the simulated camera has no clock or other registers: {self.writes}")
        self._run(1 << 62, levels, cycles_per_level)

    def _run(self, cycles: int, levels: Levels, cycles_per_level: float) -> None:
        """At most `CHUNK` cycles a call: a signal waits for its end."""
        at, ends = 0, self.cycles + cycles
        while self.cycles < ends and (not len(levels) or at < len(levels)):
            shown = np.ascontiguousarray(levels[at:])
            self.around.library.onnxhw_camera_run(
                self._camera, ctypes.c_uint64(min(CHUNK, ends - self.cycles)), ctypes.c_double(cycles_per_level),
                shown.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(shown)), self._room, ctypes.c_size_t(ROOM),
                self._found,
            )  # fmt: skip
            at += self._found[0]
            for number in range(self._found[1]):
                cycle, level = self._room[2 * number : 2 * number + 2]
                self.changes.append((cycle, level))
                self._serial.change(cycle, level & TX)
                self._bus.change(bool(level & SIOC), bool(level & SIOD), bool(level & RESET_N))


AROUND = {"autorun": "top autorun memory memory", SETTINGS: "top settings memory"}
"""Memories that are not the core's, by the names that a bitstream's contents have."""


def memories_of(core: Path) -> list[str]:
    """Names of a simulated device's memories as a routed design has them, for `build.memory_contents.images`."""
    with Design(core) as design:
        found = [name for name in design.names() if name.endswith(" memory") and design.item(name).type == MEMORY]
    return [*(name.removesuffix(" memory").replace(" ", ".") for name in found), *AROUND]


def _banks(core: Design) -> list[str]:
    """Names of the banks of activation memory, in order."""
    found = [name for name in core.names() if re.fullmatch(r"top act bank_\d+ memory", name)]
    return sorted(found, key=lambda name: int(name.split()[2].removeprefix("bank_")))


def _bake(design: Design, images: Mapping[str, Sequence[int]]) -> None:
    for name, words in images.items():
        memory = design.memory(AROUND.get(name, f"{name.replace('.', ' ')} memory"))
        for row, word in enumerate(words):
            memory[row] = [word >> 32 * part & 0xFFFFFFFF for part in range(memory.shape[1])]


class _Serial:
    """Bytes of a line whose changes are told, each sampled in the middle of its bits."""

    def __init__(self, bit: float) -> None:
        self.bit, self.found, self.level, self.next = bit, bytearray(), 1, -1.0
        self.bits: list[int] = []

    def change(self, cycle: int, level: int) -> None:
        if level == self.level:
            return
        self.until(cycle)
        self.level = level
        if not level and self.next < 0:
            self.next, self.bits = cycle + self.bit / 2, []

    def until(self, cycle: int) -> bytearray:
        """What was there until a cycle."""
        while 0 <= self.next < cycle:
            self.bits.append(self.level)
            self.next += self.bit
            if len(self.bits) == 10:
                self.next = -1.0
                self.found.append(sum(bit << at for at, bit in enumerate(self.bits[1:9])))
        return self.found


class _Bus:
    """SCCB as the camera hears it; a write that is not of three phases of nine bits is none."""

    def __init__(self) -> None:
        self.clock = self.data = True
        self.bits: list[bool] | None = None
        self.writes: list[tuple[int, int]] = []

    def change(self, clock: bool, data: bool, reset_n: bool) -> None:
        if self.clock and clock and data != self.data:
            if not data:
                self.bits = []
            elif self.bits is not None:
                self._end(self.bits, reset_n)
                self.bits = None
        elif clock and not self.clock and self.bits is not None:
            self.bits.append(data)
        self.clock, self.data = clock, data

    def _end(self, bits: list[bool], reset_n: bool) -> None:
        phases = [sum(bit << 7 - at for at, bit in enumerate(bits[9 * n : 9 * n + 8])) for n in range(3)]
        if reset_n and len(bits) == 28 and phases[0] == DEVICE:  # the last: SIO_C rises before the stop
            if phases[1:] == [0x12, 0x80]:
                self.writes.clear()
            self.writes.append((phases[1], phases[2]))
