"""`CxxrtlEngine`: a program on the compiled RTL of the core."""

import os
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...closeable import Closeable
from ...config import HwConfig
from ...emu.emulator import check_inputs
from ...errors import UsageError
from ...isa.early_instructions import early_of
from ...isa.memory import COUNTERS, ENDED, MOVE_COUNTERS, Control, Space
from ...isa.units import Unit
from ...program.external_tensors import external_span, external_tensor, external_words, state_words
from ...program.host_words import tensor_of, tensor_spans
from ...program.input_regions import input_stream, last_frame
from ...program.model import DeviceProgram
from ...program.result import Result
from ..run_setup import budget, program_writes, watchdog_error
from .build import Library, Progress
from .core_model import CoreModel, core_library
from .core_with_memory import CoreWithMemoryModel, core_with_memory_library

WAVE_CYCLES = 20_000
"""Cycles that a waveform covers unless asked otherwise."""

BEGIN = 2064
"""Cycles that the begin of a run may take beyond its budget: more than any memory's `ExternalMemory.start_wait`."""

Tensors = Mapping[str, npt.NDArray[np.int8]]


class CxxrtlEngine(Closeable):
    """The core's RTL, compiled to native code (see `core_library`); the first use of a configuration takes a minute.

    With external memory its controller, and a memory that checks it, are beside the core; the host's words get there in
    no time. A program stays loaded between runs, with its states: the next inference only writes inputs. `library` says
    how long the build took.
    """

    name = "cxxrtl"

    def __init__(self, config: HwConfig, progress: Progress | None = None, *, library: Library | None = None) -> None:
        self.config, self._progress = config, progress
        self.library = library or _library(config, progress=progress)
        self._core: CoreModel | None = _model(self.library, config)
        self._loaded: DeviceProgram | None = None

    def close(self) -> None:
        """Release the design."""
        if self._core is not None:
            self._core.close()
            self._core = None

    @property
    def core(self) -> CoreModel:
        """The running design."""
        if self._core is None:
            raise UsageError("E2401", "the engine has been closed")
        return self._core

    def load(self, program: DeviceProgram) -> None:
        """Write a program into the core, unless it is the one that is loaded."""
        if self._loaded is not program:
            self._loaded = None
            load(self.core, program)
            self._loaded = program

    def clear_state(self) -> None:
        """See `Engine.clear_state`."""
        if self._loaded is not None:
            _begin_states(self.core, self._loaded)

    def run(
        self,
        program: DeviceProgram,
        inputs: Tensors,
        trace: bool = False,
        *,
        waves: str | os.PathLike[str] | None = None,
        wave_cycles: int = WAVE_CYCLES,
    ) -> Result:
        """One inference.

        Parameters
        ----------
        inputs : int8 arrays of the program's input tensors, by tensor name.
        trace : also capture every tensor of the tensor table in the cycle in which its last instruction is over.
        waves : write the run's first `wave_cycles` cycles to this VCD file (compiles a second model).

        Errors: `MismatchError` E8402 if the run does not end in twice its predicted cycles, E8403 if a rule of external
        memory was violated.
        """
        checked = check_inputs(program, inputs)
        if waves is not None:
            library = _library(self.config, waves=True, progress=self._progress)
            with _model(library, self.config) as core:
                load(core, program)
                core.waves(waves, wave_cycles)
                return execute(core, program, checked, trace)
        self.load(program)
        return execute(self.core, program, checked, trace)


def _library(config: HwConfig, *, waves: bool = False, progress: Progress | None = None) -> Library:
    make = core_library if config.external is None else core_with_memory_library
    return make(config, waves=waves, progress=progress)


def _model(library: Library, config: HwConfig) -> CoreModel:
    return (CoreModel if config.external is None else CoreWithMemoryModel)(library.path, config)


def load(core: CoreModel, program: DeviceProgram) -> None:
    """Write a program into a core, and what it brings along into external memory."""
    if isinstance(core, CoreWithMemoryModel):
        core.put(0, program.external)
        _begin_states(core, program)
    for space, address, words in program_writes(program):
        core.write(space, address, words)


def _begin_states(core: CoreModel, program: DeviceProgram) -> None:
    for first, words in state_words(program):
        _external(core).put(first, words)


def execute(core: CoreModel, program: DeviceProgram, inputs: Tensors, trace: bool) -> Result:
    """Run the loaded program once."""
    words = input_stream(program, inputs)
    for entry in (program.tensors[name] for name in inputs):
        for first, mine in external_words(entry, inputs[entry.name], program.config.word):
            _external(core).put(first, mine)
    if len(words):
        core.infer(words, last_frame(len(words)))
    else:
        core.start()
    tensors = _capture(core, program, 0) if trace else {}  # nothing has been written yet
    limit = budget(program) + BEGIN
    if trace:
        for count in sorted({entry.ready for entry in program.tensors.values() if not entry.external} - {0}):
            if core.run(limit, count) != 2:
                break
            if late := early_of(program.code[Unit.VECTOR][count - 1]):
                core.step(late)
            tensors |= _capture(core, program, count)
    core.run(limit)
    status, *_ = core.control(Control.RUN)
    cycles, *counts, latency = core.control(Control.CYCLES, 2 + len(COUNTERS))
    if status != ENDED:
        raise watchdog_error(program, status, cycles, counts)
    if isinstance(core, CoreWithMemoryModel):
        core.require_legal()
    outputs = {}
    for name in (port.tensor for port in program.outputs):
        if program.tensors[name].external:
            outputs[name] = _external_output(_external(core), program, name)
            continue
        pieces = [core.read(Space.ACT, *span) for span in tensor_spans(program, name)]
        outputs[name] = tensor_of(program, name, pieces)
    counters = dict(zip((register.name.lower() for register in COUNTERS), counts, strict=True))
    if moves := bool(program.code.get(Unit.MOVE)):
        counted = core.control(MOVE_COUNTERS[0], len(MOVE_COUNTERS))
        counters |= dict(zip((register.name.lower() for register in MOVE_COUNTERS), counted, strict=True))
    return Result(outputs, tensors, cycles, counters, latency if len(words) or moves else cycles)


def _external(core: CoreModel) -> CoreWithMemoryModel:
    assert isinstance(core, CoreWithMemoryModel)  # such a program is for a configuration with external memory
    return core


def _external_output(core: CoreWithMemoryModel, program: DeviceProgram, name: str) -> npt.NDArray[np.int8]:
    entry, word = program.tensors[name], program.config.word
    return external_tensor(entry, core.take(*external_span(entry, word)), word)


def _capture(core: CoreModel, program: DeviceProgram, ready: int) -> dict[str, npt.NDArray[np.int8]]:
    """The tensors that are complete now."""
    word = program.config.word
    return {
        name: entry.restore(entry.place.unpack(core.act(entry.place.addresses(word)), word))
        for name, entry in program.tensors.items()
        if entry.ready == ready and not entry.external
    }
