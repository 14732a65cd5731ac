"""Programs whose microcode comes as the run goes on, decoded from memories."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from linked_program import LINKED, program
from move_programs import SMALL
from ring_programs import refilled, vectors

from onnxhw.emu.machine import Machine
from onnxhw.emu.ring_decode import decode_rings
from onnxhw.emu.rings import load_rings
from onnxhw.errors import InternalError
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space
from onnxhw.isa.microcode import pack
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram

RING = replace(SMALL, name="short ring", vector_ucode=128)


def memories(one: DeviceProgram) -> tuple[dict[Space, np.ndarray], dict[Unit, int]]:
    machine = Machine(one.config)
    load_rings(machine, one.code)
    machine.external[: len(one.external)] = one.external
    counts = {unit: len(one.code.get(unit, ())) for unit in Unit}
    return {**machine.microcode, Space.EXTERNAL: machine.external}, counts


@pytest.mark.parametrize("make", [program, lambda: refilled(RING, Unit.VECTOR, vectors(RING, 150))])
def test_the_instructions_are_those_that_were_packed(make: Callable[[], DeviceProgram]) -> None:
    one = make()
    memory, counts = memories(one)
    before = {space: words.copy() for space, words in memory.items()}
    code, (first, end) = decode_rings(one.config, memory, counts)
    assert {unit: code[unit] for unit in Unit} == {unit: list(one.code.get(unit, ())) for unit in Unit}
    assert all(np.array_equal(memory[space], words) for space, words in before.items())
    rings = {int(unit.microcode) for unit in Unit}
    moved = [each for each in one.code[Unit.MOVE] if isinstance(each, Move) and each.space in rings]
    assert first == min(each.external for each in moved)
    assert end == max(each.external + each.word_n for each in moved)


def test_words_that_have_not_come() -> None:
    """Another instruction is made of what the ring has instead, or none."""
    one = program()
    memory, counts = memories(one)
    memory[Space.EXTERNAL][:] = 0
    with pytest.raises(InternalError, match="E1127"):
        decode_rings(LINKED, memory, counts)


def test_instructions_that_wait_for_each_other() -> None:
    moves = [Move(space=Space.ACT, after_vector=1)]
    memory, counts = memories(replace(program(), code={Unit.MOVE: moves}))
    with pytest.raises(InternalError, match=r"E1127.*move"):
        decode_rings(LINKED, memory, counts)


def test_a_move_of_more_words_than_there_are() -> None:
    moves = [Move(space=Space.VECTOR_UCODE, word_n=1 << 13, run_n=1 << 11, block_n=1 << 11)]
    memory, counts = memories(replace(program(), code={Unit.MOVE: moves}))
    assert len(pack(moves)) < LINKED.move_ucode
    with pytest.raises(InternalError, match="E1122"):
        decode_rings(LINKED, memory, counts)
