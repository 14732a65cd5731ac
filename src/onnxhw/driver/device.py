"""`Device`: a board as a person uses it, from an address to arrays in and arrays out."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..closeable import Closeable
from ..config import HwConfig
from ..errors import UsageError
from ..golden import host
from ..ir.graph import Graph
from ..isa.link import Info
from ..program.model import DeviceProgram
from ..program.parts import Program
from ..program.result import Result
from . import discover
from .artifact import build_id, interface_graph, read, samples, stacked
from .client import Client
from .connection import open_client
from .faults import StaleBitstreamError, typed
from .link import Progress

Array = npt.NDArray[Any]


class Device(Closeable):
    """A device that runs programs; a context manager. Made by `Device.open`.

        with Device.open("auto") as device:
            device.load("build/model-ulx3s-85f+sdram")
            outputs = device.run({"input": images})

    Any number of threads may share one: inferences go one at a time, and each call gets its own results.

    Errors: every method raises `LinkError` or one of its kinds in `onnxhw.driver.faults`, with the device's address in
    it; after `UnpluggedError` the device must be opened anew.
    """

    def __init__(self, client: Client, address: str) -> None:
        self.address, self._client = address, client
        self._lock = threading.RLock()
        self._program: DeviceProgram | None = None
        self._graph: Graph | None = None
        self._known = False
        """The client knows the program: it has loaded or run it."""
        self._doubtful = False
        """The last run has failed: what is loaded may be lost."""
        self._closed = False

    @classmethod
    def open(
        cls,
        address: str = "auto",
        *,
        baud: int | None = None,
        timeout_scale: float = 1.0,
        config: HwConfig | None = None,
        likely_baud: int | None = None,
    ) -> "Device":
        """The device at an address (see `onnxhw.driver.address`), once it has answered.

        Parameters
        ----------
        baud : the line's speed; by default a serial port is tried at several (`opening.RATES`).
        timeout_scale : by how much the device is slower than it says. A simulated board on this machine
            (``onnxhw serve``) tells its time by itself.
        likely_baud : the speed that is tried first, if none is given: what manifest.json says.
        config : what a simulated device without a name ("emu:", "sim:") shall be.

        Errors: `UsageError` E2550 no such address, E2556 `baud` or `timeout_scale` not positive and finite; those of
        the transports; `NoAnswerError` E9155 nothing answers; `WrongBitstreamError` E9105, E9106; for "auto"
        `LinkError` E9156 no known board, E9157 several.
        """
        return cls(*open_client(address, baud, timeout_scale, config, likely_baud))

    # -- the device ----------------------------------------------------------------------------

    @property
    def head(self) -> Info:
        """What the device says it is, without its configuration."""
        with self._line():
            return self._client.head()

    @property
    def info(self) -> Info:
        """What the device says it is."""
        with self._line():
            return self._client.info()

    def hint(self) -> str:
        """What would make the line quicker, empty if nothing (see `onnxhw.driver.discover.hint`)."""
        return discover.hint(self.address.removeprefix("serial:")) if self.address.startswith("serial:") else ""

    @property
    def client(self) -> Client:
        """The commands below; not locked."""
        return self._client

    def close(self) -> None:
        """Release the line; may be called again."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._client.close()

    # -- programs ------------------------------------------------------------------------------

    def load(
        self,
        program: Program | DeviceProgram | str | Path,
        *,
        design: str | None = None,
        again: bool = False,
        progress: Progress | None = None,
    ) -> DeviceProgram:
        """Have a program in the device; what was loaded. One that is there, complete, is not sent anew.

        Parameters
        ----------
        program : a program, a ``program.ohw``, or an output directory of ``compile`` or ``synth``; of a model that the
            hardware runs as a whole.
        design : key of the bitstream that the program came with, as `manifest.json` has it; read from there for a
            directory. A device that was built from something else is refused.
        again : send it in any case.
        progress : called with the share that has been sent.

        Errors: `WrongBitstreamError` E9107, `StaleBitstreamError` E9160; those of `onnxhw.program.container`;
        `UsageError` E2510 a model in parts, E2552 a manifest that cannot be read.
        """
        if isinstance(program, Program):
            program = program.only(program.name)
        elif not isinstance(program, DeviceProgram):
            program, found = read(Path(program))
            design = design or found
        with self._line():
            self._client.check(program.config)
            self._check_build(design)
            self._program = None
            self._known = again or not self._client.holds(program)
            if self._known:
                self._client.load(program, progress)
            self._program, self._graph, self._doubtful = program, interface_graph(program), False
        return program

    def to_load(self, program: DeviceProgram) -> int:
        """Bytes that `load` would send, at their least: 0 if the program is there."""
        with self._line():
            return 0 if self._client.holds(program) else self._client.to_load(program)

    def run(self, feeds: Mapping[str, npt.ArrayLike], program: DeviceProgram | None = None) -> dict[str, Array]:
        """The model's outputs by name from its inputs by name, quantized and dequantized as the model says.

        An input of shape ``(1, ...)`` may have N as its first dimension: N inferences, in order; inputs travel
        while others are computed.

        Errors: `UsageError` E2202 to E2204 for inputs that are not the model's, E2553 for different N.
        """
        graph = self._ready(program)
        return host.finish(graph, stacked(self.infer(feeds, program)))

    def infer(self, feeds: Mapping[str, npt.ArrayLike], program: DeviceProgram | None = None) -> list[Result]:
        """Like `run`, but the hardware's own results, one per inference: int8 tensors, cycles, counters."""
        graph = self._ready(program)
        return self.run_batch(samples(host.prepare(graph, feeds)), program)

    def run_int8(self, tensors: Mapping[str, npt.NDArray[np.int8]], program: DeviceProgram | None = None) -> Result:
        """One inference of the loaded program: int8 tensors ``(1, C, H, W)`` by name; `program` as of `run_batch`."""
        return self.run_batch([tensors], program)[0]

    def run_batch(
        self,
        batch: Sequence[Mapping[str, npt.NDArray[np.int8]]],
        program: DeviceProgram | None = None,
        progress: Progress | None = None,
    ) -> list[Result]:
        """Inferences of the loaded program in order, each of int8 tensors by name; see `Client.run_all`.

        `program` is loaded first unless it is the one that is, and its last run went well. `progress` is told how many
        results are here, of how many. A program with states is not loaded again behind a run that has failed, which
        would begin them anew: it is refused with E9124 until `clear_state`.
        """
        with self._line():
            failed = self._doubtful and not (program and program.states)
            if program is not None and (program is not self._program or failed):
                self.load(program, again=self._doubtful)
            if self._program is None:
                raise self._empty()
            self._doubtful = True
            results = self._client.run_all(batch, None if self._known else self._program, progress)
            self._known, self._doubtful = True, False
        return results

    def clear_state(self, program: DeviceProgram | None = None) -> None:
        """Begin again with the initial values of the states of the loaded program, or of `program`, which is loaded if
        it is not there or a run of it has failed; see `Client.clear_state`."""
        with self._line():
            wanted = program or self._program
            if wanted is None:
                raise self._empty()
            if wanted is not self._program or self._doubtful:
                self.load(wanted, again=self._doubtful)
            self._client.clear_state(wanted)

    # -- inside --------------------------------------------------------------------------------

    def _ready(self, program: DeviceProgram | None) -> Graph:
        """The ports and tensors of the program that shall run."""
        if program is not None and program is not self._program:
            return interface_graph(program)
        if self._graph is None:
            raise self._empty()
        return self._graph

    def _empty(self) -> UsageError:
        return UsageError("E2554", "no program is loaded", where=self.address, hint="call load(program) first")

    def _check_build(self, design: str | None) -> None:
        """Refuse a device built from other sources than the directory's bitstream; a build without an id passes."""
        there, wanted = self._client.head().build_id, build_id(design) if design else 0
        if wanted and there and there != wanted:
            raise StaleBitstreamError(
                "E9160",
                f"the board holds build {there:016x}, the program came with build {wanted:016x}",
                hint="onnxhw program DIR puts the directory's bitstream on the board",
            )

    @contextmanager
    def _line(self) -> Iterator[None]:
        """The device for one thread, its faults with class and address."""
        with self._lock:
            if self._closed:
                raise UsageError("E2555", "the device is closed", where=self.address, hint="open it again")
            with typed(self.address):
                yield
