"""The core with its external memory equals emulator and timeline: cycles, counters, contents; and outlives aborts."""

import random
from dataclasses import replace

import moves_bench
import numpy as np
import pytest
from move_programs import EXTERNAL, GEOMETRIES, SMALL, executed, program_moved_in, random_program_with_moves
from ring_programs import program_of, refilled, vectors

from onnxhw.config import HwConfig
from onnxhw.fixed import Scale
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.instructions import Ordered
from onnxhw.isa.memory import RUNNING, Control, Space
from onnxhw.isa.microcode import length
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.program import to_host

MANY = 4096
"""More than an ordering field counts where there is no external memory."""

pytestmark = [pytest.mark.rtl, pytest.mark.slow, pytest.mark.usefixtures("compiler")]


def zeros(config: HwConfig) -> np.ndarray:
    return np.zeros((config.act_words, config.word), np.int8)


@pytest.mark.parametrize("config", GEOMETRIES, ids=lambda config: config.name)
def test_random_programs(config: HwConfig) -> None:
    """Moves of all spaces and both directions beside all units; and programs that moves bring."""
    with moves_bench.core(config) as model:
        for seed in range(12):
            for make in (random_program_with_moves, program_moved_in):
                program, act = make(config, seed)
                assert moves_bench.run(model, program, act, 71 * seed) == [], (make.__name__, seed)


def test_a_move_of_each_length_about_a_row() -> None:
    """Runs that end before, at and behind the end of a row, from each column of it."""
    code: list[Ordered] = []
    for word_n in (1, 2, 127, 128, 129, 200):
        for start in (0, 1, 254, 255, 256 - word_n % 256):
            code += [Move(space=Space.ACT, store=store, chip=17, external=1024 + start, word_n=word_n, run_n=2,
                          c_run=word_n, e_run=512) for store in (0, 1)]  # fmt: skip
    with moves_bench.core(SMALL) as model:
        assert moves_bench.run(model, program_of(SMALL, {Unit.MOVE: code}), zeros(SMALL)) == []


@pytest.mark.parametrize("waits", [range(0, 90, 3), range(90, 800, 41)], ids=["before the run", "during the run"])
def test_a_run_that_is_aborted_and_the_next_one(waits: range) -> None:
    """RUN 0 at any time, while the start's sequence is awaited, too; then a run is exact, whenever it starts."""
    program, act = random_program_with_moves(SMALL, 5, 12)
    rng = random.Random(1)
    assert program.cycles > 600
    with moves_bench.core(SMALL) as model:
        for wait in waits:
            moves_bench.load(model, program, act)
            model.start()
            model.step(wait)
            model.write(Space.CONTROL, Control.RUN, 0)
            model.step(2 * SMALL.external.start_wait)  # type: ignore[union-attr]
            assert not model.control(Control.RUN)[0] & RUNNING
            assert moves_bench.run(model, program, act, rng.randrange(400)) == [], wait


def test_an_aborted_start_does_not_run() -> None:
    program, act = random_program_with_moves(SMALL, 5)
    with moves_bench.core(SMALL) as model:
        moves_bench.load(model, program, act)
        model.start()
        assert model.control(Control.RUN)[0] & RUNNING
        model.write(Space.CONTROL, Control.RUN, 0)
        model.step(2 * SMALL.external.start_wait)  # type: ignore[union-attr]
        assert not model.control(Control.RUN)[0] & RUNNING
        assert np.array_equal(model.act(np.arange(SMALL.act_words)), act.view(np.uint8))
        assert np.array_equal(model.take(0, EXTERNAL), program.external)


def test_a_run_without_moves_begins_at_once() -> None:
    program, act = random_program_with_moves(SMALL, 5)
    code = {**program.code, Unit.MOVE: []}
    code = {unit: [i.but(after_move=0) for i in instructions] for unit, instructions in code.items()}
    program = replace(program, code=code, cycles=timeline(SMALL, code).cycles)
    with moves_bench.core(SMALL) as model:
        moves_bench.load(model, program, act)
        before = model.cycles
        model.start()
        model.run(program.cycles + 100)
        assert model.cycles - before < program.cycles + 8
        assert moves_bench.run(model, program, act) == []


@pytest.mark.parametrize("count", [200, MANY + 300])
def test_a_ring_of_microcode_that_wraps(count: int) -> None:
    """Several times the ring's words, brought by moves; more instructions than an ordering field counts, too."""
    config = replace(SMALL, name="short ring", vector_ucode=128, move_ucode=4096)
    program = refilled(config, Unit.VECTOR, vectors(config, count))
    assert length(program.code[Unit.VECTOR]) > 4 * 128
    with moves_bench.core(config) as model:
        assert moves_bench.run(model, program, zeros(config)) == []


def test_a_ring_that_is_no_power_of_two() -> None:
    """The fetcher's address goes back to 0 behind the last word."""
    config = replace(SMALL, name="odd ring", vector_ucode=120)
    program = refilled(config, Unit.VECTOR, vectors(config, 200))
    with moves_bench.core(config) as model:
        assert moves_bench.run(model, program, zeros(config)) == []


def test_more_moves_than_an_ordering_field_counts() -> None:
    """A word on its way through external memory, one further with each move; a vector instruction waits for one behind
    the 4,096th."""
    code: list[Ordered] = []
    for number in range(MANY // 2 + 40):
        for store in (0, 1):
            after = 2 * number + store
            code.append(Move(space=Space.ACT, chip=7, store=store, external=number + store, after_move=after))
    config = replace(SMALL, name="long ring of moves", move_ucode=length(code))
    assert len(code) > MANY + 50
    (first,) = vectors(config, 1)
    late = [first.but(after_move=count, zy=count % 100) for count in (2000, 3500, MANY + 50)]
    program = program_of(config, {Unit.MOVE: code, Unit.VECTOR: late})
    program = replace(program, params=np.full((1, config.lanes), Scale(1 << 23, 24, 5).pack(), np.uint64))
    spans = timeline(config, program.code).spans
    assert spans[Unit.VECTOR][2].issue > spans[Unit.MOVE][MANY + 49].done
    with moves_bench.core(config) as model:
        assert moves_bench.run(model, program, zeros(config)) == []


def test_words_of_the_host_wait_for_those_that_a_move_writes() -> None:
    """None is lost, whichever of the two comes first, and the run takes no cycle longer."""
    moved, words = 900, range(1000, 1080)
    program = program_of(SMALL, {Unit.MOVE: [Move(space=Space.ACT, word_n=moved)]})
    rng = np.random.default_rng(3)
    program = replace(program, external=rng.integers(0, 1 << 32, EXTERNAL, np.uint32))
    act = zeros(SMALL)
    act[words] = rng.integers(-128, 128, (len(words), SMALL.word))
    assert SMALL.word == 4, "a word of the host's is one of the memory's"
    with moves_bench.core(SMALL) as model:
        moves_bench.load(model, program, zeros(SMALL))
        model.start()
        model.step(SMALL.external.start_wait + 40)  # type: ignore[union-attr]
        for number, word in zip(words, to_host(act[words].view(np.uint8), SMALL.word), strict=True):
            model.write(Space.ACT, number, word)
            model.step(number % 2)  # a word is moved every second cycle, but for refreshes
        assert model.control(Control.RUN)[0] & RUNNING, "all of it was written during the run"
        assert model.run(program.cycles + 1000) == 1
        assert moves_bench.differences(model, program, executed(program, act)) == []
