"""``(x * scale - mean) / std`` on the right axis, and what does not fit."""

import numpy as np
import pytest

from onnxhw.errors import UsageError
from onnxhw.preprocess import Input, Preprocess

MEAN, STD = (1.0, 2.0, 3.0), (0.5, 4.0, 8.0)


@pytest.mark.parametrize(("layout", "shape", "axis"), [("nchw", (1, 3, 4, 5), 1), ("nhwc", (1, 4, 5, 3), 3)])
def test_channels_lie_on_the_axis_of_the_layout(layout, shape, axis):
    x = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    found = Preprocess(0.25, MEAN, STD, layout).apply(x, Input("x", shape))
    assert found.dtype == np.float32
    for channel in range(3):
        wanted = (x.take(channel, axis).astype(np.float32) * np.float32(0.25) - MEAN[channel]) / STD[channel]
        assert np.array_equal(found.take(channel, axis), wanted)


def test_one_number_is_for_all_channels():
    x = np.arange(12, dtype=np.float32).reshape(1, 12)
    assert np.array_equal(Preprocess(1.0, (3.0,), (2.0,)).apply(x, Input("x", (1, 12))), (x - 3) / 2)


def test_without_constants_integers_stay_integers():
    x = np.arange(12, dtype=np.uint8).reshape(1, 12)
    assert Preprocess().apply(x, Input("x", (1, 12), "uint8")).dtype == np.uint8
    assert Preprocess().apply(x, Input("x", (1, 12))).dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((1.0, MEAN, (1.0,)), Input("x", (1, 4, 2, 2))),
        ((1.0, (1.0,), (1.0,)), Input("x", (1, 4), "uint8")),
    ],
)
def test_constants_that_do_not_fit_the_input(arguments, wanted):
    with pytest.raises(UsageError) as caught:
        Preprocess(*arguments).apply(np.zeros(wanted.shape, wanted.dtype), wanted)
    assert caught.value.code == "E2608"


@pytest.mark.parametrize(
    "arguments", [(np.nan,), (1.0, (np.inf,)), (1.0, (), (0.0,)), (1.0, (), (-1.0,)), (1.0, (), (), "chw")]
)
def test_constants_that_make_no_sense(arguments):
    with pytest.raises(UsageError) as caught:
        Preprocess(*arguments)
    assert caught.value.code == "E2608"
