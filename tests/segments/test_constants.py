"""Room for constants: contiguous, behind one another, and what is overwritten is gone."""

import pytest

from onnxhw.segments.constants import ConstantRing


def test_room_is_taken_behind_the_last_and_begins_anew() -> None:
    ring = ConstantRing(10)
    assert [ring.take(key, words) for key, words in ((b"a", 4), (b"b", 4), (b"c", 4))] == [0, 4, 0]
    assert (ring.find(b"a"), ring.find(b"b"), ring.find(b"c")) == (None, 4, 0)


@pytest.mark.parametrize(("words", "left"), [(1, None), (6, None), (10, None)])
def test_one_word_that_is_overwritten_is_enough(words: int, left: None) -> None:
    ring = ConstantRing(10)
    ring.take(b"a", 10)
    assert ring.find(b"a") == 0
    ring.take(b"b", words)
    assert ring.find(b"a") is left
    assert ring.find(b"b") == 0
