"""The core as a compiled design, with its host port driven in C++."""

import ctypes
import re
import sys
from importlib import metadata, resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...build.cache import sources
from ...config import HwConfig
from ...errors import InternalError
from ...isa.memory import Control, Space
from .build import Library, Progress, build, elaborate
from .design import CHUNK, Design

Words = npt.NDArray[np.uint32]

PORTS = (
    "host_space", "host_addr", "host_wdata", "host_wstrb", "host_we", "host_re", "host_rdata", "host_rvalid", "running",
    "host_waiting", "input_busy",
)  # fmt: skip
"""Ports that the driver uses."""


def core_library(config: HwConfig, *, waves: bool = False, progress: Progress | None = None) -> Library:
    """The compiled core of a configuration; from the cache, if there, without elaborating it."""

    def make() -> str:
        from ...rtl.core import Core

        return elaborate(Core(config))

    parts = {
        "design": "core",
        "config": config.fingerprint,
        "sources": sources("rtl/core.py"),
        "amaranth": metadata.version("amaranth"),
        "python": sys.version,
    }
    driver = resources.files(__package__).joinpath("host_port.cc").read_text()
    label = f"core {config.name}{', waves' if waves else ''}"
    return build(make, drivers=[driver], waves=waves, parts=parts, label=label, progress=progress)


class CoreModel(Design):
    """A design with the host port of `onnxhw.rtl.core.Core`: words in and out of its memories, and runs."""

    def __init__(self, library: Path, config: HwConfig) -> None:
        super().__init__(library)
        self.config = config
        for port in PORTS:
            self.item(port)
        names = self.names()
        banks = {int(match[1]): name for name in names if (match := re.search(r"(?:^| )act bank_(\d+) memory$", name))}
        self._banks = [self.memory(banks[i]) for i in sorted(banks)]
        done = re.compile(r"(?:^| )control completed__vector__count$")
        self._done = next((name for name in names if done.search(name)), None)

    def close(self) -> None:
        self._banks = []
        super().close()

    def write(self, space: int, address: int, words: npt.ArrayLike) -> None:
        """Write 32-bit words from host-word `address` of a space on."""
        data = np.ascontiguousarray(np.atleast_1d(np.asarray(words, np.uint32)))
        self._settled = False
        for at in range(0, len(data), CHUNK):
            piece = data[at : at + CHUNK]
            self.library.onnxhw_host_write(
                self.handle,
                ctypes.c_uint32(space),
                ctypes.c_uint32(address + at),
                _pointer(piece),
                ctypes.c_size_t(len(piece)),
            )

    def read(self, space: int, address: int, count: int) -> Words:
        """Read `count` 32-bit words; `InternalError` E1405 if the port does not answer."""
        data = np.zeros(count, np.uint32)
        self._settled = False
        self.library.onnxhw_host_read.restype = ctypes.c_size_t
        for at in range(0, count, CHUNK):
            piece = data[at : at + CHUNK]
            answered = self.library.onnxhw_host_read(
                self.handle,
                ctypes.c_uint32(space),
                ctypes.c_uint32(address + at),
                _pointer(piece),
                ctypes.c_size_t(len(piece)),
            )
            if answered != len(piece):
                raise InternalError(
                    "E1405", f"the host port answered {answered} of {len(piece)} reads of {Space(space).name}"
                )
        return data

    def start(self) -> None:
        """Start a run; `InternalError` E1406 if the core does not."""
        self._settled = False
        if not self.library.onnxhw_host_start(self.handle):
            raise InternalError("E1406", "the core does not start to run")

    def infer(self, words: Words, after: int) -> None:
        """Give the words of input and start a run as a device does whose last frame has those from `after` on, so that
        `Control.LATENCY` tells what it would; `InternalError` E1406 if the core does not run."""
        if after:
            self.write(Space.INPUT, 0, words[:after])
        last = np.ascontiguousarray(words[after:], np.uint32)
        self._settled = False
        started = self.library.onnxhw_host_infer(
            self.handle,
            ctypes.c_uint32(Control.LATENCY),
            ctypes.c_uint32(after),
            _pointer(last),
            ctypes.c_size_t(len(last)),
        )
        if not started:
            raise InternalError("E1406", "the core does not start to run")

    def run(self, limit: int, vector_done: int | None = None) -> int:
        """Run until the core stops, at most `limit` cycles; interruptible.

        With `vector_done`: until so many vector instructions have completed, in that very cycle. Returns 1 if the
        core has stopped, 2 if the count was reached, 0 if neither.
        """
        counter = None
        if vector_done is not None:
            if self._done is None:
                raise InternalError("E1407", "the core has no register 'control completed__vector__count'")
            counter = self.item(self._done).curr
        self._settled = False
        while limit > 0:
            state = int(self.library.onnxhw_host_run(
                self.handle, ctypes.c_uint64(min(limit, CHUNK)), counter, ctypes.c_uint32(vector_done or 0)
            ))  # fmt: skip
            if state:
                return state
            limit -= CHUNK
        return 0

    def control(self, register: Control, count: int = 1) -> list[int]:
        """Control registers from `register` on."""
        return [int(word) for word in self.read(Space.CONTROL, register, count)]

    def act(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Words of activation memory as they are now, uint8 ``[..., word]``; takes no cycle."""
        if len(self._banks) != self.config.act_banks:
            raise InternalError(
                "E1408", f"found {len(self._banks)} activation banks, the core has {self.config.act_banks}"
            )
        out = np.empty((*addresses.shape, self.config.word), np.uint8)
        bank, row = np.divmod(addresses, self.config.act_depth)
        for number, memory in enumerate(self._banks):
            here = bank == number
            if here.any():
                out[here] = memory[row[here]].astype("<u4").view(np.uint8)[:, : self.config.word]
        return out


def _pointer(words: Words) -> "ctypes._Pointer[ctypes.c_uint32]":
    return words.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32))
