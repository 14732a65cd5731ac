"""The terms in the source are those of the fit, and the fit finds what it is shown."""

import cost_model
import numpy as np
import pytest

from onnxhw.board import find
from onnxhw.devices.ecp5 import estimate
from onnxhw.explore.clock import CLOCK
from onnxhw.presets import PRESETS


@pytest.mark.parametrize(("kind", "terms"), [("lut", estimate.LUT_TERMS), ("ff", estimate.FF_TERMS)])
def test_terms_are_those_of_the_fit(kind, terms):
    assert cost_model.logic(kind).terms == pytest.approx(terms, abs=0.006)


def test_the_clock_is_that_of_the_fit():
    assert cost_model.clock().terms == pytest.approx(CLOCK["ecp5"], abs=0.06)


def test_block_rams_and_multipliers_of_every_synthesized_configuration_are_exact():
    found = cost_model.rows()
    assert len(found) >= 10
    for row, config in zip(found, cost_model.configs(found), strict=True):
        guess = estimate.estimate(config)
        assert (guess.dsp, guess.ebr) == (row["dsp"], row["ebr"]), row["name"]


def test_a_fit_finds_the_terms_that_made_its_rows():
    features = np.array([[1.0, n, n * n % 7] for n in range(1, 9)])
    fit = cost_model.fitted(features, np.ones(8), 1 + features @ np.array([50.0, 3.0, 2.0]))
    assert fit.terms == pytest.approx((50, 3, 2))
    assert np.abs(fit.errors).max() < 1e-9


def test_an_error_is_of_a_fit_without_the_row():
    """One row that no line through the others meets: by a fit to all of them its error would be half as large."""
    fit = cost_model.fitted(np.ones((3, 1)), np.zeros(3), np.array([100.0, 100.0, 200.0]))
    assert fit.errors[2] == pytest.approx(-0.5)


def test_the_document_is_read_back(tmp_path, monkeypatch):
    found = cost_model.rows()
    monkeypatch.setattr(cost_model, "SYNTHESIZED", tmp_path / "points.json")
    cost_model.SYNTHESIZED.write_text(cost_model.document(found))
    assert cost_model.rows() == found


def test_points_of_a_front_are_added_once(tmp_path, monkeypatch):
    path = tmp_path / "points.json"
    path.write_text(cost_model.document(cost_model.rows()[:2]))
    monkeypatch.setattr(cost_model, "SYNTHESIZED", path)
    (known,) = (row for row in cost_model.rows() if row["name"] == "mini")
    configs = [{**known["config"], "name": f"front-{number}", "act_depth": 64 << number} for number in (1, 2, 3, 4)]
    made = {"lut": 900, "ff": 800, "dsp": 7, "ebr": 6}
    routed = {"lut": 950, "mhz": 98.5, "seed": 2, "ff": 800}
    found = [{"config": config, "synthesized": made} for config in configs]
    found[0]["routed"] = routed
    found[1]["routed"] = {"failed": "E5201", "seed": 1}
    found[2]["synthesized"] = {"failed": "E7102"}
    del found[3]["synthesized"]
    front = {"front": [*found, {"config": known["config"], "synthesized": made}], "models": ["kws", "ad"]}
    before = len(cost_model.clock().errors)
    for _ in range(2):
        cost_model.add({**front, "board": "ulx3s-25f"})
    new = cost_model.rows()[2:]
    assert [row["name"] for row in new] == ["kws+ad/front-1", "kws+ad/front-2"]
    assert [row.get("routed") for row in new] == [{"lut": 950, "fmax_mhz": 98.5, "seed": 2}, None]
    assert all(row.items() >= made.items() for row in new)
    assert len(cost_model.clock().errors) == before + 1


def test_configurations_are_of_boards_and_presets_are_among_them():
    found = cost_model.rows()
    assert {find(row["board"]).family for row in found} == {"ecp5"}
    fingerprints = {config.fingerprint for config in cost_model.configs(found)}
    assert {PRESETS[name].fingerprint for name in ("mini", "ulx3s-25f")} <= fingerprints
