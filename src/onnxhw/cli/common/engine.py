"""Engines behind one call: a function from inputs to a `Result`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...ir.graph import Array8
from ...program.model import DeviceProgram
from ...program.result import Result
from .output import Output

Execute = Callable[[dict[str, Array8], bool], Result]


@contextmanager
def runner(engine: str, program: DeviceProgram, output: Output) -> Iterator[Execute]:
    """A function ``(inputs, trace) -> Result`` that runs `program` on an engine; the program is loaded once.

    The engine and what it holds are released at the end.
    """
    from ... import engines

    with output.stage(f"prepare {engine}"):
        opened = engines.open(engine, program.config, progress=output.message)
    with opened:
        opened.load(program)
        yield lambda inputs, trace: opened.run(program, inputs, trace)
