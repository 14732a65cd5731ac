"""The core with external memory as a compiled design: its controller, and a memory that checks it."""

import ctypes
import sys
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from ...build.cache import sources
from ...config import HwConfig
from ...errors import InternalError, MismatchError
from ...isa.instructions import UNITS
from ...isa.memory import ENDED, Control, Space
from ...isa.microcode import pack
from ...isa.units import Unit
from ...program.external_tensors import external_span, external_tensor, external_words
from ...program.host_words import memories
from ...program.model import DeviceProgram
from ...program.result import Result
from ...program.storage import Array8
from ..run_setup import budget, watchdog_error
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


CONSTANTS = (Space.WEIGHT, Space.PARAM, Space.TABLE)
"""Memories that hold what stays on chip from one run to the next."""
START_MOST = 1000
"""Cycles that the begin of a run may take, more than any memory's `ExternalMemory.start_wait`."""


class CoreWithMemoryModel(CoreModel):
    """`CoreModel` of a core with external memory, whose contents are put and got past its pins, in no time.

    Other than on a device nothing but the core uses the memory; what the host's slots do costs no cycle there.
    """

    def __init__(self, library: Path, config: HwConfig) -> None:
        super().__init__(library, config)
        assert config.external is not None
        self.columns = 32 // config.external.data_bits
        self.library.onnxhw_memory_message.restype = ctypes.c_char_p
        self.library.onnxhw_memory_get.restype = ctypes.c_size_t
        self.library.onnxhw_memory_attach(self.handle, SdramNumbers.of(config.external).array())
        while not self.get("initialised"):
            self.step(64)

    def close(self) -> None:
        if self._handle is not None:
            self.library.onnxhw_memory_detach(self.handle)
        super().close()

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

    def load(self, program: DeviceProgram) -> None:
        """Load a program that has moves: its image of external memory, constants that stay on chip, the first words of
        its microcode, its counts."""
        self.put(0, program.external)
        for space, words in memories(program):
            if space in CONSTANTS:
                self.write(space, 0, words)
        for unit, code in program.code.items():
            if code:
                self.write(unit.microcode, 0, np.array(pack(code), np.uint32)[: unit.ucode(self.config)])
        counts = [len(program.code.get(unit, ())) for unit in UNITS]
        self.write(Space.CONTROL, Control.LOAD_COUNT, [*counts, budget(program)])
        self.write(Space.CONTROL, Control.MOVE_COUNT, [len(program.code.get(Unit.MOVE, ()))])

    def run_program(self, program: DeviceProgram, inputs: Mapping[str, Array8]) -> Result:
        """Run the program that is loaded: outputs and cycles. Inputs and outputs lie in external memory.

        `MismatchError` E8402 if it does not end, E8403 if a rule of the memory was violated.
        """
        word = self.config.word
        for name, values in inputs.items():
            for first, words in external_words(program.tensors[name], values, word):
                self.put(first, words)
        self.start()
        self.run(budget(program) + 2 * START_MOST)
        status, *_ = self.control(Control.RUN)
        (cycles,) = self.control(Control.CYCLES)
        if status != ENDED:
            raise watchdog_error(program, status, cycles, self.control(Control.LOAD_DONE, len(UNITS)))
        self.require_legal()
        outputs = {}
        for port in program.outputs:
            entry = program.tensors[port.tensor]
            outputs[port.tensor] = external_tensor(entry, self.take(*external_span(entry, word)), word)
        return Result(outputs, cycles=cycles)

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
