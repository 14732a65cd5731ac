"""The core with external memory as a compiled design: its controller, and a memory that checks it."""

import ctypes
import re
import sys
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from ...build.cache import sources
from ...config import HwConfig
from ...errors import InternalError, MismatchError
from .build import Library, Progress, build, elaborate
from .core_model import CoreModel, Words
from .sdram_model import SdramCounts, SdramNumbers


def core_with_memory_library(config: HwConfig, *, waves: bool = False, progress: Progress | None = None) -> Library:
    """The compiled core of a configuration with external memory; from the cache, if there, without elaborating it."""

    def make() -> str:
        from ...rtl.core_with_memory import CoreWithMemory

        return elaborate(CoreWithMemory(config))

    parts = {
        "design": "core with memory",
        "config": config.fingerprint,
        "sources": sources("rtl/core_with_memory.py"),
        "amaranth": metadata.version("amaranth"),
        "python": sys.version,
    }
    drivers = [resources.files(__package__).joinpath(name).read_text() for name in ("host_port.cc", "memory_port.cc")]
    label = f"core {config.name}{', waves' if waves else ''}"
    return build(make, drivers=drivers, waves=waves, parts=parts, label=label, progress=progress)


class CoreWithMemoryModel(CoreModel):
    """`CoreModel` of a core with external memory, whose contents are put and got past its pins, in no time.

    Other than on a device nothing but the core uses the memory; what the host's slots do costs no cycle there.
    """

    def __init__(self, library: Path, config: HwConfig) -> None:
        super().__init__(library, config)
        assert config.external is not None
        self.columns = 32 // config.external.data_bits
        self._begun = next(name for name in self.names() if re.search(r"(?:^| )control running$", name))
        self.library.onnxhw_memory_message.restype = ctypes.c_char_p
        self.library.onnxhw_memory_get.restype = ctypes.c_size_t
        self.library.onnxhw_memory_attach(self.handle, SdramNumbers.of(config.external).array())
        while not self.get("initialised"):
            self.step(64)

    def close(self) -> None:
        if self._handle is not None:
            self.library.onnxhw_memory_detach(self.handle)
        super().close()

    def start(self) -> None:
        """Start a run, and wait until external memory is ready for it: until then the counters are those of before."""
        super().start()
        while self.get("running") and not self.get(self._begun):
            self.step()

    def put(self, address: int, words: Words) -> None:
        """Write 32-bit words of external memory."""
        data = np.ascontiguousarray(words.astype("<u4").view("<u2") if self.columns == 2 else words, np.uint32)
        self.library.onnxhw_memory_put(
            self.handle, ctypes.c_uint32(address * self.columns), data.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(len(data)),
        )  # fmt: skip

    def take(self, address: int, count: int) -> Words:
        """Read 32-bit words of external memory; `InternalError` E1409 if some were never written."""
        data = np.zeros(count * self.columns, np.uint32)
        unknown = self.library.onnxhw_memory_get(
            self.handle, ctypes.c_uint32(address * self.columns), data.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(len(data)),
        )  # fmt: skip
        if unknown:
            raise InternalError("E1409", f"{unknown} columns of external memory from word {address} on are not known")
        return data.astype("<u2").view("<u4").astype(np.uint32) if self.columns == 2 else data

    def require_legal(self) -> None:
        """`MismatchError` E8403 if the controller has violated a rule of the memory, or read what was not known."""
        if self.violation:
            raise MismatchError("E8403", f"external memory: {self.violation}")
        if (counts := self.counts).unknown or counts.lost:
            what = f"{counts.unknown} words read that were not known, {counts.lost} rows lost"
            raise MismatchError("E8403", f"external memory: {what}")

    @property
    def violation(self) -> str:
        """The first rule of the memory that the controller has violated; empty if none."""
        return str(self.library.onnxhw_memory_message(self.handle).decode())

    @property
    def counts(self) -> SdramCounts:
        """What has happened so far."""
        found = (ctypes.c_uint64 * 4)()
        self.library.onnxhw_memory_counts(self.handle, found)
        return SdramCounts(*found)
