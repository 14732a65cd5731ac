"""BuildPlan: which points of a front are built, what a study keeps of them, and what tools make of one."""

import pytest

from onnxhw.board import find
from onnxhw.cluster import SerialPool
from onnxhw.errors import DoesNotFitError, ToolError
from onnxhw.explore import campaign as module
from onnxhw.explore import stages as stages_module
from onnxhw.explore.campaign import BuildPlan, Campaign, Progress
from onnxhw.explore.point import DesignPoint
from onnxhw.explore.stages import BuildState, best_seed, routed, spread, synthesized
from onnxhw.explore.study import StudyFile
from onnxhw.presets import PRESETS


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(0, []), (1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (10, list(range(10))), (99, list(range(10)))],
)
def test_points_are_spread_over_the_front(count, wanted):
    assert spread(list(range(10)), count) == wanted


def test_of_several_seeds_the_fastest_counts():
    found = best_seed(
        [{"mhz": 90.0, "seed": 1, "lut": 5}, {"mhz": 99.5, "seed": 2, "lut": 6}, {"mhz": 99.5, "seed": 3}]
    )
    assert (found["seed"], found["lut"]) == (2, 6)
    assert found["mhz_by_seed"] == {"1": 90.0, "2": 99.5, "3": 99.5}


def test_a_seed_that_failed_does_not_count_unless_all_have():
    failed = {"failed": "E7102", "seed": 1}
    found = best_seed([failed, {"mhz": 90.0, "seed": 2}])
    assert (found["seed"], found["mhz_by_seed"]) == (2, {"1": None, "2": 90.0})
    assert best_seed([failed, {"failed": "E7102", "seed": 2}]) == failed


def test_time_left_is_that_of_the_stages_by_their_own_averages():
    state = BuildState({"routed": 4, "synthesized": 6})
    assert state.seconds_left(2) == 0
    for key, seconds in (("a", 100.0), ("b", 200.0), ("b", 200.0)):
        state.add("routed", key, seconds)
    assert (state.done("routed"), state.done("synthesized")) == (2, 0)
    assert state.seconds_left(2) == 150.0
    state.add("synthesized", "c", 10.0)
    assert state.seconds_left(2) == 150.0 + 25.0


@pytest.mark.parametrize("error", [ToolError("E7102", "no place"), DoesNotFitError("E5201", "too large")])
def test_a_design_of_which_a_tool_makes_nothing_is_told(monkeypatch, error):
    """It says nothing of the other points of a front, which may take hours."""

    def failing(*arguments, **keywords):
        raise error

    monkeypatch.setattr(stages_module.flow, "build", failing)
    monkeypatch.setattr(stages_module.flow, "synthesized", failing)
    config = PRESETS["mini"]
    found = routed(design, find("ulx3s-25f"), config, 7)
    assert (found["failed"], found["seed"], "mhz" in found) == (error.text(), 7, False)
    assert synthesized(design, find("ulx3s-25f"), config)["failed"] == error.text()


def test_a_tool_that_is_not_there_ends_the_command(monkeypatch):
    def failing(*arguments, **keywords):
        raise ToolError("E7101", "not installed")

    monkeypatch.setattr(stages_module.flow, "build", failing)
    with pytest.raises(ToolError, match="E7101"):
        routed(design, find("ulx3s-25f"), PRESETS["mini"], 1)


def design(board, config, clock_hz):
    return config


def test_what_is_built_is_kept(task, tmp_path, monkeypatch):
    ran = []

    def build(stage):
        def run(design, board, config, seed=0):
            ran.append((stage, config.name, seed))
            return {"mhz": 100.0 + seed, "seed": seed, "lut": config.rows, "seconds": 1.0}

        return run

    monkeypatch.setattr(module, "routed", build("routed"))
    monkeypatch.setattr(module, "synthesized", build("synthesized"))
    points = [DesignPoint(PRESETS[name], (1,)) for name in ("mini", "ulx3s-25f", "ulx3s-85f")]
    campaign, stages = Campaign(task, ("lut",)), BuildPlan(design, synthesize=3, route=2, seeds=2)
    for _ in range(2):
        study = StudyFile(tmp_path / "study.jsonl", {"models": ["net"]})
        made = campaign.build(SerialPool(), study, points, stages, Progress())
        study.close()
        assert made[PRESETS["mini"].fingerprint]["routed"]["mhz"] == 102.0
        assert set(made[PRESETS["ulx3s-25f"].fingerprint]) == {"synthesized"}
    assert sorted(ran) == sorted([
        *(("routed", name, seed) for name in ("mini", "ulx3s-85f") for seed in (1, 2)),
        *(("synthesized", name, 0) for name in ("mini", "ulx3s-25f", "ulx3s-85f")),
    ])  # fmt: skip


def test_what_failed_is_tried_again_and_progress_is_told(task, tmp_path, monkeypatch):
    asked, told = [], []

    def run(design, board, config, seed=0):
        asked.append((config.name, seed))
        failing = config.name == "mini" and seed and len(asked) < 4
        return {"failed": "E7102 no place", "seconds": 2.0} if failing else {"mhz": 90.0, "seed": seed, "seconds": 4.0}

    class Told(Progress):
        def built(self, state):
            told.append((state.done("routed"), state.done("synthesized"), state.seconds_left(1)))

    monkeypatch.setattr(module, "routed", run)
    monkeypatch.setattr(module, "synthesized", run)
    points = [DesignPoint(PRESETS[name], (1,)) for name in ("mini", "ulx3s-25f")]
    for wanted in ("E7102 no place", None):
        study = StudyFile(tmp_path / "study.jsonl", {"models": ["net"]})
        made = Campaign(task, ("lut",)).build(SerialPool(), study, points, BuildPlan(design, route=2), Told())
        study.close()
        assert made[PRESETS["mini"].fingerprint]["routed"].get("failed") == wanted
    first, again = told[:5], told[5:]
    assert first == [(0, 0, 0.0), (1, 0, 2.0), (2, 0, 0.0), (2, 1, 4.0), (2, 2, 0.0)]
    assert again == [(1, 2, 4.0), (2, 2, 0.0)]
    assert asked == [("mini", 1), ("ulx3s-25f", 1), ("mini", 0), ("ulx3s-25f", 0), ("mini", 1)]


@pytest.mark.synth
@pytest.mark.slow
def test_synthesis_takes_the_exact_multipliers_and_block_rams(task):
    from onnxhw.cli.common.exploration import design as top

    config = PRESETS["mini"]
    found = synthesized(top, find("ulx3s-25f"), config)
    guess = task.judge.resources(DesignPoint(config))
    assert (found["dsp"], found["ebr"]) == (guess.dsp, guess.ebr)
