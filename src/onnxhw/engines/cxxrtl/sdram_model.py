"""`SdramModel`: a memory that checks its controller (sdram.h), for simulators that give it the pins cycle by cycle."""

import ctypes
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...build import cache
from ...closeable import Closeable
from ...external import ExternalMemory
from ...isa.external import INITIAL_REFRESHES
from . import compiler
from .build import FLAGS, HOT_FLAGS, LIBRARY

POISON = 0xDEADBEEF
"""What cells read that hold nothing known, and a bus that nobody drives."""
SOURCES = ("sdram.h", "sdram.cc")


@dataclass(frozen=True)
class SdramNumbers:
    """A memory's numbers in cycles, in the order of ``sdram_numbers`` in sdram.h."""

    data_bits: int
    banks: int
    rows: int
    columns: int
    cas_latency: int
    rcd: int
    rp: int
    ras: int
    rc: int
    rfc: int
    wr: int
    rrd: int
    mrd: int
    power_up: int
    refreshes: int
    retention: int
    capture: int

    @classmethod
    def of(cls, external: ExternalMemory, retention: int | None = None) -> "SdramNumbers":
        """What the memory of a configuration asks for.

        `retention` : cycles after which a row that was not refreshed is lost; by default what refreshes of the
        configuration's rate just meet.
        """
        e = external
        late = 2 * e.sequence
        return cls(
            e.data_bits, e.banks, e.rows, e.columns, e.cas_latency, e.rcd, e.rp, e.ras, e.ras + e.rp, e.rfc, e.wr,
            e.rrd, e.mrd, e.power_up, INITIAL_REFRESHES, e.rows * e.refresh + late if retention is None else retention,
            e.capture,
        )  # fmt: skip

    def array(self) -> "ctypes.Array[ctypes.c_uint32]":
        """For C."""
        values = [getattr(self, name) for name in self.__dataclass_fields__]
        return (ctypes.c_uint32 * len(values))(*values)


class SdramPins(NamedTuple):
    """Levels of the pins in a cycle, in the order of ``sdram_pins`` in sdram.h; commands are 1 if active."""

    cke: int
    cs: int
    ras: int
    cas: int
    we: int
    ba: int
    a: int
    dqm: int
    dq: int
    dq_driven: int


class SdramCounts(NamedTuple):
    """Rows that were lost; words read that were not known; words read; words written."""

    lost: int
    unknown: int
    reads: int
    writes: int


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """The compiled memory, from the cache if it is there; `ToolError` E74xx as of `compiler`."""
    words = compiler.command()
    texts = {name: resources.files(__package__).joinpath(name).read_text() for name in SOURCES}
    key = cache.key_of({**texts, "compiler": compiler.version(words), "flags": " ".join([*FLAGS, *HOT_FLAGS])})
    kept = cache.Cache("cxxrtl")
    place = kept.path(key, LIBRARY)
    if place is None:
        with tempfile.TemporaryDirectory(prefix="onnxhw-sdram-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            for name, text in texts.items():
                (folder / name).write_text(text)
            command = [*words, *FLAGS, *HOT_FLAGS, "-shared", "sdram.cc", "-o", LIBRARY]
            compiler.run_all([command], folder, jobs=1, finished=lambda _: None)
            made = (folder / LIBRARY).read_bytes()
        kept.store(key, {LIBRARY: made}, label="SDRAM model")
        place = kept.path(key, LIBRARY)
        if place is None:
            place = cache.private(os.getpid()) / f"{key}-{LIBRARY}"
            place.write_bytes(made)
    library = ctypes.CDLL(str(place))
    library.onnxhw_sdram_create.restype = ctypes.c_void_p
    library.onnxhw_sdram_run.restype = ctypes.c_uint64
    library.onnxhw_sdram_message.restype = ctypes.c_char_p
    return library


class SdramModel(Closeable):
    """A memory that is given the pins of each cycle; a context manager. `violation` is the first one, empty if none."""

    def __init__(self, numbers: SdramNumbers) -> None:
        self._call = _library()
        self._memory: ctypes.c_void_p | None = ctypes.c_void_p(self._call.onnxhw_sdram_create(numbers.array()))

    def close(self) -> None:
        """Release the memory."""
        if self._memory is not None:
            self._call.onnxhw_sdram_destroy(self._memory)
            self._memory = None

    def run(self, pins: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
        """Cycles of pins, ``[cycles, 10]`` as of `SdramPins`: what DQ shows in each, and whether that is known.

        Both end with the cycle in which a rule was violated, if there was one.
        """
        pins = np.ascontiguousarray(pins, np.uint32)
        dq, known = np.zeros(len(pins), np.uint32), np.zeros(len(pins), np.uint8)
        done = self._call.onnxhw_sdram_run(
            self._memory, pins.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(pins)),
            dq.ctypes.data_as(ctypes.c_void_p), known.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip
        return dq[:done], known[:done].astype(bool)

    def step(self, pins: SdramPins) -> tuple[int, bool]:
        """One cycle: what DQ shows in it, and whether that is known."""
        dq, known = self.run(np.array([pins], np.uint32))
        return int(dq[0]), bool(known[0])

    @property
    def violation(self) -> str:
        """The first rule that was violated: ``cycle 123: tRP: ...``."""
        return str(self._call.onnxhw_sdram_message(self._memory).decode())

    @property
    def counts(self) -> SdramCounts:
        """What has happened so far."""
        found = (ctypes.c_uint64 * 4)()
        self._call.onnxhw_sdram_counts(self._memory, found)
        return SdramCounts(*found)
