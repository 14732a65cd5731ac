"""From when in a run on nothing touches the inputs, so that the next ones may be written while it goes on."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..ir.graph import Port
from ..isa.early_instructions import early_of
from ..isa.external_instructions import Move
from ..isa.instructions import Array, Depthwise, Ordered, Vector
from ..isa.timeline import Timeline
from ..isa.units import STREAMING, Unit
from ..program.external_tensors import external_inputs, word_runs
from ..program.model import DeviceProgram
from . import footprint
from .completion_order import PLACE, completed_at_issue
from .memory_state import tensor_words

Words = npt.NDArray[np.int64]


def input_free(program: DeviceProgram, times: Timeline) -> tuple[int, int]:
    """The fewest completed array and vector instructions after which no word of an input is touched.

    A depthwise instruction has completed when a vector instruction has that waited for it: the one that drains it. So
    has a move that brings an input from external memory: of the first array and the first vector instruction that
    waited for all of them the one that completes earlier.
    (0, 0) if the outputs lie where inputs do: these must be read before. An instruction that writes where an input lay,
    and is counted early, is over when the next one is counted.
    """
    if program.in_segments:
        return _external_free(program, times)
    inputs = _words(program, program.inputs)
    if (inputs & _words(program, program.outputs)).any():
        return 0, 0
    word = program.config.word
    last = dict.fromkeys((*STREAMING, Unit.VECTOR), 0)
    for unit in last:
        for index, instruction in enumerate(program.code.get(unit, ())):
            if inputs[_touched(instruction, word)].any():
                last[unit] = index + 1 + _writes_late(instruction, inputs)
    strips = last[Unit.DEPTHWISE]
    waited = (index + 1 for index, i in enumerate(program.code[Unit.VECTOR]) if i.after_depthwise >= strips)
    return last[Unit.ARRAY], max(last[Unit.VECTOR], next(waited, 0) if strips else 0)


def check_window(program: DeviceProgram, times: Timeline) -> None:
    """`InternalError` E1212 if what `input_free` does not wait for touches an input, or outputs lie there."""
    if program.input_free == (0, 0):
        return
    if program.in_segments:
        _check_external(program, times)
        return
    inputs = _words(program, program.inputs)
    if (inputs & _words(program, program.outputs)).any():
        raise InternalError("E1212", "an output lies where an input does, which shall be free before the run has ended")
    size = program.config.word
    for unit, done in _counts(program):
        code = program.code.get(unit, ())
        for index, instruction in enumerate(code[done:], done):
            hit = inputs[_touched(instruction, size)]
            if hit.any():
                word = int(_touched(instruction, size)[int(hit.argmax())])
                what = f"touches word {word} of an input, which shall be free after {done} {unit} instructions"
                raise InternalError("E1212", what, where=f"{unit}[{index}] {instruction.text()}")
    counted = program.code.get(Unit.VECTOR, ())[: program.input_free[1]]
    if counted and _writes_late(counted[-1], inputs):
        what = "writes where an input lies after it has been counted, and with it the input is free"
        raise InternalError("E1212", what, where=f"vector[{len(counted) - 1}] {counted[-1].text()}")
    waited = max((i.after_depthwise for i in counted), default=0)
    for index, instruction in enumerate(program.code.get(Unit.DEPTHWISE, ())[waited:], waited):
        if inputs[_touched(instruction, size)].any():
            what = f"reads an input, which shall be free after {program.input_free[1]} vector instructions"
            raise InternalError("E1212", what, where=f"depthwise[{index}] {instruction.text()}")


def _counts(program: DeviceProgram) -> list[tuple[Unit, int]]:
    """`DeviceProgram.input_free` by unit; `InternalError` E1212 if there are not so many instructions."""
    found = list(zip((Unit.ARRAY, Unit.VECTOR), program.input_free, strict=True))
    for unit, done in found:
        count = len(program.code.get(unit, ()))
        if not 0 <= done <= count:
            raise InternalError("E1212", f"inputs are free after {done} of {count} {unit} instructions")
    return found


def _external_free(program: DeviceProgram, times: Timeline) -> tuple[int, int]:
    """`input_free` of a program with moves, whose inputs lie in external memory; (0, 0) too if one does not."""
    inputs = _external_words(program, program.inputs)
    lying = set(external_inputs(program))
    outside = any(port.tensor not in lying for port in program.inputs)
    if outside or (inputs & _external_words(program, program.outputs)).any():
        return 0, 0
    moves = program.code[Unit.MOVE]
    last = max((n + 1 for n, move in enumerate(moves) if inputs[_moved(move)].any()), default=0)
    known = completed_at_issue(program.code, times)
    found = []
    for unit in (Unit.ARRAY, Unit.VECTOR):
        at = next((n for n, each in enumerate(known[unit]) if each[PLACE[Unit.MOVE]] >= last), None)
        if at is not None:
            found.append((times.spans[unit][at].done, unit, at + 1))
    _, unit, count = min(found, default=(0, Unit.ARRAY, 0))
    return (count, 0) if unit == Unit.ARRAY else (0, count)


def _check_external(program: DeviceProgram, times: Timeline) -> None:
    """`check_window` of a program with moves."""
    inputs = _external_words(program, program.inputs)
    lying = set(external_inputs(program))
    for port in program.inputs:
        if port.tensor not in lying:
            what = f"input {port.tensor!r} does not lie in external memory, and shall be free before the run has ended"
            raise InternalError("E1212", what)
    if (inputs & _external_words(program, program.outputs)).any():
        raise InternalError("E1212", "an output lies where an input does, which shall be free before the run has ended")
    known = completed_at_issue(program.code, times)
    done = max(known[unit][count - 1][PLACE[Unit.MOVE]] if count else 0 for unit, count in _counts(program))
    for index, move in enumerate(program.code[Unit.MOVE][done:], done):
        hit = inputs[_moved(move)]
        if hit.any():
            array, vector = program.input_free
            what = (
                f"touches word {int(_moved(move)[int(hit.argmax())])} of external memory, of an input that shall be "
                f"free after {array} array and {vector} vector instructions"
            )
            raise InternalError("E1212", what, where=f"move[{index}] {move.text()}")


def _external_words(program: DeviceProgram, ports: Sequence[Port]) -> npt.NDArray[np.bool_]:
    """Which host words of external memory belong to these ports' tensors."""
    assert program.config.external is not None
    found = np.zeros(program.config.external.host_words, bool)
    for port in ports:
        for first, count in word_runs(program.tensors[port.tensor], program.config.word):
            found[first : first + count] = True
    return found


def _moved(move: Ordered) -> Words:
    """The words of external memory that a move reads or writes."""
    assert isinstance(move, Move)
    return footprint.move_words(move)[1]


def _words(program: DeviceProgram, ports: Sequence[Port]) -> npt.NDArray[np.bool_]:
    """Which words of activation memory belong to these ports' tensors."""
    found = np.zeros(program.config.act_words, bool)
    for port in ports:
        found[tensor_words(program, port.tensor)] = True
    return found


def _writes_late(instruction: Ordered, inputs: npt.NDArray[np.bool_]) -> bool:
    """Whether an instruction writes to an input's word after it has been counted as completed."""
    if not isinstance(instruction, Vector) or not early_of(instruction):
        return False
    return bool(inputs[footprint.vector_writes(instruction)].any())


def _touched(instruction: Ordered, word: int) -> Words:
    """The words of `word` lanes that an instruction reads or writes."""
    if isinstance(instruction, (Array, Depthwise)):
        return footprint.array_reads(instruction, word)
    assert isinstance(instruction, Vector)
    parts = footprint.vector_a(instruction), footprint.vector_b(instruction), footprint.vector_writes(instruction)
    return np.concatenate(parts)
