"""Moves of states: where the new value goes, and behind what."""

import numpy as np
from small_networks import SMALL
from streaming_networks import cell

from onnxhw.isa.memory import host_stride
from onnxhw.program.layout import Place
from onnxhw.program.model import ExternalPiece
from onnxhw.segments.plan import Region
from onnxhw.segments.regions import ExternalMap
from onnxhw.segments.tensor_moves import TensorMoves
from onnxhw.segments.tensor_rooms import TensorRooms

GRAPH, (STATE,) = cell(4, 6)
OLD, NEW = (Region.whole(GRAPH, name) for name in (STATE.read, STATE.made))
PLACES = Place(0, 36, 6, (1, 4, 6, 6)), Place(64, 36, 6, (1, 4, 6, 6))
"""Where both lie in activation memory, in words that have nothing in common."""


def moved(*in_place: object) -> TensorMoves:
    """The old value is loaded, then the new one stored."""
    moves = TensorMoves(GRAPH, SMALL, ExternalMap(SMALL), TensorRooms(), [STATE] if in_place else [])
    moves.load(0, OLD, PLACES[0], None)
    moves.store(0, NEW, PLACES[1])
    return moves


def pieces(moves: TensorMoves, name: str) -> tuple[ExternalPiece, ...]:
    return moves.ports()[name].external


def test_a_new_value_in_place_of_the_old_one_is_stored_behind_all_loads_of_it() -> None:
    moves = moved(STATE)
    assert pieces(moves, STATE.made) == pieces(moves, STATE.read)
    assert {job.behind_loads for job in moves.stores} == {len(moves.loads)}
    assert len(moves.loads) > 0


def test_else_it_has_words_of_its_own_and_waits_for_none() -> None:
    moves = moved()
    (made,), (read,) = pieces(moves, STATE.made), pieces(moves, STATE.read)
    assert abs(made.place.base - read.place.base) >= 36
    assert {job.behind_loads for job in moves.stores} == {0}


def test_a_copy_goes_word_by_word_behind_everything() -> None:
    """Each load of it behind all stores of the new value, each store behind that load and all of the old value."""
    moves = moved()
    loads, stores = len(moves.loads), len(moves.stores)
    moves.copy(0, STATE)
    (made,), (read,), stride = pieces(moves, STATE.made), pieces(moves, STATE.read), host_stride(SMALL.word)
    words = {True: [], False: []}
    for load, store in zip(moves.loads[loads:], moves.stores[stores:], strict=True):
        assert load.behind >= stores
        assert store.behind_loads > loads
        for job, is_store in ((load, False), (store, True)):
            for move in job.moves:
                assert move.fields["store"] == is_store
                first, count = move.fields["external"], move.fields["word_n"]
                words[is_store] += [(move.fields["chip"] + at, first + at) for at in range(count)]
    assert [chip for chip, _ in words[True]] == [chip for chip, _ in words[False]]
    for is_store, place in ((False, made.place), (True, read.place)):
        found = np.array([word for _, word in words[is_store]])
        assert np.array_equal(found, np.arange(36 * stride) + place.base * stride)
