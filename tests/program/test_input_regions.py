"""Regions of the input port: they bring every element of an input to its place, and the zero point into the gaps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from onnxhw.isa.input_port import LANES, InputRegion, from_table, input_cycles, steps, stream_words, table_words
from onnxhw.program.input_regions import regions, to_stream
from onnxhw.program.input_scatter import scatter
from onnxhw.program.layout import Place
from onnxhw.program.model import Entry
from onnxhw.program.storage import PackedInput

relaxed = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
FREE = 77
"""What memory holds before."""


def written(entry: Entry, values: Any, word: int) -> Any:
    """Memory behind the port, `FREE` where it has not written; every byte of the stream is taken once, in order."""
    found = regions(entry, word)
    data = to_stream(entry, values, word)
    assert len(data) == LANES * stream_words(found)
    assert [region.ends for region in found] == [False] * (len(found) - 1) + [True]
    memory, taken = np.full(max(region.end for region in found) + word, FREE, np.int64), 0
    for step in steps(found, word):
        assert step.at % word + step.count <= word
        if step.source is not None:
            assert step.source == taken
            assert 0 < step.count <= LANES - step.source % LANES
            part = np.frombuffer(data[taken : taken + step.count], np.int8)
            memory[step.at : step.at + step.count], taken = part, taken + step.count
        elif step.count:
            memory[step.at : step.at + step.count] = entry.zero_point
    assert taken == sum(region.elements for region in found)
    assert len(found) <= 3
    assert from_table([*table_words(found, word), *range(9)], word) == found
    by_region = np.full((len(memory) // word + 1, word + 1), FREE, np.int64)
    for part in scatter(found, word, word + 1):
        by_region.reshape(-1)[part.filled] = part.fill
        by_region.reshape(-1)[part.places] = np.frombuffer(data, np.int8)[part.source]
    np.testing.assert_array_equal(by_region[:, :word].reshape(-1)[: len(memory)], memory)
    return memory


def numbered(shape: tuple[int, ...]) -> Any:
    return (np.arange(np.prod(shape)) % 251 - 125).astype(np.int8).reshape(shape)


@relaxed
@given(data=st.data(), word=st.sampled_from([3, 4, 8, 10, 16]))
def test_blocks_of_channels_lie_where_the_table_says(data: Any, word: int) -> None:
    shape = (1, data.draw(st.integers(1, 40)), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5)))
    row = shape[3] + data.draw(st.integers(0, 2))
    plane = row * shape[2] + data.draw(st.integers(0, 2))
    place = Place(data.draw(st.integers(0, 9)), plane, row, shape, data.draw(st.integers(0, word - 1)))
    values, entry = numbered(shape), Entry("x", place, 1.0, -5)
    wanted = np.full(place.base * word + word * (plane * place.blocks(word) + 1), FREE)
    addresses = place.addresses(word)
    for block, y, x in np.ndindex(*addresses.shape):
        for lane in range(word):
            channel = block * word + lane - place.lane
            if 0 <= channel < shape[1]:
                wanted[addresses[block, y, x] * word + lane] = values[0, channel, y, x]
    memory = written(entry, values, word)
    np.testing.assert_array_equal(memory[: len(wanted)], wanted[: len(memory)])


@relaxed
@given(data=st.data(), word=st.sampled_from([4, 8, 16]), transposed=st.booleans())
def test_packed_inputs_are_what_is_kept(data: Any, word: int, transposed: bool) -> None:
    shape = (1, *(data.draw(st.integers(1, 6)) for _ in range(3)))
    inner_count, outer_count = (shape[2], shape[3]) if transposed else (shape[3], shape[2])
    inner = shape[1] + data.draw(st.integers(0, 3))
    outer = (inner_count - 1) * inner + shape[1] + data.draw(st.integers(0, 2 * word))
    first = data.draw(st.integers(0, 2 * word))
    row, column = (inner, outer) if transposed else (outer, inner)
    used = first + (outer_count - 1) * outer + (inner_count - 1) * inner + shape[1]
    storage = PackedInput(word, -(-used // word) + data.draw(st.integers(0, 2)), first, row, column)
    base, values = data.draw(st.integers(0, 5)), numbered(shape)
    assume(outer >= inner)  # steps are told apart by their size, also along an axis of length 1
    place = Place(base, storage.words, storage.words, storage.stored_shape(shape))
    entry = Entry("x", place, 1.0, -5, storage=storage, model=shape)
    memory = written(entry, values, word)
    flat = entry.store(values)[0, :, 0].T.reshape(-1)
    np.testing.assert_array_equal(memory[base * word : base * word + len(flat)], flat)
    assert set(memory[: base * word].tolist()) <= {FREE}
    assert set(memory[base * word + len(flat) :].tolist()) <= {FREE}


def test_large_inputs_travel_as_one_run() -> None:
    """AD's 640 features: 40 blocks of one pixel."""
    (only,) = regions(Entry("x", Place(3, 1, 1, (1, 640, 1, 1)), 1.0, 0), 16)
    assert only == InputRegion(48, 640, ends=True)


@pytest.mark.parametrize(("after", "left"), [(0, 1 + 2 + 4 + 2), (1, 3 + 2), (3, 1 + 2), (4, 0)])
def test_cycles_that_are_left(after: int, left: int) -> None:
    """Sixteen bytes: one for the region, two for either gap, one for each word."""
    assert input_cycles([InputRegion(0, 16)], 16, after) == left


def test_cycles_of_the_last_frame_are_those_of_its_words() -> None:
    """What precedes a frame's first byte is done before; the sum over all frames misses nothing else."""
    entry = Entry("x", Place(0, 1, 1, (1, 640, 1, 1)), 1.0, 0)
    found = regions(replace(entry, place=Place(0, 64, 8, (1, 3, 8, 8))), 16)
    total = list(steps(found, 16))
    at = next(number for number, step in enumerate(total) if step.source == 128)
    assert input_cycles(found, 16, 32) == len(total) - at
