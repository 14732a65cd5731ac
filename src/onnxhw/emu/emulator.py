"""`Emulator`: a program on a `Machine`, from int8 inputs to int8 outputs."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..isa.timeline import timeline
from ..isa.units import Unit
from ..program.external_tensors import external_span, external_tensor, external_words, state_words
from ..program.input_regions import latency
from ..program.model import DeviceProgram
from ..program.result import Result
from .counters import counters
from .machine import Machine
from .order import steps, time_order
from .rings import fetches, load_rings

Tensors = Mapping[str, npt.NDArray[np.int8]]


class Emulator:
    """A program made ready to run many times; the timeline is computed once.

    Members: `machine` (its memories keep their contents between runs, as the hardware's do, and with them the
    program's states), `timeline`, `cycles`.
    """

    def __init__(self, program: DeviceProgram) -> None:
        self.program = program
        self.timeline = timeline(program.config, program.code)
        self.cycles = self.timeline.cycles
        self.latency = latency(program)
        self.machine = Machine(program.config)
        self.machine.load(program)
        load_rings(self.machine, program.code)
        self.clear_state()
        self._order = time_order(self.timeline)
        self._fetches = fetches(program.config, program.code, self.timeline)
        self._counters = counters(program.code, self.timeline)

    def clear_state(self) -> None:
        """Begin again with the states' initial values."""
        for first, words in state_words(self.program):
            self.machine.external[first : first + len(words)] = words

    def run(self, inputs: Tensors, trace: bool = False, order: Sequence[Unit] | None = None) -> Result:
        """One inference.

        Parameters
        ----------
        inputs : int8 arrays of the program's input tensors, by tensor name (`Port.tensor`).
        trace : also return every tensor of the tensor table, captured when its `ready` vector
            instructions have completed.
        order : units in the order in which their instructions shall take effect; by default that of
            the timeline. Any order that the ordering fields allow gives the same result.
        """
        program, machine = self.program, self.machine
        machine.forget()
        for name, values in check_inputs(program, inputs).items():
            entry = program.tensors[name]
            if entry.external:
                for first, words in external_words(entry, values, program.config.word):
                    machine.external[first : first + len(words)] = words
            else:
                machine.write(entry.place, entry.store(values))
        tensors: dict[str, npt.NDArray[np.int8]] = {}
        due: dict[int, list[str]] = {}
        if trace:
            for name, entry in program.tensors.items():
                if not entry.external:
                    due.setdefault(entry.ready, []).append(name)
        for name in due.get(0, ()):
            tensors[name] = self._read(name)
        fetched, taken = (self._fetches, self._order) if order is None else ({}, order)
        for number, (unit, index) in enumerate(steps(program.code, taken)):
            machine.execute(program.code[unit][index])
            for fetch in fetched.get(number, ()):
                fetch.check(machine)
            if unit == Unit.VECTOR:
                for name in due.get(index + 1, ()):
                    tensors[name] = self._read(name)
        outputs = {port.tensor: self._read(port.tensor) for port in program.outputs}
        return Result(outputs, tensors, self.cycles, dict(self._counters), self.latency)

    def _read(self, name: str) -> npt.NDArray[np.int8]:
        entry, word = self.program.tensors[name], self.program.config.word
        if entry.external:
            first, count = external_span(entry, word)
            return external_tensor(entry, self.machine.external[first : first + count], word)
        return entry.restore(self.machine.read(entry.place))


def check_inputs(program: DeviceProgram, inputs: Tensors, code: str = "E2126") -> dict[str, npt.NDArray[np.int8]]:
    """The inputs, if they are the program's: names, type int8 and shapes; else a `UsageError` of that code."""
    wanted = [port.tensor for port in program.inputs]
    if sorted(inputs) != sorted(wanted):
        raise UsageError(code, f"the inputs must be {', '.join(wanted)}, not {', '.join(inputs) or 'none'}")
    for name, values in inputs.items():
        shape = program.tensors[name].shape
        if values.dtype != np.int8 or values.shape != shape:
            raise UsageError(code, f"must be int8 {shape}, not {values.dtype} {values.shape}", where=f"input {name!r}")
    return dict(inputs)


def run(program: DeviceProgram, inputs: Tensors, trace: bool = False, order: Sequence[Unit] | None = None) -> Result:
    """One inference on a fresh machine; see `Emulator.run`."""
    return Emulator(program).run(inputs, trace, order)
