"""Phases of a segment's run: every instruction in one, in order, in the times of the segment."""

from onnxhw.isa.instructions import UNITS, Array, Load, Vector
from onnxhw.isa.timeline import IssueRecord, Timeline
from onnxhw.isa.units import Unit
from onnxhw.segments.phases import LastIssue, phases, spans_of

BEFORE = {unit: 5 for unit in UNITS}
CODE = {
    Unit.LOAD: [Load(tiles=2), Load(tiles=1), Load(tiles=1), Load(tiles=1)],
    Unit.ARRAY: [Array(kt_n=4), Array()],
    Unit.DEPTHWISE: [],
    Unit.VECTOR: [Vector(), Vector(after_array=1), Vector(after_array=2)],
}
"""The first array instruction takes the tiles of three loads."""
LOADS = [(0, 10), (20, 30), (40, 60), (70, 80)]
SPANS = {
    Unit.LOAD: LOADS, Unit.ARRAY: [(5, 75), (76, 90)], Unit.DEPTHWISE: [], Unit.VECTOR: [(8, 45), (80, 95), (91, 99)],
}  # fmt: skip


def test_an_instruction_is_in_the_phase_that_has_its_last_tile_or_what_it_waits_for() -> None:
    """Not in that of the time in which it ends: the first vector instruction needs no load, the array's first one not
    the last load, though they end later than those begin."""
    found, _ = phases(3, CODE, SPANS, 100, [0, 1, 3], BEFORE)
    assert [run.number for run in found] == [3, 3, 3]
    assert [run.cycles for run in found] == [20, 50, 30]
    ends = {unit: [run.ends[unit] - 5 for run in found] for unit in UNITS}
    assert ends == {Unit.LOAD: [1, 3, 4], Unit.ARRAY: [0, 1, 2], Unit.DEPTHWISE: [0, 0, 0], Unit.VECTOR: [1, 2, 3]}
    assert [list(run.done[Unit.VECTOR]) for run in found] == [[45], [75], [29]]
    assert [list(run.done[Unit.LOAD]) for run in found] == [[10], [10, 40], [10]]


def test_an_instruction_is_in_no_phase_before_what_its_operands_are_read_by() -> None:
    """The second array instruction waits until the third vector instruction has read."""
    code = CODE | {
        Unit.LOAD: [Load(tiles=1) for _ in range(4)],
        Unit.ARRAY: [Array(), Array(more_reads=3)], Unit.VECTOR: [Vector(), Vector(), Vector(after_load=3)],
    }  # fmt: skip
    spans = SPANS | {Unit.ARRAY: [(5, 15), (85, 90)], Unit.VECTOR: [(8, 45), (50, 55), (62, 82)]}
    found, _ = phases(0, code, spans, 100, [0, 1, 2, 3], BEFORE)
    assert [run.ends[Unit.ARRAY] - 5 for run in found] == [1, 1, 2, 2]


def test_one_phase_is_the_whole_segment() -> None:
    (run,), last = phases(0, CODE, SPANS, 100, [0], BEFORE)
    assert run.cycles == 100
    assert {unit: end - 5 for unit, end in run.ends.items()} == {
        Unit.LOAD: 4, Unit.ARRAY: 2, Unit.DEPTHWISE: 0, Unit.VECTOR: 3,
    }  # fmt: skip
    assert list(run.done[Unit.ARRAY]) == [75, 90]
    assert last == {
        Unit.LOAD: LastIssue(run, 70), Unit.ARRAY: LastIssue(run, 76), Unit.VECTOR: LastIssue(run, 91),
    }  # fmt: skip


def test_the_last_instruction_waits_where_it_issues() -> None:
    """Not where it ends: what ends behind it may need it."""
    found, last = phases(0, CODE, SPANS, 100, [0, 1, 3], BEFORE)
    assert last == {
        Unit.LOAD: LastIssue(found[2], 0), Unit.ARRAY: LastIssue(found[1], 49), Unit.VECTOR: LastIssue(found[2], 21),
    }  # fmt: skip


def test_spans_have_the_loads_that_were_cut() -> None:
    times = Timeline({Unit.LOAD: [IssueRecord(0, 0, 0, 0, 80, 80)], Unit.VECTOR: [IssueRecord(1, 2, 3, 4, 5, 6)]}, 100)
    assert spans_of(times, LOADS) == {Unit.LOAD: LOADS, Unit.VECTOR: [(4, 6)]}
