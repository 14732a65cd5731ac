"""What is known to have completed, on a program small enough to be looked at, and against the exact times."""

import numpy as np
import pytest
from small_networks import SMALL, inverted

from onnxhw.isa.external_instructions import ExternalVector, Move
from onnxhw.isa.memory import Space
from onnxhw.isa.timeline import timeline
from onnxhw.isa.units import Unit
from onnxhw.sched.completion_order import PLACE, AccessOrder, completed_at_issue, events
from onnxhw.segments import PartCycles, link, make_plan


def test_who_waits_knows_what_the_other_has_waited_for() -> None:
    code = {
        Unit.VECTOR: [ExternalVector(op=1), ExternalVector(op=1, after_move=2)],
        Unit.MOVE: [Move(space=Space.PARAM), Move(space=Space.ACT, after_vector=1), Move(space=Space.PARAM)],
    }
    known = completed_at_issue(code, timeline(SMALL, code))
    assert known[Unit.VECTOR] == [(0, 0, 0, 0, 0), (0, 0, 0, 1, 2)]
    assert known[Unit.MOVE] == [(0, 0, 0, 0, 0), (0, 0, 0, 1, 1), (0, 0, 0, 1, 2)]


def test_a_vector_instruction_may_begin_before_the_one_before_ends() -> None:
    code = {Unit.VECTOR: [ExternalVector(op=1)] * 2}
    assert completed_at_issue(code, timeline(SMALL, code))[Unit.VECTOR][1] == (0, 0, 0, 0, 0)


def test_what_is_known_has_completed_and_comes_before() -> None:
    graph = inverted(4, 6)
    program = link(graph, make_plan(graph, SMALL, PartCycles(SMALL)), SMALL)
    times = timeline(SMALL, program.code)
    known, order = completed_at_issue(program.code, times), events(times)
    place = {event: number for number, event in enumerate(order)}
    assert len(place) == sum(map(len, program.code.values()))
    for (unit, index), number in place.items():
        for other, count in zip(Unit, known[unit][index], strict=True):
            if count:
                assert times.spans[other][count - 1].done <= times.spans[unit][index].issue
                assert place[other, count - 1] < number


@pytest.mark.parametrize("completed", [3, 4])
def test_a_write_behind_a_read_that_may_still_be_under_way(completed: int) -> None:
    order = AccessOrder(8, (Unit.MOVE,), (Unit.LOAD,))
    known = [0] * len(Unit)
    assert order.reads(Unit.LOAD, 3, np.array([5, 6]), tuple(known)) is None
    known[PLACE[Unit.LOAD]] = completed
    found = order.writes(Unit.MOVE, 0, np.array([4, 5]), tuple(known))
    assert (found is None) == (completed == 4)
    assert found is None or (found.word, found.unit, found.index, found.does) == (5, Unit.LOAD, 3, "reads it")
