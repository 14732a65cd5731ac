"""The order of moves: what is needed first of what need not wait, and nothing that would wait for itself."""

import pytest

from onnxhw.errors import InternalError
from onnxhw.isa.instructions import UNITS
from onnxhw.isa.units import Unit
from onnxhw.segments.linked_code import LinkedInstruction, LinkedMove
from onnxhw.segments.move_order import MoveJob, RunTimes, ordered


def run(number: int, vectors: int = 10, cycles: int = 1000) -> RunTimes:
    """A segment of so many vector instructions, spread over its cycles."""
    ends = {unit: (number + 1) * vectors if unit is Unit.VECTOR else 0 for unit in UNITS}
    done = {unit: [] for unit in UNITS} | {Unit.VECTOR: [cycles * (n + 1) // vectors for n in range(vectors)]}
    return RunTimes(number, ends, done, cycles)


def job(name: int, cycles: float = 100.0, behind: int = 0, **waits: int) -> MoveJob:
    return MoveJob([LinkedMove({"chip": name}, {})], cycles, {Unit(unit): n for unit, n in waits.items()}, behind)


def order(runs: list[RunTimes], *queues: list[MoveJob]) -> list[int]:
    microcode, stores, loads, *constants = queues
    return [move.fields["chip"] for move in ordered(runs, [microcode], stores, loads, constants)]


def item() -> LinkedInstruction:
    return LinkedInstruction(None, (), 0)  # type: ignore[arg-type]


def test_what_is_needed_first_goes_before_what_may_come_early() -> None:
    runs = [run(0), run(1)]
    load, early, weights = job(1), job(2), job(3)
    runs[0].wait(item(), weights, 0)
    runs[1].wait(item(), load, 0)
    assert order(runs, [], [], [load], [weights, early]) == [3, 1, 2]


def test_a_move_that_has_to_wait_lets_others_go_first() -> None:
    runs = [run(0), run(1)]
    store, weights = job(1, vector=10), [job(2), job(3)]
    runs[1].wait(item(), store, 0)
    assert order(runs, [], [store], [], weights) == [2, 3, 1]


def test_a_load_goes_behind_the_stores_of_what_it_reads() -> None:
    runs = [run(0), run(1), run(2)]
    stores, load = [job(1, vector=5), job(2, vector=10)], job(3, behind=2)
    runs[2].wait(item(), load, 0)
    assert order(runs, [], stores, [load], []) == [1, 2, 3]


def test_a_store_goes_behind_the_loads_of_what_it_reads() -> None:
    runs = [run(0), run(1)]
    loads, store = [job(1), job(2)], job(3)
    store.behind_loads, store.needed = 2, 0
    assert order(runs, [], [store], loads, []) == [1, 2, 3]


def test_the_last_instruction_of_a_segment_waits_for_the_microcode_of_the_next() -> None:
    runs = [run(0), run(1)]
    microcode, store = job(1, vector=9), job(2, vector=10)  # the ninth ends when the tenth has issued already
    microcode.needed = 0
    runs[0].last[Unit.VECTOR] = microcode, 890, 10
    assert order(runs, [microcode], [store], [], []) == [1, 2]


@pytest.mark.parametrize(("vectors", "expected"), [(5, [3, 2, 1]), (6, [3, 1, 2])])
def test_what_may_need_an_instruction_goes_behind_the_microcode_that_it_waits_for(
    vectors: int, expected: list[int]
) -> None:
    # The last load of segment 1 would issue in its cycle 500 and waits for microcode. The store is needed sooner, but
    # of what it waits for only what has ended in that cycle can do without that load.
    runs = [run(0), run(1), run(2)]
    microcode, store, long = job(1, vector=10), job(2, vector=10 + vectors), job(3, cycles=5000.0)
    runs[1].last[Unit.LOAD] = microcode, 500, 0
    long.needed, store.needed, microcode.needed = -1, 0, 1
    assert order(runs, [microcode], [store], [], [long]) == expected


def test_constants_of_one_memory_do_not_wait_for_those_of_another() -> None:
    runs = [run(0), run(1)]
    params, weights = job(1, vector=10), job(2)
    runs[1].wait(item(), params, 0)
    runs[1].wait(item(), weights, 0)
    assert order(runs, [], [], [], [params], [weights]) == [2, 1]
    assert order(runs, [], [], [], [params, weights]) == [1, 2]


def test_microcode_of_one_unit_does_not_wait_for_that_of_another() -> None:
    # Microcode of the load unit waits for a vector instruction that needs the vector unit's.
    runs = [run(0), run(1)]
    first, second = job(1, vector=9), job(2, vector=2)
    runs[0].last |= {Unit.LOAD: (first, 950, 0), Unit.VECTOR: (second, 500, 10)}
    moves = ordered(runs, [[first], [second]], [], [], [])
    assert [move.fields["chip"] for move in moves] == [2, 1]


def test_moves_that_wait_for_each_other_are_told() -> None:
    runs = [run(0), run(1)]
    load = job(1, vector=15)
    runs[1].wait(item(), load, 0)  # it waits for an instruction of the segment that waits for it
    with pytest.raises(InternalError) as caught:
        order(runs, [], [], [load], [])
    assert caught.value.code == "E1392"
    assert "one for segment 1 for 0 stores, 0 loads and vector[14]" in caught.value.what
