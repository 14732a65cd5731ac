"""Phases of a segment's run: every instruction in one, in order, in the times of the segment."""

import numpy as np

from onnxhw.isa.instructions import UNITS
from onnxhw.isa.timing import IssueRecord, Timeline
from onnxhw.isa.units import Unit
from onnxhw.segments.phases import last_issued, phases

LOADS = [(0, 10), (20, 30), (40, 60), (70, 80)]
BEFORE = {unit: 5 for unit in UNITS}


def times() -> Timeline:
    """An array instruction that takes all tiles, one that takes the last, and vector instructions behind each."""
    spans = {
        Unit.LOAD: [], Unit.DEPTHWISE: [],
        Unit.ARRAY: [record(5, 69), record(70, 90)],
        Unit.VECTOR: [record(8, 15), record(60, 75), record(91, 99)],
    }  # fmt: skip
    return Timeline(spans, 100)


def record(issue: int, done: int) -> IssueRecord:
    return IssueRecord(issue, issue, issue, issue, done, done)


def test_an_instruction_is_in_the_phase_in_which_it_ends() -> None:
    found = phases(3, times(), LOADS, [0, 1, 3], BEFORE)
    assert [run.number for run in found] == [3, 3, 3]
    assert [run.cycles for run in found] == [20, 50, 30]
    assert [run.ends[Unit.LOAD] - 5 for run in found] == [1, 3, 4]
    assert [run.ends[Unit.ARRAY] - 5 for run in found] == [0, 1, 2]
    assert [run.ends[Unit.VECTOR] - 5 for run in found] == [1, 1, 3]
    assert [list(run.done[Unit.VECTOR]) for run in found] == [[15], [], [5, 29]]
    assert [list(run.done[Unit.LOAD]) for run in found] == [[10], [10, 40], [10]]


def test_one_phase_is_the_whole_segment() -> None:
    (run,) = phases(0, times(), LOADS, [0], BEFORE)
    assert run.cycles == 100
    assert {unit: end - 5 for unit, end in run.ends.items()} == {
        Unit.LOAD: 4, Unit.ARRAY: 2, Unit.DEPTHWISE: 0, Unit.VECTOR: 3,
    }  # fmt: skip
    assert list(run.done[Unit.ARRAY]) == [69, 90]


def test_the_last_instruction_waits_where_it_issues() -> None:
    """Not where it ends: what ends behind it may need it."""
    found = phases(0, times(), LOADS, [0, 1, 3], BEFORE)
    last = last_issued(found, times(), LOADS, UNITS)
    assert Unit.DEPTHWISE not in last
    assert [(found.index(last[unit][0]), last[unit][1]) for unit in (Unit.LOAD, Unit.ARRAY, Unit.VECTOR)] == [
        (2, 0), (2, 0), (2, 21),
    ]  # fmt: skip
    times_ = times()
    times_.spans[Unit.ARRAY] = times_.spans[Unit.ARRAY][:1]
    run, issue = last_issued(found, times_, LOADS, UNITS)[Unit.ARRAY]
    assert (found.index(run), issue) == (0, 5)
    assert np.cumsum([run.cycles for run in found])[-1] == times_.cycles
