"""A factor and a term per channel where no integer constants give the float results of all inputs."""

from typing import Any

import numpy as np
import pytest

from onnxhw.convert.blockers import UnsupportedNodesError
from onnxhw.partition import read


def normalization(model: Any, scale: float) -> Any:
    x = model.requantize(model.node("MaxPool", model.input([1, 2, 32, 8], 1.0, 4), kernel_shape=[1, 1]), 1.0, 4)
    factors = model.const(np.float32([1.0365882, 1.3749897]) * np.float32(scale))
    terms = model.const(np.float32([-1.097441, -3.2490724]))
    mean, variance = model.const(np.zeros(2, np.float32)), model.const(np.ones(2, np.float32))
    y = model.node("BatchNormalization", x, factors, terms, mean, variance, epsilon=0.0)
    return model.output(model.requantize(y, 1.0, 6))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ways to have equal results only the first, a line for each channel."""
    monkeypatch.setattr("onnxhw.convert.operators.chain.Stairs.single", lambda _: None)
    monkeypatch.setattr("onnxhw.convert.operators.chain.Stairs.several", lambda _: None)


def test_steps_that_add_up_are_equal(model: Any) -> None:
    made = normalization(model, 1)
    assert "W3601" not in {found.code for found in read(made.bytes()).diagnostics}
    made.check()


@pytest.mark.usefixtures("alone")
def test_else_the_nearest_line_is_taken_and_the_note_says_how_near(model: Any) -> None:
    made = normalization(model, 1)
    (note,) = [found for found in read(made.bytes()).diagnostics if found.code == "W3601"]
    assert "by 0.0037 steps of the result at most" in note.what
    feeds = {"x": np.random.default_rng(1).permuted(np.arange(512) % 256 - 132).reshape(1, 2, 32, 8).astype(np.float32)}
    (mine,), (wanted,) = made.golden(feeds).values(), made.onnxruntime(feeds).values()
    assert 0 < np.abs(mine - wanted).sum() < 512 / 16
    assert np.abs(mine - wanted).max() == 1


@pytest.mark.usefixtures("alone")
def test_a_line_that_is_too_far_away_is_none(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxhw.convert.operators.perchannel.MOST_AWAY", 0.003)
    with pytest.raises(UnsupportedNodesError, match="no integer constants"):
        normalization(model, 1).load()
