"""BuildPlan: which points of a front are built, what a study keeps of them, and what tools make of one."""

import pytest

from onnxhw.board import find
from onnxhw.cluster import SerialPool
from onnxhw.explore import campaign as module
from onnxhw.explore.campaign import BuildPlan, Campaign
from onnxhw.explore.point import DesignPoint
from onnxhw.explore.stages import best_seed, spread, synthesized
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


def design(board, config, clock_hz):
    return config


def test_what_is_built_is_kept(task, tmp_path, monkeypatch):
    ran = []

    def build(stage):
        def run(design, board, config, seed=0):
            ran.append((stage, config.name, seed))
            return {"mhz": 100.0 + seed, "seed": seed, "lut": config.rows}

        return run

    monkeypatch.setattr(module, "routed", build("routed"))
    monkeypatch.setattr(module, "synthesized", build("synthesized"))
    points = [DesignPoint(PRESETS[name], (1,)) for name in ("mini", "ulx3s-25f", "ulx3s-85f")]
    campaign, stages = Campaign(task, ("lut",)), BuildPlan(design, synthesize=3, route=2, seeds=2)
    for _ in range(2):
        study = StudyFile(tmp_path / "study.jsonl", {})
        made = campaign.build(SerialPool(), study, points, stages)
        study.close()
        assert made[PRESETS["mini"].fingerprint]["routed"]["mhz"] == 102.0
        assert set(made[PRESETS["ulx3s-25f"].fingerprint]) == {"synthesized"}
    assert sorted(ran) == sorted([
        *(("routed", name, seed) for name in ("mini", "ulx3s-85f") for seed in (1, 2)),
        *(("synthesized", name, 0) for name in ("mini", "ulx3s-25f", "ulx3s-85f")),
    ])  # fmt: skip


@pytest.mark.synth
@pytest.mark.slow
def test_synthesis_takes_the_exact_multipliers_and_block_rams(task):
    from onnxhw.cli.common.exploration import design as top

    config = PRESETS["mini"]
    found = synthesized(top, find("ulx3s-25f"), config)
    guess = task.judge.resources(DesignPoint(config))
    assert (found["dsp"], found["ebr"]) == (guess.dsp, guess.ebr)
