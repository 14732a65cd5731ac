"""From when in a run on nothing touches the inputs, so that the next ones may be written while it goes on."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..ir.graph import Port
from ..isa.instructions import Array, Depthwise, Ordered, Vector
from ..isa.units import STREAMING, Unit
from ..program.model import DeviceProgram
from . import footprint
from .memory_state import tensor_words

Words = npt.NDArray[np.int64]


def input_free(program: DeviceProgram) -> tuple[int, int]:
    """The fewest completed array and vector instructions after which no word of an input is touched.

    A depthwise instruction has completed when a vector instruction has that waited for it: the one that drains it.
    (0, 0) if the outputs lie where inputs do: these must be read before.
    """
    inputs = _words(program, program.inputs)
    if (inputs & _words(program, program.outputs)).any():
        return 0, 0
    word = program.config.word
    last = dict.fromkeys((*STREAMING, Unit.VECTOR), 0)
    for unit in last:
        for index, instruction in enumerate(program.code.get(unit, ())):
            if inputs[_touched(instruction, word)].any():
                last[unit] = index + 1
    strips = last[Unit.DEPTHWISE]
    waited = (index + 1 for index, i in enumerate(program.code[Unit.VECTOR]) if i.after_depthwise >= strips)
    return last[Unit.ARRAY], max(last[Unit.VECTOR], next(waited, 0) if strips else 0)


def check_window(program: DeviceProgram) -> None:
    """`InternalError` E1212 if what `input_free` does not wait for touches an input, or outputs lie there."""
    if program.input_free == (0, 0):
        return
    inputs = _words(program, program.inputs)
    if (inputs & _words(program, program.outputs)).any():
        raise InternalError("E1212", "an output lies where an input does, which shall be free before the run has ended")
    size = program.config.word
    for unit, done in zip((Unit.ARRAY, Unit.VECTOR), program.input_free, strict=True):
        code = program.code.get(unit, ())
        if not 0 <= done <= len(code):
            raise InternalError("E1212", f"inputs are free after {done} of {len(code)} {unit} instructions")
        for index, instruction in enumerate(code[done:], done):
            hit = inputs[_touched(instruction, size)]
            if hit.any():
                word = int(_touched(instruction, size)[int(hit.argmax())])
                what = f"touches word {word} of an input, which shall be free after {done} {unit} instructions"
                raise InternalError("E1212", what, where=f"{unit}[{index}] {instruction.text()}")
    waited = max((i.after_depthwise for i in program.code.get(Unit.VECTOR, ())[: program.input_free[1]]), default=0)
    for index, instruction in enumerate(program.code.get(Unit.DEPTHWISE, ())[waited:], waited):
        if inputs[_touched(instruction, size)].any():
            what = f"reads an input, which shall be free after {program.input_free[1]} vector instructions"
            raise InternalError("E1212", what, where=f"depthwise[{index}] {instruction.text()}")


def _words(program: DeviceProgram, ports: Sequence[Port]) -> npt.NDArray[np.bool_]:
    """Which words of activation memory belong to these ports' tensors."""
    found = np.zeros(program.config.act_words, bool)
    for port in ports:
        found[tensor_words(program, port.tensor)] = True
    return found


def _touched(instruction: Ordered, word: int) -> Words:
    """The words of `word` lanes that an instruction reads or writes."""
    if isinstance(instruction, (Array, Depthwise)):
        return footprint.array_reads(instruction, word)
    assert isinstance(instruction, Vector)
    parts = footprint.vector_a(instruction), footprint.vector_b(instruction), footprint.vector_writes(instruction)
    return np.concatenate(parts)
