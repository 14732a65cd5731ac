"""The search: the same whatever is known already, with what is asked first, and as many points as wanted."""

import json
import sys

import pytest

from onnxhw.errors import UsageError
from onnxhw.explore import search as module
from onnxhw.explore.point import DesignPoint
from onnxhw.explore.search import Search, best, text_of
from onnxhw.explore.space import PARAMETERS
from onnxhw.presets import PRESETS

pytest.importorskip("optuna")
OBJECTIVES = "cycles", "lut"


def made(values):
    """A point of a formula, the half of them refused."""
    size = values["word"] * values["cols"]
    refused = "" if size < 200 else "too large"
    cycles = () if refused else (100_000 // size + values["act_banks"],)
    return DesignPoint(
        PRESETS["mini"], cycles, cycles, lut=size * values["lanes"], refused=refused, excess=size / 200 - 1
    )


class Asked:
    """Computes points when they are waited for, and notes them."""

    def __init__(self):
        self.texts = []

    def submit(self, values):
        self.texts.append(text_of(values))
        return lambda: made(values)


def test_a_search_is_the_same_with_half_of_it_known():
    first, second = Asked(), Asked()
    search = Search(first.submit, OBJECTIVES, seed=3)
    points = search.run(200)
    half = dict(list(search.known.items())[:150])
    again = Search(second.submit, OBJECTIVES, seed=3, known=dict(half))
    assert again.run(200) == points
    assert not set(second.texts) & set(half)
    assert sum(bool(point.cycles) for point in points) == 200
    assert len(first.texts) == len(set(first.texts))


@pytest.mark.parametrize("fitting", [True, False])
def test_variations_are_asked_until_enough_of_them_fit(fitting):
    """Batches that are under way are asked nevertheless; those that do not fit are asked all."""
    search = Search(Asked().submit, OBJECTIVES, seed=1)
    wide = [each for each in PARAMETERS["cols"] if (each * 32 >= 200) != fitting]
    others = {name: choices[0] for name, choices in PARAMETERS.items()}
    first = [{**others, "word": 4, "cols": 2}]
    variations = [{**others, "word": 32, "cols": cols, "act_depth": depth, "acc_depth": acc, "load_rows": rows}
                  for cols in wide for depth in PARAMETERS["act_depth"] for acc in PARAMETERS["acc_depth"]
                  for rows in PARAMETERS["load_rows"]]  # fmt: skip
    assert len(variations) > 400
    points = search.run(300, first, variations)
    assert points[0] == made(first[0])
    asked = sum(text_of(each) in search.known for each in variations)
    assert (module.ENOUGH <= asked < 3 * module.BATCH + module.AHEAD * module.BATCH) if fitting else (
        asked == len(variations)
    )


def test_another_seed_is_another_search():
    assert Search(Asked().submit, OBJECTIVES, seed=1).run(40) != Search(Asked().submit, OBJECTIVES, seed=2).run(40)


def test_a_search_finds_better_points_than_its_first():
    points = Search(Asked().submit, OBJECTIVES, seed=0).run(600)
    early, late = (min(p.cycles[0] * p.lut for p in best(part, OBJECTIVES)) for part in (points[:60], points))
    assert late < early


def test_what_shall_be_asked_first_is():
    asked = Asked()
    Search(asked.submit, OBJECTIVES).run(5)
    values = json.loads(asked.texts[3])
    again = Asked()
    Search(again.submit, OBJECTIVES, seed=9).run(5, [values])
    assert again.texts[0] == text_of(values)


def test_progress_counts_what_has_cycles():
    seen = []
    search = Search(Asked().submit, OBJECTIVES)
    search.progress = lambda state: seen.append((state.asked, state.scheduled, state.wanted))
    search.run(50)
    assert seen[-1][1:] == (50, 50)
    assert [asked for asked, _, _ in seen] == list(range(1, len(seen) + 1))


def test_a_search_without_a_solution_ends():
    refused = DesignPoint(PRESETS["mini"], refused="never", excess=1.0)
    points = Search(lambda values: lambda: refused, OBJECTIVES).run(2)
    assert not best(points, OBJECTIVES)


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError) as caught:
        module.require_optuna()
    assert (caught.value.code, "onnxhw[explore]" in caught.value.hint) == ("E2801", True)
