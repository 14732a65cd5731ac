"""Points: what does not fit is not scheduled, and records are read back."""

import dataclasses

import pytest

from onnxhw.board import find
from onnxhw.devices import family_of
from onnxhw.errors import DoesNotFitError, InternalError
from onnxhw.explore import point as module
from onnxhw.explore.point import OBJECTIVES, DesignPoint, Judge, evaluate
from onnxhw.explore.sizing import fitted
from onnxhw.explore.workload import LEAST, Measured, Workload
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


def test_what_is_too_much_without_microcode_is_not_finished(task, monkeypatch):
    """Weights of a schedule are known once it is begun: they and the parameters take all block RAMs but those of the
    microcode, and one more."""
    config = task.space.config(task.space.values(PRESETS["mini"]))
    found = evaluate(task.workload, config, task.judge)
    board, estimate = task.judge.board, family_of(task.judge.board).estimate
    known = {name: getattr(found.config, name) for name in ("weight_depth", "param_depth", "tables")}
    least = estimate(fitted(config, dataclasses.replace(LEAST, **known), estimate)).ebr
    small = Judge(dataclasses.replace(board, resources=dataclasses.replace(board.resources, ebr=least - 1)))
    monkeypatch.setattr(module, "limited", lambda config, *_: config)
    monkeypatch.setattr(Workload, "least", lambda workload, config: LEAST)
    monkeypatch.setattr("onnxhw.sched.scheduler.finish", lambda *_: pytest.fail("finished"))
    refused = evaluate(task.workload, config, small)
    assert "too many block RAMs" in refused.refused
    assert (refused.cycles, refused.ebr) == ((), least)
    assert 0 < refused.excess < 1


@pytest.mark.parametrize(("field", "needed", "code", "depths"), [
    ("act_depth", 192 // 4, "E5101", (16, 32)), ("vector_ucode", 131, "E5104", (32, 80, 120)),
])  # fmt: skip
def test_a_memory_is_too_small_by_the_part_that_is_missing(field, needed, code, depths, task):
    """Of the digits: 192 words of activations are live at once, in four banks, and 131 words of microcode."""
    made = task.space.config(task.space.values(PRESETS["mini"]))
    for depth in depths:
        point = evaluate(task.workload, dataclasses.replace(made, **{field: depth}), task.judge)
        assert point.refused[:5] == code
        assert point.excess == pytest.approx(min(1, needed / depth - 1))


def test_short_microcode_of_a_point_is_in_a_block_ram_that_is_left(task, monkeypatch):
    needs = dataclasses.replace(LEAST, depthwise_ucode=352)
    monkeypatch.setattr(module, "measured", lambda workload, config, exact, require: Measured((1,), (1,), needs, (0,)))
    config = task.space.config(task.space.values(PRESETS["ulx3s-25f"]))
    assert evaluate(task.workload, config, task.judge).config.depthwise_ucode == 512


@pytest.fixture
def crowded(task, monkeypatch):
    """A board with fewer block RAMs than a program of much microcode takes, which another of less does not; and the
    configurations that are scheduled. What the second schedule raises, if anything, is put into `raises`."""
    config = task.space.config(task.space.values(PRESETS["mini"]))
    needs, scheduled, raises = dataclasses.replace(LEAST, load_ucode=1400, vector_ucode=1500), [], []

    def measured(workload, config, exact, require):
        scheduled.append(config)
        if len(scheduled) > 1 and raises:
            raise raises[0]
        words = min(needs.vector_ucode, config.vector_ucode)
        assert config.load_ucode >= needs.load_ucode
        return Measured((4000 - words,), (1,), dataclasses.replace(needs, vector_ucode=words), (0,))

    monkeypatch.setattr(module, "measured", measured)
    monkeypatch.setattr(Workload, "least", lambda workload, config: LEAST)
    board = task.judge.board
    estimate = family_of(board).estimate
    have = estimate(fitted(config, needs, estimate)).ebr - 1
    judge = Judge(dataclasses.replace(board, resources=dataclasses.replace(board.resources, ebr=have)))
    return lambda: evaluate(task.workload, config, judge), scheduled, raises


def test_a_point_of_too_much_microcode_is_scheduled_once_more_for_less(crowded):
    found, scheduled, _ = crowded
    point = found()
    assert (point.refused, point.cycles) == ("", (4000 - 1024,))
    assert [config.vector_ucode for config in scheduled][1:] == [1024]
    # A program of less for one unit may have more for another, as far as its block RAMs go.
    assert [config.load_ucode for config in scheduled][1:] == [1536]


def test_a_second_schedule_that_does_not_fit_leaves_the_first(crowded):
    found, _, raises = crowded
    raises.append(DoesNotFitError("E5104", "microcode"))
    point = found()
    assert point.cycles == (4000 - 1500,)
    assert "block RAMs" in point.refused


def test_a_bug_of_the_compiler_in_a_second_schedule_is_told(crowded):
    found, _, raises = crowded
    raises.append(InternalError("E1206", "too soon"))
    assert found().failed


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
