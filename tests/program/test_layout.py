"""Places and host words."""

import numpy as np
import pytest

from onnxhw.isa.memory import host_stride
from onnxhw.program import Place, from_host, to_host


@pytest.mark.parametrize("word", [1, 4, 5, 8, 16])
@pytest.mark.parametrize("lane", [0, 3])
def test_a_channel_lies_where_the_docstring_says(word: int, lane: int) -> None:
    lane %= word
    place = Place(7, 50, 6, (1, 9, 4, 5), lane)
    values = np.arange(180).reshape(1, 9, 4, 5).astype(np.int8)
    memory = np.zeros((1000, word), np.uint8)
    memory[place.addresses(word)] = place.pack(values, word, fill=-1)
    for c in range(9):
        for y in range(4):
            for x in range(5):
                address = 7 + (lane + c) // word * 50 + y * 6 + x
                assert memory[address].view(np.int8)[(lane + c) % word] == values[0, c, y, x]
    used = memory[place.addresses(word)]
    assert (used == 255).sum() >= used.size - 180  # the fill
    assert np.array_equal(place.unpack(memory[place.addresses(word)], word), values)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 128])
def test_host_words(size: int) -> None:
    image = np.random.default_rng(size).integers(0, 256, (9, size)).astype(np.uint8)
    words = to_host(image, size)
    stride = host_stride(size)
    assert stride & (stride - 1) == 0
    assert stride * 4 >= size
    assert stride == 1 or stride * 2 < size  # the smallest
    for n in range(9):
        for i in range(size):
            assert (int(words[n * stride + i // 4]) >> (8 * (i % 4))) & 255 == image[n, i]
    assert np.array_equal(from_host(words, size), image)
