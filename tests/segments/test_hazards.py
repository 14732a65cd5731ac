"""What moves wait for, by the instructions that are in their way."""

import numpy as np
from small_networks import SMALL

from onnxhw.isa.instructions import Array, Vector, VectorOp
from onnxhw.isa.units import Unit
from onnxhw.segments.hazards import ActivationUse, MovedWords, SegmentUse

DEPTH = SMALL.act_depth
CODE = {
    Unit.ARRAY: [Array(act_base=3, ow_n=2, a_ow=1, in_w=2), Array(act_base=DEPTH, in_w=1)],
    Unit.VECTOR: [
        Vector(op=VectorOp.SUM, a_base=9, o_base=2 * DEPTH, in_h=1, in_w=1),
        Vector(op=VectorOp.DRAIN, o_base=2 * DEPTH + 5),
    ],
}
"""Reads of words 3, 4 and the first of bank 1 by the array, of 9 by the vector unit, which writes two words of
bank 2."""


def words(*addresses: int) -> np.ndarray:
    return np.array(addresses, np.int64)


def test_a_segment_tells_its_words_and_banks() -> None:
    use = SegmentUse(CODE, SMALL)
    assert np.flatnonzero(use.touched[Unit.ARRAY]).tolist() == [3, 4, DEPTH]
    assert np.flatnonzero(use.touched[Unit.VECTOR]).tolist() == [9, 2 * DEPTH, 2 * DEPTH + 5]
    assert np.flatnonzero(use.written).tolist() == [2 * DEPTH, 2 * DEPTH + 5]
    assert use.read_banks[Unit.ARRAY].tolist()[:3] == [1, 2, 0]
    assert use.written_banks.tolist()[:3] == [0, 0, 2]


def test_moves_wait_for_the_last_user_of_words_and_banks() -> None:
    use = ActivationUse(SMALL)
    use.add(SegmentUse(CODE, SMALL), {unit: 10 for unit in Unit})
    assert use.before_load(words(3)) == {Unit.ARRAY: 11, Unit.DEPTHWISE: 0, Unit.VECTOR: 0}
    assert use.before_load(words(9, DEPTH)) == {Unit.ARRAY: 12, Unit.DEPTHWISE: 0, Unit.VECTOR: 11}
    # Nobody touches this word, but the vector unit writes into its bank.
    assert use.before_load(words(2 * DEPTH + 1)) == {Unit.ARRAY: 0, Unit.DEPTHWISE: 0, Unit.VECTOR: 12}
    # A store waits for the word to be written, and for those that read the bank.
    assert use.before_store(words(2 * DEPTH)) == {Unit.ARRAY: 0, Unit.DEPTHWISE: 0, Unit.VECTOR: 11}
    assert use.before_store(words(0)) == {Unit.ARRAY: 11, Unit.DEPTHWISE: 0, Unit.VECTOR: 11}


def test_a_later_segment_leaves_what_it_does_not_touch() -> None:
    use = ActivationUse(SMALL)
    use.add(SegmentUse(CODE, SMALL), dict.fromkeys(Unit, 0))
    use.add(SegmentUse({Unit.ARRAY: [Array(act_base=4, in_w=1)]}, SMALL), dict.fromkeys(Unit, 20))
    assert use.before_load(words(3))[Unit.ARRAY] == 1
    assert use.before_load(words(4))[Unit.ARRAY] == 21


def test_instructions_wait_for_moves_of_what_they_touch_or_whose_bank_they_need() -> None:
    use = SegmentUse(CODE, SMALL)
    first, second = use.footprints[Unit.ARRAY]
    summed, drained = use.footprints[Unit.VECTOR]
    load = MovedWords(words(3), True, SMALL)
    assert load.before(first)
    assert not load.before(second)
    assert not load.before(summed)  # it reads another word of the bank, which takes a write beside that
    beside = MovedWords(words(2 * DEPTH + 9), True, SMALL)
    assert beside.before(summed)
    assert beside.before(drained)  # each writes into the bank
    store = MovedWords(words(10), False, SMALL)
    assert store.before(first)
    assert store.before(summed)  # each reads the bank
    assert not store.before(drained)
    assert MovedWords(words(2 * DEPTH + 5), False, SMALL).before(drained)  # it would write over what is stored
    assert not MovedWords(words(2 * DEPTH + 6), False, SMALL).before(drained)
