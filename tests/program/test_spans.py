"""Spans against the words of the whole tensor, and what they leave out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.isa.link import MAX_STEP
from onnxhw.isa.memory import host_stride
from onnxhw.program.layout import Place, to_host
from onnxhw.program.spans import spans


@st.composite
def places(draw):
    word = draw(st.sampled_from([2, 4, 6, 8, 16, 32, 64, 128]))
    channels, height, width = draw(st.integers(1, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    row = width + draw(st.integers(0, 2))
    plane = height * row + draw(st.integers(0, 3))
    shape = (1, channels, height, width)
    return Place(draw(st.integers(0, 9)), plane, row, shape, draw(st.integers(0, word - 1))), word


def memory_of(place, word, values):
    """Every host word that the tensor's activation words have, by address."""
    stride = host_stride(word)
    data = to_host(place.pack(values, word).reshape(-1, word), word).reshape(-1, stride)
    addresses = place.addresses(word).reshape(-1)
    return {int(a) * stride + i: int(row[i]) for a, row in zip(addresses, data, strict=True) for i in range(stride)}


@given(places(), st.integers(0, 2**32))
def test_spans_carry_each_element_to_its_lane_and_back(case, seed):
    place, word = case
    values = np.random.default_rng(seed).integers(-128, 128, place.shape).astype(np.int8)
    values[values == 0] = 1
    whole, written = memory_of(place, word, values), {}
    back = np.zeros(values.size + 1, np.int8)
    for span in spans(place, word, MAX_STEP):
        assert 1 <= span.step <= MAX_STEP
        data = span.gather(values)
        words = np.frombuffer(data, "<u4").tolist()
        assert len(words) == span.count
        written |= {span.address + at * span.step: value for at, value in enumerate(words)}
        span.scatter(data, back)
    assert all(whole[address] == value for address, value in written.items())
    assert not any(value for address, value in whole.items() if address not in written)
    assert np.array_equal(back[:-1].reshape(place.shape), values)


@pytest.mark.parametrize(
    ("place", "word", "wanted"),
    [
        (Place(5, 1024, 32, (1, 3, 32, 32)), 16, [(20, 1024, 4)]),  # an image
        (Place(5, 64, 8, (1, 32, 8, 8)), 16, [(20, 512, 1)]),  # whole words, two blocks one behind the other
        (Place(5, 64, 8, (1, 18, 8, 8)), 16, [(20, 256, 1), (276, 64, 4)]),
        (Place(5, 1, 1, (1, 10, 1, 1)), 16, [(20, 4, 1)]),  # a frame of four words is shorter than three of one
        (Place(0, 64, 8, (1, 2, 8, 8), lane=7), 16, [(1, 64, 4), (2, 64, 4)]),
        (Place(0, 64, 8, (1, 1, 8, 8)), 128, [(0, 2048, 1)]),  # a step of 32 is more than a frame can ask for
    ],
)
def test_what_travels(place, word, wanted):
    assert [(span.address, span.count, span.step) for span in spans(place, word, MAX_STEP)] == wanted
