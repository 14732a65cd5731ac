"""What ``explore`` tells while it runs, and of points that a tool makes nothing of."""

from types import SimpleNamespace

import pytest

from onnxhw.cli.common.exploration import ExploreProgress, print_front
from onnxhw.cli.common.output import Output
from onnxhw.explore.search import SearchState
from onnxhw.explore.stages import BuildState


@pytest.fixture
def progress():
    with ExploreProgress(Output(), SimpleNamespace(workers=2)) as progress:
        yield progress


def test_each_stage_says_how_far_it_is(progress, capsys):
    progress.searched(SearchState(asked=9, scheduled=5, wanted=5, reused=5), 1.0)
    state = BuildState({"routed": 3, "synthesized": 4})
    progress.built(state)
    state.add("routed", "a", 600.0)
    progress.built(state)
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "5 of 5 points with cycles (5 of earlier runs), 9 asked, 2 workers",
        "0 of 3 routed, 0 of 4 synthesized, 2 workers",
        "1 of 3 routed, 0 of 4 synthesized, 2 workers, about 10 minutes left",
    ]


def test_where_there_is_no_terminal_points_are_told_now_and_then(progress, capsys):
    for done in (1, 2, 3):
        progress.confirmed(done, 4)
    assert capsys.readouterr().err.splitlines() == ["1 of 4 points of the front confirmed"]


def test_a_point_that_could_not_be_routed_is_told(capsys):
    row = {
        "preset": "front-1.json", "cycles": 5, "latency_us": 1.0, "mhz": 100.0, "lut": 1, "ff": 1, "dsp": 1, "ebr": 1,
        "traffic": 1, "moved": 0, "forecast": False, "refused": "",
        "config": {"rows": 4, "cols": 4, "inner_product": "plain", "lanes": 2},
        "synthesized": {"lut": 2, "ff": 2, "seconds": 1.0},
        "routed": {"failed": "E7102 tool error: no place", "seed": 1, "seconds": 1.0},
    }  # fmt: skip
    print_front(Output(), {"points": 1, "board": "ulx3s", "front": [row], "presets": [], "failed": []})
    assert "front-1.json is not routed: E7102 tool error: no place" in capsys.readouterr().out
