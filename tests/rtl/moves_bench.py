"""Runs programs with moves on the compiled core with its external memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from move_programs import EXTERNAL, executed

from onnxhw.config import HwConfig
from onnxhw.emu.counters import counters
from onnxhw.emu.machine import Machine
from onnxhw.engines.cxxrtl.core_with_memory import CoreWithMemoryModel, core_with_memory_library
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.memory import ENDED, RUNNING, Control, Space
from onnxhw.isa.move_timing import started
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit, units_of
from onnxhw.program import DeviceProgram, to_host
from onnxhw.program.host_words import memories


@contextmanager
def core(config: HwConfig) -> Iterator[CoreWithMemoryModel]:
    """A compiled core, all of whose external memory that programs use is known."""
    with CoreWithMemoryModel(core_with_memory_library(config).path, config) as model:
        model.put(0, np.zeros(EXTERNAL, np.uint32))
        yield model


def load(model: CoreWithMemoryModel, program: DeviceProgram, act: np.ndarray) -> None:
    """Everything that a run needs; of microcode as much as the rings hold."""
    config = model.config
    depths = {unit.microcode: unit.ucode(config) for unit in units_of(config)}
    for space, words in [*memories(program), (Space.ACT, to_host(act.view(np.uint8), config.word))]:
        model.write(space, 0, words[: depths.get(space, len(words))])
    counts = [len(program.code.get(unit, ())) for unit in UNITS]
    model.write(Space.CONTROL, Control.LOAD_COUNT, [*counts, program.cycles + 200])
    model.write(Space.CONTROL, Control.MOVE_COUNT, len(program.code[Unit.MOVE]))
    model.put(0, program.external)


def differences(model: CoreWithMemoryModel, program: DeviceProgram, machine: Machine) -> list[str]:
    """What of a run that has ended is not as the machine and the timeline have it; the memory's rules, too."""
    config = program.config
    times = timeline(config, program.code)
    found = []
    registers = {r.name.lower(): model.control(r)[0] for r in Control}
    latency = started(config) + times.cycles if program.code.get(Unit.MOVE) else 0  # no input came
    wanted = {**counters(program.code, times), "cycles": times.cycles, "run": ENDED, "latency": latency}
    found += [f"{name} {registers[name]}, not {value}" for name, value in wanted.items() if registers[name] != value]
    if not np.array_equal(model.act(np.arange(config.act_words)), machine.act.view(np.uint8)):
        found.append("activation memory")
    if not np.array_equal(model.take(0, EXTERNAL), machine.external[:EXTERNAL]):
        found.append("external memory")
    model.require_legal()
    return found


def run(model: CoreWithMemoryModel, program: DeviceProgram, act: np.ndarray, rest: int = 0) -> list[str]:
    """Load a program, start it `rest` cycles later, and tell what differs from the emulator behind its run."""
    load(model, program, act)
    model.step(rest)
    model.start()
    if model.run(program.cycles + 1000) != 1 or model.control(Control.RUN)[0] & RUNNING:
        return ["the run does not end"]
    return differences(model, program, executed(program, act))
