"""Engines behind one call: a function from inputs to a `Result`."""

from collections.abc import Callable

from ..ir.graph import Array8
from ..program.model import Program
from ..program.result import Result

Execute = Callable[[dict[str, Array8], bool], Result]


def runner(engine: str, program: Program) -> Execute:
    """A function ``(inputs, trace) -> Result`` that runs `program` on an engine; the program is loaded once."""
    if engine == "emulator":
        from ..emu.emulator import Emulator

        emulator = Emulator(program)
        return lambda inputs, trace: emulator.run(inputs, trace)
    from .. import engines

    opened = engines.open(engine, program.config)
    return lambda inputs, trace: opened.run(program, inputs, trace)
