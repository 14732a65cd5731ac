"""Rings of microcode: what is fetched must be there, from the first cycle of the fetch on."""

from dataclasses import replace

import pytest
from move_programs import SMALL
from ring_programs import program_of, refilled, vectors

from onnxhw.emu.emulator import Emulator
from onnxhw.emu.machine import Machine
from onnxhw.emu.rings import fetches, load_rings
from onnxhw.errors import InternalError
from onnxhw.isa.external_instructions import Move, fetched
from onnxhw.isa.memory import Space
from onnxhw.isa.microcode import pack
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram

RING = replace(SMALL, name="short ring", vector_ucode=128)


@pytest.fixture
def program() -> DeviceProgram:
    return refilled(RING, Unit.VECTOR, vectors(RING, 150))


def runs(program: DeviceProgram) -> None:
    Emulator(replace(program, cycles=timeline(program.config, program.code).cycles)).run({})


def test_a_ring_that_is_refilled_in_time(program: DeviceProgram) -> None:
    assert len(pack(program.code[Unit.VECTOR])) > 4 * RING.vector_ucode
    runs(program)


def test_the_first_words_lie_in_the_rings(program: DeviceProgram) -> None:
    machine = Machine(RING)
    load_rings(machine, program.code)
    for unit in (Unit.VECTOR, Unit.MOVE):
        words = pack(program.code[unit])[: unit.ucode(RING)]
        assert machine.microcode[unit.microcode][: len(words)].tolist() == words


def test_every_fetch_is_looked_at(program: DeviceProgram) -> None:
    """But for those that begin before anything has happened."""
    found = fetches(RING, program.code, timeline(RING, program.code))
    looked = sorted((fetch.index, fetch) for each in found.values() for fetch in each)
    takes = fetched(program.code[Unit.VECTOR])
    assert [index for index, _ in looked] == list(range(150 - len(looked), 150))
    assert len(looked) > 140
    for index, fetch in looked:
        assert (fetch.first, fetch.first + len(fetch.words)) == (takes[index].first, takes[index].end)


def test_a_program_that_moves_no_microcode_has_no_fetches_to_look_at() -> None:
    code = {Unit.VECTOR: vectors(RING, 3), Unit.MOVE: [Move(space=Space.ACT)]}
    assert fetches(RING, code, timeline(RING, code)) == {}


@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_move_that_brings_other_words_is_found(program: DeviceProgram, number: int) -> None:
    moves = program.code[Unit.MOVE]
    program.external[moves[number].external + 3] ^= 1  # type: ignore[attr-defined]
    with pytest.raises(InternalError) as caught:
        runs(program)
    assert caught.value.code == "E1126"


def test_a_move_that_comes_too_late_is_found(program: DeviceProgram) -> None:
    """No instruction waits for it any more: the unit has fetched what was there before."""
    code = {**program.code, Unit.VECTOR: vectors(RING, 150)}
    late = replace(program, code=code)
    with pytest.raises(InternalError) as caught:
        runs(late)
    assert caught.value.code == "E1126"


def test_a_move_that_comes_too_early_is_found(program: DeviceProgram) -> None:
    """It writes over words that are to be fetched."""
    moves = [move.but(after_vector=0) for move in program.code[Unit.MOVE]]
    with pytest.raises(InternalError) as caught:
        runs(replace(program, code={**program.code, Unit.MOVE: moves}))
    assert caught.value.code == "E1126"


def test_a_ring_is_not_needed_for_a_short_program() -> None:
    runs(program_of(RING, {Unit.VECTOR: []}))
