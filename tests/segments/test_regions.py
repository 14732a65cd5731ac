"""Boxes between activation memory and external memory, word by word."""

import random
from dataclasses import replace

import numpy as np
import pytest
from small_networks import SMALL

from onnxhw.config import HwConfig
from onnxhw.emu.machine import Machine
from onnxhw.emu.moves import move
from onnxhw.ir.boxes import Box
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space, host_stride
from onnxhw.presets import preset
from onnxhw.program.layout import Place, from_host, to_host
from onnxhw.segments.regions import MOST_WORDS, ExternalMap, box_moves, fits_words, linear

WIDE = replace(preset("ulx3s-25f+sdram"), name="wide")


@pytest.mark.parametrize("config", [SMALL, WIDE], ids=lambda config: config.name)
@pytest.mark.parametrize("seed", range(12))
def test_a_box_comes_and_goes(seed: int, config: HwConfig) -> None:
    """What arrives is the box; what is stored elsewhere is the box there, and nothing else."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    word, shape = config.word, (1, chance.randint(1, 3 * config.word), chance.randint(1, 6), chance.randint(1, 7))
    spans = [sorted(chance.sample(range(size + 1), 2)) for size in shape[2:]]
    block = chance.randrange(-(-shape[1] // word))
    end = chance.choice([shape[1], min(shape[1], (block + 1) * word)])
    box = Box((block * word, end), *((low, high) for low, high in spans))
    assert fits_words(box, shape[1], config)
    values = rng.integers(-128, 128, shape).astype(np.int8)
    machine, room = Machine(config), ExternalMap(config)
    room.reserve(3)
    whole, other = room.tensor(shape), room.tensor(shape)
    words = to_host(whole.pack(values, word).reshape(-1, word), word)
    machine.external[whole.base * host_stride(word) :][: len(words)] = words
    place = Place(5, box.shape[2] * box.shape[3], box.shape[3], box.shape)
    for each in box_moves(place, box, whole, config):
        move(machine, Move(**each.fields(Space.ACT, False)))
    assert np.array_equal(machine.read(place), values[box.slices])
    for each in box_moves(place, box, other, config):
        move(machine, Move(**each.fields(Space.ACT, True)))
    stored = from_host(machine.external[other.base * host_stride(word) :][: len(words)], word)
    made = other.unpack(stored.reshape(other.blocks(word), *shape[2:], word), word)
    wanted = np.zeros_like(values)
    wanted[box.slices] = values[box.slices]
    assert np.array_equal(made, wanted)


def test_boxes_within_a_word_are_told() -> None:
    assert SMALL.word == 4
    ends = {(0, 4): True, (4, 10): True, (8, 10): True, (1, 4): False, (4, 9): False}
    assert {each: fits_words(Box(each, (0, 1), (0, 1)), 10, SMALL) for each in ends} == ends


def test_long_runs_are_cut() -> None:
    parts = list(linear(7, 100, 2 * MOST_WORDS + 5))
    assert [part.counts for part in parts] == [(1, 1, MOST_WORDS), (1, 1, MOST_WORDS), (1, 1, 5)]
    assert [(part.chip, part.external) for part in parts] == [
        (7 + n * MOST_WORDS, 100 + n * MOST_WORDS) for n in range(3)
    ]


def test_equal_constants_lie_once() -> None:
    room = ExternalMap(SMALL)
    first, second = np.arange(5, dtype=np.uint32), np.arange(3, dtype=np.uint32)
    assert room.constants(first) == room.constants(first.copy()) == 0
    at = room.constants(second)
    assert at >= 5
    assert np.array_equal(room.image()[at : at + 3], second)
    assert np.array_equal(room.image()[:5], first)
