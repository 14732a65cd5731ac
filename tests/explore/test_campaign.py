"""A study is the same in one process and on a cluster, and goes on after whatever ended it."""

import json
from dataclasses import replace

import pytest

from onnxhw.cluster import SerialPool, pool
from onnxhw.errors import UsageError
from onnxhw.explore.campaign import VARIATIONS, Campaign, Progress, reference
from onnxhw.explore.point import Judge
from onnxhw.explore.space import SearchSpace
from onnxhw.explore.workload import Workload
from onnxhw.presets import PRESETS

pytest.importorskip("optuna")
OBJECTIVES = "latency", "lut", "ebr"


@pytest.fixture(scope="module")
def campaign(task):
    return Campaign(task, OBJECTIVES, seed=1)


@pytest.fixture(scope="module")
def first(task):
    return [task.space.values(PRESETS["mini"])]


@pytest.fixture(scope="module")
def alone(campaign, first, tmp_path_factory):
    """A study of this process, and its file."""
    path = tmp_path_factory.mktemp("alone") / "study.jsonl"
    return campaign.run(SerialPool(), path, 5, first), path


def test_the_front_is_of_points_with_cycles_that_their_own_configurations_have(alone, campaign):
    found, _ = alone
    assert found.front
    for point in found.front:
        again, _ = campaign.task.exactly(point.config)
        assert again == point
    assert found.points[0].cycles == reference(SerialPool(), campaign.task).presets["mini"].cycles


def test_progress_is_told_of_search_and_confirmation(alone, campaign, first, tmp_path):
    told = []

    class Told(Progress):
        def searched(self, state, seconds):
            told.append(("searched", state.scheduled, state.wanted))

        def confirmed(self, done, wanted):
            told.append(("confirmed", done, wanted))

    found = campaign.run(SerialPool(), tmp_path / "study.jsonl", 5, first, progress=Told())
    assert found.front == alone[0].front
    confirmed = [each for each in told if each[0] == "confirmed"]
    assert told == [*told[: -len(confirmed)], *confirmed], "behind the search"
    assert ("searched", 5, 5) in told
    assert [done for _, done, _ in confirmed] == list(range(1, len(confirmed) + 1))
    assert len(confirmed) >= len(found.front)
    assert confirmed[-1][1] == confirmed[-1][2]


def test_a_search_begins_with_the_presets_and_the_neighbours_of_the_quickest(campaign):
    space = campaign.task.space
    found = reference(SerialPool(), campaign.task)
    quickest = min(found.presets.values(), key=lambda point: point.cycles)
    presets = [space.values(PRESETS[name]) for name in found.presets]
    assert list(found.choices) == presets + space.neighbours(space.values(PRESETS[quickest.config.name]))


def test_a_search_begins_with_variations_of_the_presets_that_do_not_fit(task):
    """Of 45 block RAMs: `ulx3s-25f` and `ulx3s-25f-dense` take more."""
    board = task.space.board
    small = replace(board, resources=replace(board.resources, ebr=45))
    space = SearchSpace(small)
    found = reference(SerialPool(), type(task)(task.workload, space, Judge(small)))
    over = [name for name, point in found.presets.items() if point.refused]
    assert over == ["ulx3s-25f", "ulx3s-25f-dense"]
    one, other = (space.variations(space.values(PRESETS[name]), VARIATIONS) for name in over)
    near = space.neighbours(space.values(PRESETS["mini"]))
    assert list(found.choices) == [space.values(PRESETS[name]) for name in found.presets] + near
    assert found.variations[:4] == (one[0], other[0], one[1], other[1]), "by turns"
    assert len(found.variations) == len(one) + len(other) > 200


def test_one_worker_and_two_find_the_same(alone, campaign, first, tmp_path):
    found, path = alone
    with pool(2) as workers:
        other = campaign.run(workers, tmp_path / "study.jsonl", 5, first)
    assert other.points == found.points
    assert other.front == found.front

    def lines(study):
        return {
            json.dumps([line["values"], line["point"]]) for line in map(json.loads, study.read_text().splitlines()[1:])
        }

    assert lines(path) <= lines(tmp_path / "study.jsonl")  # the cluster may have begun more than were told


class Refusing(SerialPool):
    """Runs so many tasks, then ends as a killed client does: with nothing but what is in the file."""

    def __init__(self, tasks):
        self.left = tasks

    def submit(self, function, *arguments, done=None):
        waiting = super().submit(function, *arguments, done=done)

        def wait():
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return waiting()

        return wait


def test_an_ended_study_goes_on_and_computes_nothing_twice(alone, campaign, first, tmp_path):
    found, path = alone
    other, tasks = tmp_path / "study.jsonl", len(path.read_text().splitlines()) - 1
    with pytest.raises(KeyboardInterrupt):
        campaign.run(Refusing(3), other, 5, first)
    assert len(other.read_text().splitlines()) == 4
    again = campaign.run(rest := Refusing(tasks - 3), other, 5, first)
    assert (again.points, again.front) == (found.points, found.front)
    assert rest.left == 0
    assert sorted(other.read_text().splitlines()[1:], key=len) != []
    finished = campaign.run(Refusing(0), other, 5, first)
    assert finished.front == found.front


def test_a_study_of_other_models_is_not_gone_on_with(alone, task):
    _, path = alone
    other = Campaign(type(task)(task.workload, type(task.space)(task.space.board, object()), task.judge), OBJECTIVES)
    with pytest.raises(UsageError, match="other external"):
        other.run(SerialPool(), path, 5)


def test_a_study_of_a_board_that_was_changed_is_not_gone_on_with(alone, task):
    """What fits, and what tools make of it, depends on all that its file says."""
    _, path = alone
    board = replace(task.space.board, resources=replace(task.space.board.resources, lut4=12_000))
    other = Campaign(type(task)(task.workload, SearchSpace(board), task.judge), OBJECTIVES)
    with pytest.raises(UsageError, match="other board file"):
        other.run(SerialPool(), path, 5)


def test_a_point_has_no_line_buffer_that_its_network_cannot_fill(task):
    """The digits' depthwise convolution reads rows of 6 columns: the shortest line buffer of the choices holds them."""
    long = {**task.space.values(PRESETS["mini"]), "depthwise": 128}
    point, _ = task.point(long)
    assert task.workload.longest_strip == 6
    assert point.config.depthwise == 16


class Large(Workload):
    """Of a tensor of 5,000 bytes."""

    activation_bytes = 5000


def test_a_point_has_room_for_the_largest_tensor(task):
    """Two banks of 1,024 words of 4 bytes are the least of the choices that hold 5,000 bytes."""
    shallow = {**task.space.values(PRESETS["mini"]), "word": 4, "act_banks": 2, "act_depth": 256}
    assert task.point(shallow)[0].config.act_depth == 256
    large = type(task)(Large(task.workload.models, task.workload.digest), task.space, task.judge)
    assert large.point(shallow)[0].config.act_depth == 1024
