"""Moves equal the loops of their docstring, written out literally."""

import random
from dataclasses import replace

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.emu.machine import Machine
from onnxhw.errors import InternalError
from onnxhw.external import ULX3S
from onnxhw.isa import Load
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space
from onnxhw.program import from_host, to_host

SMALL = replace(ULX3S, rows=16, columns=64)
"""2,048 words, so that addresses wrap."""
CONFIGS = [
    HwConfig("4 lanes", rows=4, cols=4, word=4, lanes=2, act_depth=64, weight_depth=32, param_depth=16, tables=2,
             external=SMALL),
    HwConfig("6 lanes", rows=6, cols=4, word=6, lanes=1, act_depth=64, weight_depth=32, param_depth=16, tables=2,
             load_rows=3, external=SMALL),
]  # fmt: skip
SPACES = (Space.ACT, Space.WEIGHT, Space.PARAM, Space.TABLE, Space.LOAD_UCODE, Space.MOVE_UCODE)


def bytes_of(machine: Machine, space: Space) -> np.ndarray:
    """A memory's words as bytes."""
    if space in machine.microcode:
        return machine.microcode[space].view(np.uint8).reshape(-1, 4)
    memory = {Space.ACT: machine.act, Space.WEIGHT: machine.weights, Space.PARAM: machine.params}.get(space)
    return machine.tables.view(np.uint8).reshape(-1, 1) if memory is None else memory.view(np.uint8)


def filled(config: HwConfig, seed: int) -> Machine:
    machine, rng = Machine(config), np.random.default_rng(seed)
    machine.external[:] = rng.integers(0, 1 << 32, len(machine.external), np.uint32)
    for space in SPACES:
        memory = bytes_of(machine, space)
        memory[:] = rng.integers(0, 256, memory.shape)
    return machine


def random_move(machine: Machine, rng: random.Random, space: Space) -> Move:
    memory = bytes_of(machine, space)
    words = len(to_host(memory, memory.shape[1]))
    word, run, block = rng.randint(1, 9), rng.randint(1, 4), rng.randint(1, 3)
    step = word + rng.randint(0, 2)
    while step * run * block > words:
        word, run, block, step = 1, rng.randint(1, 4), 1, 1
    back = rng.random() < 0.3  # a step backwards, modulo 2**24
    return Move(
        space=space, store=int(space == Space.ACT and rng.random() < 0.5), word_n=word, run_n=run, block_n=block,
        chip=rng.randint(0, words - step * run * block), c_run=step, c_block=step * run,
        external=rng.choice([rng.randrange(2048), (1 << 24) - 5]),
        e_run=(1 << 24) - 7 if back else rng.randint(0, 300), e_block=rng.randint(0, 2000),
    )  # fmt: skip


def literal(machine: Machine, i: Move) -> tuple[np.ndarray, np.ndarray]:
    """The words of external memory, and of the memory as the host sees it, behind the loops of the docstring."""
    memory, external = bytes_of(machine, Space(i.space)), machine.external.copy()
    words = to_host(memory, memory.shape[1]).copy()
    for block in range(i.block_n):
        for run in range(i.run_n):
            for w in range(i.word_n):
                c = (i.chip + block * i.c_block + run * i.c_run + w) % (1 << 24)
                e = (i.external + block * i.e_block + run * i.e_run + w) % (1 << 24) % len(external)
                if i.store:
                    external[e] = words[c]
                else:
                    words[c] = external[e]
    return external, from_host(words, memory.shape[1])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_random_moves(config: HwConfig, space: Space) -> None:
    rng = random.Random(space)
    for seed in range(40):
        machine = filled(config, seed)
        others = [bytes_of(machine, other).copy() for other in SPACES if other != space]
        move = random_move(machine, rng, space)
        external, words = literal(machine, move)
        machine.execute(move)
        assert np.array_equal(machine.external, external), move.text()
        assert np.array_equal(bytes_of(machine, space), words), move.text()
        for before, other in zip(others, (other for other in SPACES if other != space), strict=True):
            assert np.array_equal(bytes_of(machine, other), before)


def test_a_tile_is_what_was_there_when_it_was_loaded() -> None:
    machine = filled(CONFIGS[0], 1)
    before = machine.weights[:4].copy()
    machine.execute(Load(tiles=1))
    machine.execute(Move(space=Space.WEIGHT, word_n=4))
    assert not np.array_equal(machine.weights[:4], before)
    (tile,) = machine.fifo[0]
    assert np.array_equal(tile, before)


@pytest.mark.parametrize(
    ("move", "code"),
    [
        (Move(space=Space.ACT, chip=4 * 64, word_n=1), "E1121"),
        (Move(space=Space.ACT, chip=4 * 64 - 1, word_n=2, store=1), "E1121"),
        (Move(space=Space.TABLE, chip=511, word_n=2), "E1121"),
        (Move(space=Space.LOAD_UCODE, chip=511, word_n=2), "E1121"),
        (Move(space=Space.WEIGHT, store=1), "E1122"),
        (Move(space=Space.CONTROL), "E1122"),
        (Move(space=Space.EXTERNAL), "E1122"),
        (Move(space=Space.ACT, word_n=0), "E1122"),
    ],
)
def test_moves_that_are_refused(move: Move, code: str) -> None:
    machine = filled(CONFIGS[0], 1)
    with pytest.raises(InternalError) as caught:
        machine.execute(move)
    assert caught.value.code == code


def test_there_are_no_moves_without_external_memory() -> None:
    with pytest.raises(InternalError) as caught:
        Machine(replace(CONFIGS[0], external=None)).execute(Move(space=Space.ACT))
    assert caught.value.code == "E1122"
