"""`Design`: a compiled design, running: ports by name, clock cycles, registers and memories, waveforms."""

import ctypes
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...closeable import Closeable
from ...errors import InternalError, ToolError

CHUNK = 8192
"""Cycles per call into the library: a signal such as Ctrl-C waits for the end of a call."""
MEMORY = 2
"""CXXRTL's type number of a memory."""


class _Object(ctypes.Structure):
    """``struct cxxrtl_object`` of the CXXRTL C API."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
        ("lsb_at", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("zero_at", ctypes.c_size_t),
        ("curr", ctypes.POINTER(ctypes.c_uint32)),
        ("next", ctypes.POINTER(ctypes.c_uint32)),
        ("outline", ctypes.c_void_p),
        ("attrs", ctypes.c_void_p),
    ]


class Design(Closeable):
    """One instance of a library made by `build`. It starts in its reset state; a context manager.

    Names are hierarchical, separated by spaces: a port ``host_rdata``, a register ``top control cycles``, a
    memory ``top act bank_0 memory``. Members: `cycles`.
    """

    def __init__(self, library: Path) -> None:
        try:
            self.library = ctypes.CDLL(str(library))
        except OSError as error:
            raise ToolError(
                "E7405", f"the compiled model cannot be loaded: {error}", hint="onnxhw cache clear"
            ) from error
        call = self.library
        call.onnxhw_create.restype = ctypes.c_void_p
        call.onnxhw_item.restype = ctypes.POINTER(_Object)
        call.onnxhw_cycles.restype = ctypes.c_uint64
        call.onnxhw_names.restype = ctypes.c_size_t
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p(call.onnxhw_create())
        self._items: dict[str, _Object] = {}
        self._settled = True

    @property
    def handle(self) -> ctypes.c_void_p:
        """What the driver's functions take as their first argument."""
        if self._handle is None:
            raise InternalError("E1401", "the simulated design has been closed")
        return self._handle

    def close(self) -> None:
        """Release the design's memory; views of it are invalid from then on."""
        if self._handle is not None:
            self.library.onnxhw_destroy(self._handle)
            self._handle = None
            self._items.clear()

    @property
    def cycles(self) -> int:
        """Clock cycles since the start."""
        return int(self.library.onnxhw_cycles(self.handle))

    def step(self, cycles: int = 1) -> None:
        """Let the clock run; interruptible."""
        self._settled = False
        while cycles > 0:
            self.library.onnxhw_step(self.handle, ctypes.c_uint64(min(cycles, CHUNK)))
            cycles -= CHUNK

    def settle(self) -> None:
        """Make outputs and named signals show the present state and inputs (`get` does so by itself)."""
        self.library.onnxhw_settle(self.handle)
        self._settled = True

    # -- signals -------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Names of all ports, registers and memories."""
        size = int(self.library.onnxhw_names(self.handle, None, ctypes.c_size_t(0)))
        buffer = ctypes.create_string_buffer(size)
        self.library.onnxhw_names(self.handle, buffer, ctypes.c_size_t(size))
        return buffer.raw[:size].decode().splitlines()

    def item(self, name: str) -> _Object:
        """The object of that name; `InternalError` E1402 if there is none."""
        if name not in self._items:
            found = self.library.onnxhw_item(self.handle, name.encode())
            if not found:
                raise InternalError("E1402", f"the simulated design has no signal {name!r}")
            self._items[name] = found.contents
        return self._items[name]

    def get(self, name: str) -> int:
        """The value of a port or register, as an unsigned integer."""
        if not self._settled:
            self.settle()
        item = self.item(name)
        return sum(item.curr[i] << (32 * i) for i in range(-(-item.width // 32)))

    def set(self, name: str, value: int) -> None:
        """Drive an input; negative values are taken modulo its width. It counts from the next cycle on."""
        item = self.item(name)
        if not item.next:
            raise InternalError("E1403", f"{name!r} cannot be set")
        value &= (1 << item.width) - 1
        for i in range(-(-item.width // 32)):
            item.next[i] = (value >> (32 * i)) & 0xFFFFFFFF
        self._settled = False

    def memory(self, name: str) -> npt.NDArray[np.uint32]:
        """A live view of a memory, uint32 ``[depth, ceil(width / 32)]``; writing to it changes the memory."""
        item = self.item(name)
        if item.type != MEMORY:
            raise InternalError("E1404", f"{name!r} is not a memory")
        return np.ctypeslib.as_array(item.curr, shape=(item.depth, -(-item.width // 32)))

    # -- waveforms -----------------------------------------------------------------------------

    def waves(self, path: str | os.PathLike[str], cycles: int) -> None:
        """Write the next `cycles` cycles to a VCD file, without memories; needs a library built with `waves`."""
        if not self.library.onnxhw_waves_open(self.handle, os.fsencode(path), ctypes.c_uint64(cycles)):
            raise ToolError("E7406", "the waveform file cannot be written", where=os.fspath(path))

    def stop_waves(self) -> None:
        """Finish the waveform file."""
        self.library.onnxhw_waves_close(self.handle)
