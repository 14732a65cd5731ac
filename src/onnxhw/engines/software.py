"""The engines without hardware: the golden model (per graph) and the emulator (per instruction)."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .. import golden
from ..closeable import Closeable
from ..emu.emulator import Emulator
from ..ir.graph import Graph
from ..program.model import DeviceProgram
from ..program.result import Result, values_of

Tensors = Mapping[str, npt.NDArray[np.int8]]


class GoldenEngine(Closeable):
    """The graph in numpy. It has no clock: `Result.cycles` is 0 and there are no counters."""

    name = "golden"

    def __init__(self, graph: Graph) -> None:
        self._runs = golden.StatefulRuns(graph)
        self._program: DeviceProgram | None = None

    def load(self, program: DeviceProgram) -> None:
        """Take the program's states, unless it is the one that is loaded."""
        if self._program is not program:
            self._runs, self._program = golden.StatefulRuns(self._runs.graph, program.states), program

    def run(self, program: DeviceProgram, inputs: Tensors, trace: bool = False) -> Result:
        """See `Engine.run`; `trace` gives the tensors that are in the program's tensor table too."""
        self.load(program)
        tensors = self._runs.run(inputs)
        outputs = {port.tensor: tensors[port.tensor] for port in program.outputs}
        table = program.tensors.items() if trace else ()
        shown = {name: values for name, entry in table if (values := values_of(entry, tensors)) is not None}
        return Result(outputs, shown)

    def clear_state(self) -> None:
        """See `Engine.clear_state`."""
        self._runs.clear()

    def close(self) -> None:
        """Nothing to do."""


class EmulatorEngine(Closeable):
    """The program executed instruction by instruction, with exact cycles."""

    name = "emulator"

    def __init__(self) -> None:
        self._emulator: Emulator | None = None

    def load(self, program: DeviceProgram) -> None:
        """Compute the program's timeline, unless it is the one that is loaded."""
        if self._emulator is None or self._emulator.program is not program:
            self._emulator = Emulator(program)

    def run(self, program: DeviceProgram, inputs: Tensors, trace: bool = False) -> Result:
        """See `Engine.run`."""
        self.load(program)
        assert self._emulator is not None
        return self._emulator.run(inputs, trace)

    def clear_state(self) -> None:
        """See `Engine.clear_state`."""
        if self._emulator is not None:
            self._emulator.clear_state()

    def close(self) -> None:
        """Forget the loaded program."""
        self._emulator = None

