"""Room for constants: behind one another, over the end of the ring, and what is overwritten is gone."""

import numpy as np
import pytest

from onnxhw.segments.constants import ConstantRing


def placed(ring: ConstantRing, *wanted: tuple[bytes, int], wraps: bool = False) -> dict[bytes, tuple[list[int], bool]]:
    return {key: (at.tolist(), new) for key, (at, new) in ring.place(wanted, wraps).items()}


def test_room_is_taken_behind_the_last_and_begins_anew() -> None:
    ring = ConstantRing(10)
    assert placed(ring, (b"a", 4), (b"b", 4)) == {b"a": ([0, 1, 2, 3], True), b"b": ([4, 5, 6, 7], True)}
    assert placed(ring, (b"c", 4)) == {b"c": ([0, 1, 2, 3], True)}
    assert placed(ring, (b"b", 4)) == {b"b": ([4, 5, 6, 7], False)}


def test_room_goes_over_the_end_where_it_may() -> None:
    ring = ConstantRing(10, {}, 2)
    placed(ring, (b"a", 6))
    assert placed(ring, (b"b", 4), wraps=True) == {b"b": ([8, 9, 2, 3], True)}
    assert placed(ring, (b"a", 6), wraps=True)[b"a"][1]  # two of its words are gone


def test_who_needs_words_in_a_row_does_not_find_those_that_lie_in_two_places() -> None:
    ring = ConstantRing(10)
    placed(ring, (b"a", 6))
    placed(ring, (b"b", 5), wraps=True)
    assert placed(ring, (b"b", 5), wraps=True) == {b"b": ([6, 7, 8, 9, 0], False)}
    assert placed(ring, (b"b", 5)) == {b"b": ([1, 2, 3, 4, 5], True)}


@pytest.mark.parametrize(("words", "gone"), [(1, True), (6, True), (10, True)])
def test_one_word_that_is_overwritten_is_enough(words: int, gone: bool) -> None:
    ring = ConstantRing(10)
    placed(ring, (b"a", 10))
    assert placed(ring, (b"a", 10)) == {b"a": (list(range(10)), False)}
    placed(ring, (b"b", words))
    assert placed(ring, (b"a", 10))[b"a"] == (list(range(10)), gone)


@pytest.mark.parametrize("wraps", [False, True])
def test_what_a_segment_finds_is_not_overwritten_by_what_it_brings(wraps: bool) -> None:
    ring = ConstantRing(10)
    placed(ring, (b"a", 3), (b"b", 5))
    found = placed(ring, (b"c", 6), (b"a", 3), wraps=wraps)
    assert found[b"a"] == ([0, 1, 2], False)
    assert found[b"c"] == ([3, 4, 5, 6, 7, 8], True)


def test_what_is_in_the_way_is_brought_again() -> None:
    ring = ConstantRing(10)
    placed(ring, (b"a", 4), (b"b", 3))
    found = placed(ring, (b"c", 7), (b"b", 3))  # beside b there is no room for seven in a row
    assert found[b"b"][1]
    assert found[b"c"][1]
    assert sorted(found[b"b"][0] + found[b"c"][0]) == list(range(10))


def test_what_is_resident_stays_below_the_ring() -> None:
    ring = ConstantRing(10, {b"r": 0}, 4)
    for _ in range(3):
        found = placed(ring, (b"r", 4), (b"a", 5))
        assert found[b"r"] == ([0, 1, 2, 3], False)
        assert min(found[b"a"][0]) >= 4
    assert not np.any(ring.arrived)
