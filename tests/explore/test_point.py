"""Points: what does not fit is not scheduled, and records are read back."""

import dataclasses

import pytest

from onnxhw.board import find
from onnxhw.devices import family_of
from onnxhw.explore import point as module
from onnxhw.explore.point import OBJECTIVES, DesignPoint, Judge, evaluate
from onnxhw.explore.sizing import fitted
from onnxhw.explore.workload import LEAST, Workload
from onnxhw.presets import PRESETS


def test_a_point_fits_and_has_the_cycles_of_its_own_configuration(task):
    found = evaluate(task.workload, task.space.config(task.space.values(PRESETS["mini"])), task.judge)
    assert not found.refused
    assert found.ebr < evaluate(task.workload, PRESETS["mini"], task.judge, fit=False).ebr
    assert found.cycles == evaluate(task.workload, found.config, task.judge, fit=False).cycles
    assert found.latency_us == pytest.approx(found.cycles[0] / found.mhz)


def test_what_cannot_fit_is_refused_without_a_schedule(task, monkeypatch):
    monkeypatch.delattr(module, "measured")
    found = evaluate(task.workload, PRESETS["ulx3s-85f"], task.judge, fit=False)
    assert "too many multipliers" in found.refused
    assert found.excess > 1
    assert found.cycles == ()


def test_what_has_no_schedule_is_refused_with_its_code(task):
    small = dataclasses.replace(PRESETS["mini"], act_depth=16)
    found = evaluate(task.workload, small, task.judge)
    assert found.refused.startswith("E5101")
    assert found.excess == 1


def test_what_has_too_many_weights_for_the_board_is_not_scheduled(task, monkeypatch):
    config = task.space.config(task.space.values(PRESETS["mini"]))
    board = task.judge.board
    least = dataclasses.replace(LEAST, weight_depth=384, param_depth=512)
    monkeypatch.setattr(Workload, "least", lambda workload, config: least)
    estimate = family_of(board).estimate
    without = estimate(fitted(config, least, estimate)).ebr
    small = Judge(dataclasses.replace(board, resources=dataclasses.replace(board.resources, ebr=without)))
    monkeypatch.delattr("onnxhw.sched.scheduler.first")
    refused = evaluate(task.workload, config, small)
    assert refused.refused.startswith("E5102 needs ")
    assert 0 < refused.excess < 1


def test_memories_are_cut_only_if_nothing_is_in_segments(task):
    external = find("ulx3s-85f").external_memory()
    roomy = dataclasses.replace(PRESETS["mini"], external=external)
    judge = Judge(find("ulx3s-85f"))
    alone = evaluate(task.workload, roomy, judge, exact=False)
    assert alone.config.weight_depth < roomy.weight_depth
    assert (alone.moved, alone.forecast) == ((0,), False)
    tight = dataclasses.replace(roomy, weight_depth=64)
    found = evaluate(task.workload, tight, judge, exact=False)
    assert (found.config, found.forecast, found.refused) == (tight, True, "")
    assert OBJECTIVES["moved"](found) == found.moved[0] > 0
    assert DesignPoint.from_record(found.record()) == found


def test_a_record_is_read_back(task):
    found = evaluate(task.workload, PRESETS["mini"], task.judge)
    assert DesignPoint.from_record(found.record()) == found


def test_several_models_count_by_their_geometric_mean():
    found = DesignPoint(PRESETS["mini"], cycles=(100, 400), mhz=100.0)
    assert found.latency_us == pytest.approx(2.0)
    assert OBJECTIVES["clock"](found) == -100
    in_segments = dataclasses.replace(found, traffic=(0, 0), moved=(3, 4))
    assert (OBJECTIVES["traffic"](in_segments), OBJECTIVES["moved"](in_segments)) == (0, 7)
