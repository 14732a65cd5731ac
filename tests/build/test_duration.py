"""How long place and route takes: earlier runs first, else those of bench/routed."""

import json
from pathlib import Path

import pytest

from onnxhw.board import find
from onnxhw.build import duration
from onnxhw.build.cache import Cache
from onnxhw.build.stage import FlowEvent
from onnxhw.cli.common.output import Output
from onnxhw.cli.common.progress import FlowProgress
from onnxhw.presets import PRESETS

ROUTED = Path(__file__).parents[2] / "bench" / "routed"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path))


def test_the_reference_is_what_was_measured_or_less_where_other_work_ran_too():
    measured = {}
    for path in ROUTED.glob("*.json"):
        result = json.loads(path.read_text())["result"]
        measured[result["preset"], result["board"]] = result["seconds"]
    assert all(seconds <= measured[key] for key, seconds in duration.REFERENCE.items())


def test_without_earlier_runs_the_reference_counts():
    for (preset, board), seconds in duration.REFERENCE.items():
        found = duration.expected(PRESETS[preset], find(board))
        assert found.seconds == pytest.approx(seconds)
        assert found.source == "as on another machine"
    tang = json.loads((ROUTED / "tang-20k-on-tang-nano-20k.json").read_text())["result"]["seconds"]
    assert duration.expected(PRESETS["tang-20k"], find("tang-nano-20k")).seconds == pytest.approx(tang, rel=0.02)
    board = find("ulx3s-85f")
    by_size = [duration.expected(PRESETS[name], board).seconds for name in ("mini", "ulx3s-25f", "ulx3s-85f")]
    assert by_size == sorted(by_size)
    assert by_size[0] > 60


def test_an_earlier_run_of_the_same_counts_and_those_of_others_tell_the_machine():
    before = duration.expected(PRESETS["ulx3s-85f"], find("ulx3s-85f")).seconds
    mini = duration.expected(PRESETS["mini"], find("ulx3s-25f")).seconds
    duration.store("mini", "ulx3s-25f", {"yosys": mini, "nextpnr": 2 * mini})
    same = duration.expected(PRESETS["mini"], find("ulx3s-25f"))
    assert (same.seconds, same.stages["yosys"]) == (pytest.approx(3 * mini), pytest.approx(mini))
    assert duration.expected(PRESETS["ulx3s-85f"], find("ulx3s-85f")).seconds == pytest.approx(3 * before)
    # The other family's designs take longer, by the same share of what is expected there.
    tang = duration.expected(PRESETS["tang-20k"], find("tang-nano-20k"))
    assert tang.seconds == pytest.approx(3 * 2274, rel=0.02)
    # A note of a board that is not known any more is none.
    duration.store("mini", "gone", {"yosys": 1.0})
    assert duration.expected(PRESETS["ulx3s-85f"], find("ulx3s-85f")).seconds == pytest.approx(3 * before)
    # A note that is damaged is none.
    damaged = {"seconds.json": b'{"stages": 3}'}
    Cache(duration.KIND).store(duration._key("mini", "ulx3s-25f"), damaged, label="mini on ulx3s-25f")
    assert duration.expected(PRESETS["ulx3s-85f"], find("ulx3s-85f")).seconds == pytest.approx(before)


@pytest.mark.parametrize(("seconds", "text"), [(42, "42 seconds"), (492, "8 minutes"), (9000, "2.5 hours")])
def test_durations_are_spoken(seconds, text):
    assert duration.duration_text(seconds) == text


def test_each_phase_is_told_once_where_there_is_no_terminal(capsys):
    stages = FlowProgress(Output(), PRESETS["ulx3s-25f"], find("ulx3s-25f"))
    with stages:
        stages(FlowEvent("elaborate", 0.0, False))
        stages(FlowEvent("elaborate", 3.0, True))
        stages(FlowEvent("nextpnr", 0.0, False, "seed 1"))
        for second in range(1, 100):
            phase = "place: iteration 3" if second < 20 else f"route: iteration {second}, 7 wires used twice"
            stages(FlowEvent("nextpnr", float(second), False, "seed 1", phase))
        stages(FlowEvent("nextpnr", 100.0, True, "seed 1: 101.2 MHz"))
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("a bitstream of ulx3s-25f for ulx3s-25f takes about 8 minutes (as on another machine)")
    assert "of --preset mini about" in first
    told = [line for line in lines if "so far" in line and ":" in line]
    assert told == [
        "nextpnr seed 1, place: iteration 3 ... 1 s so far",
        "nextpnr seed 1, route: iteration 20, 7 wires used twice ... 20 s so far",
        "nextpnr seed 1, route: iteration 50, 7 wires used twice ... 50 s so far",
        "nextpnr seed 1, route: iteration 80, 7 wires used twice ... 80 s so far",
    ]
    assert stages.seconds == {"elaborate": 3.0, "nextpnr": 100.0}
