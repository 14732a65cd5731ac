"""A program and its tensors as host words."""

import dataclasses

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.isa import Load
from onnxhw.isa.memory import COUNTERS, Control, Space
from onnxhw.program import DeviceProgram, Entry, Place, to_host
from onnxhw.program.host_words import address_runs, memories, tensor_of, tensor_spans

CONFIG = HwConfig("unit", rows=4, cols=3, word=6, lanes=3, act_depth=64)


@pytest.fixture
def sample() -> DeviceProgram:
    """No meaning: every memory has contents; the tensor has pitch 7 and starts at lane 2."""
    rng = np.random.default_rng(1)
    return DeviceProgram(
        config=CONFIG, model="none", code={"load": [Load(base=5, tiles=2)] * 3, "array": [], "vector": []},
        weights=rng.integers(0, 256, (30, 3)).astype(np.uint8), params=np.array([[1 << 63 | 5, 7, 9]], np.uint64),
        tables=np.arange(-128, 128, dtype=np.int8).reshape(1, 256),
        tensors={"x": Entry("x", Place(10, 40, 7, (1, 5, 4, 6), lane=2), 1.0, 0)},
        inputs=[], outputs=[], layers=[], cycles=100, macs=0,
    )  # fmt: skip


def test_memories_follow_the_host_layout(sample: DeviceProgram) -> None:
    found = dict(memories(sample))
    assert set(found) == {Space.LOAD_UCODE, Space.WEIGHT, Space.PARAM, Space.TABLE}
    first = Load(base=5, tiles=2).encode()
    assert found[Space.LOAD_UCODE].tolist() == [*first, 1, first[0], 1, first[0]]
    w = sample.weights.astype(int)
    assert found[Space.WEIGHT][4] == w[4, 0] | w[4, 1] << 8 | w[4, 2] << 16
    assert found[Space.PARAM].tolist() == [5, 1 << 31, 7, 0, 9, 0, 0, 0]
    assert found[Space.TABLE][0] == 0x80
    assert found[Space.TABLE][128] == 0
    assert found[Space.TABLE][255] == 0x7F


def test_what_is_empty_is_left_out(sample: DeviceProgram) -> None:
    empty = dataclasses.replace(
        sample, code={}, weights=sample.weights[:0], params=sample.params[:0], tables=sample.tables[:0]
    )
    assert list(memories(empty)) == []


def test_a_tensor_comes_back_from_the_words_that_were_written(sample: DeviceProgram) -> None:
    values = np.random.default_rng(2).integers(-128, 128, (1, 5, 4, 6)).astype(np.int8)
    memory = np.zeros((CONFIG.act_words, 6), np.uint8)
    for c in range(5):
        for y in range(4):
            for x in range(6):
                memory[10 + (2 + c) // 6 * 40 + y * 7 + x, (2 + c) % 6] = int(values[0, c, y, x]) & 255
    words, spans = to_host(memory, 6), tensor_spans(sample, "x")
    assert sum(count for _, count in spans) == 2 * 2 * 4 * 6, "two blocks of channels; the gaps between rows stay out"
    pieces = [words[address : address + count] for address, count in spans]
    assert np.array_equal(tensor_of(sample, "x", pieces), values)


def test_stretches() -> None:
    addresses = np.array([5, 6, 7, 9, 10, 20, 3])
    assert address_runs(addresses) == [(5, 0, 3), (9, 3, 2), (20, 5, 1), (3, 6, 1)]
    assert address_runs(np.array([0])) == [(0, 0, 1)]


def test_a_runs_registers_can_be_read_in_one_go() -> None:
    assert COUNTERS[0] == Control.CYCLES + 1
    assert [register - COUNTERS[0] for register in COUNTERS] == list(range(len(COUNTERS)))
