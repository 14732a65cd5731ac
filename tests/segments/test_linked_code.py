"""Code of segments in a row: offsets, references to moves, microcode that moves bring."""

from dataclasses import replace

import pytest
from small_networks import SMALL

from onnxhw.errors import DoesNotFitError
from onnxhw.isa.external_instructions import ExternalArray, ExternalVector, Move, fetched
from onnxhw.isa.instructions import wait_reads
from onnxhw.isa.memory import Space
from onnxhw.isa.microcode import length
from onnxhw.isa.units import Unit
from onnxhw.segments import linked_code
from onnxhw.segments.linked_code import LinkedCode, LinkedMove
from onnxhw.segments.regions import ExternalMap, linear

(STRIDED,) = linear(0, 0, 4)
FIELDS = STRIDED.fields(Space.ACT, False)


def code_of(**fields: int) -> LinkedCode:
    config = replace(SMALL, **fields)
    return LinkedCode(config, ExternalMap(config))


def test_segments_wait_for_all_that_came_before() -> None:
    code = code_of()
    code.segment({Unit.ARRAY: [ExternalArray()] * 3, Unit.VECTOR: [ExternalVector(after_array=2)]})
    code.segment({Unit.ARRAY: [ExternalArray(**wait_reads(0, 1))], Unit.VECTOR: [ExternalVector(after_array=1)] * 2})
    made = code.finish()
    assert [i.waits for i in made[Unit.VECTOR]] == [(0, 2, 0, 0, 0), (0, 4, 0, 1, 0), (0, 4, 0, 1, 0)]
    last = made[Unit.ARRAY][3]
    assert last.waits == (0, 3, 0, 1, 0)
    assert isinstance(last, ExternalArray)
    assert last.more_reads == 1  # the first vector instruction of the second segment has read


def test_who_waits_for_a_move_waits_for_its_number_and_so_do_those_behind() -> None:
    code = code_of()
    moves = [LinkedMove(FIELDS, {Unit.ARRAY: 0}) for _ in range(3)]
    first, second = code.segment({Unit.VECTOR: [ExternalVector()] * 2})[Unit.VECTOR]
    second.moves += [moves[1], moves[0]]
    for move in (moves[2], moves[0], moves[1]):
        code.put(move)
    assert first.move == 0
    assert [i.after_move for i in code.finish()[Unit.VECTOR]] == [0, 3]  # type: ignore[attr-defined]


@pytest.mark.parametrize("segments", [2, 9])
def test_microcode_beyond_the_ring_is_brought_before_it_is_fetched(segments: int) -> None:
    code = code_of(vector_ucode=128)
    for number in range(segments):
        mine = [ExternalVector(o_base=index, zy=number) for index in range(20)]
        code.segment({Unit.VECTOR: mine})
        for move in code.microcode(Unit.VECTOR, len(mine)):
            code.put(move)
    free = code.free_for(Unit.VECTOR)
    made = code.finish()
    words = [each.end for each in fetched(made[Unit.VECTOR])]
    moves = [i for i in made[Unit.MOVE] if isinstance(i, Move)]
    assert bool(moves) == (words[-1] > 128)
    for number in range(len(made[Unit.VECTOR])):
        brought = made[Unit.VECTOR][number - 1].after_move if number else 0  # type: ignore[attr-defined]
        for one in moves[:brought]:
            assert one.waits[list(Unit).index(Unit.VECTOR)] < number  # else nothing would go on
    # What is told before is no sooner than what it turns out to be for the last piece.
    if moves:
        assert moves[-2].waits[list(Unit).index(Unit.VECTOR)] <= free[-1]
    if moves:
        total = sum(one.word_n for one in moves[:-1])
        assert total == words[-1] - 128
        assert (moves[-1].chip, moves[-1].word_n) == (0, 128)  # the ring as it was, for the next run
        assert moves[-1].waits[list(Unit).index(Unit.VECTOR)] == len(made[Unit.VECTOR])


def test_moves_bring_their_own_microcode() -> None:
    code = code_of(move_ucode=512)
    for number in range(400):
        code.put(LinkedMove({**FIELDS, "chip": number % 50, "external": 3 * number}, {Unit.VECTOR: 0}))
    moves = [i for i in code.finish()[Unit.MOVE] if isinstance(i, Move)]
    own = [number for number, one in enumerate(moves) if one.space == Space.MOVE_UCODE]
    ends = [each.end for each in fetched(moves)]
    assert length(moves) > 2 * 512
    for count, number in enumerate(own[:-1]):
        assert ends[number] >= (count + 1) * 128  # what it overwrites was fetched before it runs
        assert ends[number + 1] < 512 + count * 128  # and what it brings is not fetched yet
    assert own[-1] == len(moves) - 1
    assert (moves[-1].chip, moves[-1].word_n) == (0, 512)


def test_a_ring_that_is_too_small_is_told() -> None:
    code = code_of(vector_ucode=64)
    for number in range(3):
        mine = [ExternalVector(o_base=index, a_base=7 * index, zy=number) for index in range(30)]
        code.segment({Unit.VECTOR: mine})
        for move in code.microcode(Unit.VECTOR, len(mine)):
            code.put(move)
    with pytest.raises(DoesNotFitError, match="vector microcode of"):
        code.finish()


def test_moves_that_are_alike_bring_all_their_microcode() -> None:
    """Each loader stands between two moves that differ in a word, and takes many more."""
    code = code_of(move_ucode=512)
    others = {"block_n": 3, "run_n": 5, "word_n": 900, "c_block": 4000, "c_run": 452, "e_block": 1 << 20, "e_run": 896}
    for number in range(6000):
        code.put(LinkedMove(FIELDS | others | {"chip": 4 * number % 1024, "external": 9 * number, "store": 1}, {}))
    made = code.finish()[Unit.MOVE]
    loaders = [i for i in made if isinstance(i, Move) and i.space == Space.MOVE_UCODE]
    brought = sum(i.word_n for i in loaders[:-1])  # the last one brings the first words back
    assert len(made) == 6000 + len(loaders)
    assert length(made) <= 512 + brought


def test_more_instructions_than_counters_count_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_code, "MOST", 30)
    code = code_of()
    code.segment({Unit.VECTOR: [ExternalVector(o_base=index) for index in range(30)]})
    code.require_countable()
    code.segment({Unit.VECTOR: [ExternalVector()]})
    with pytest.raises(DoesNotFitError, match="31 vector instructions in a run, a counter counts 30"):
        code.require_countable()
    for number in range(31):
        code.put(LinkedMove({**FIELDS, "chip": number}, {}))
    with pytest.raises(DoesNotFitError, match="31 move instructions"):
        code.finish()
