"""Ranges from values: extremes, percentiles, least loss of information."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.errors import UsageError
from onnxhw.quantize import quantize
from onnxhw.quantize.ranges import BINS, Histogram, entropy, percentile


def histogram(values):
    made = Histogram(float(values.min()), float(values.max()))
    for part in np.array_split(values, 3):
        made.add(part)
    return made


def test_a_histogram_counts_every_value_once():
    values = np.random.default_rng(1).normal(size=3000).astype(np.float32)
    values[::10] = 0
    made = histogram(values)
    assert made.zeros == 300
    assert made.counts.sum() == 2700


def test_a_range_of_a_few_float32_steps():
    """Its bins are narrower than float32 tells apart."""
    values = np.nextafter(np.float32(1), np.float32(2), dtype=np.float32) - np.array([0, 2**-23], np.float32)
    made = histogram(values)
    assert made.counts[[0, -1]].tolist() == [1, 1]
    assert percentile(made, 100) == (1, 1 + 2**-23)


@given(st.integers(0, 2**32 - 1), st.floats(60, 100), st.booleans())
def test_percentiles_are_numpys_within_two_bins(seed, percent, rectified):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=5000).astype(np.float32) * np.float32(10.0 ** rng.integers(-5, 5))
    if rectified:
        values = np.maximum(values, 0)
    made = histogram(values)
    low, high = percentile(made, percent)
    step = 2 * (made.high - made.low) / BINS  # a value on the edge of a bin may count in either
    # numpy interpolates between values, the histogram within a bin: where values are rarer than bins that is wider
    ordered = np.sort(values)
    for found, share in ((low, 100 - percent), (high, percent)):
        rank = share / 100 * len(values)
        near = ordered[max(0, int(np.floor(rank)) - 2)], ordered[min(len(values) - 1, int(np.ceil(rank)) + 1)]
        assert near[0] - step <= found <= near[1] + step


def test_all_values_are_the_extremes():
    values = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    assert percentile(histogram(values), 100) == pytest.approx((values.min(), values.max()))


def test_percentile_cuts_a_lone_outlier():
    values = np.random.default_rng(3).normal(size=100_000).astype(np.float32)
    values[7] = 1000
    low, high = percentile(histogram(values), 99.9)
    assert -5 < low < -2
    assert 2 < high < 5


def test_entropy_cuts_a_lone_outlier_and_keeps_a_uniform_distribution():
    rng = np.random.default_rng(4)
    values = rng.normal(size=100_000).astype(np.float32)
    values[7] = 40
    low, high = entropy(histogram(values))
    assert high < 10
    assert low == pytest.approx(values.min())
    uniform = rng.uniform(-1, 1, 100_000).astype(np.float32)
    low, high = entropy(histogram(uniform))
    assert high - low > 1.9


def test_entropy_of_zeros_and_of_one_value():
    assert entropy(Histogram(-1.0, 2.0)) == (-1.0, 2.0)
    made = histogram(np.array([0, 3, 3, 3], np.float32))
    low, high = entropy(made)
    assert low == 0
    assert 0 < high <= 3


def test_samples_are_taken_one_at_a_time(make_net, draw):
    """Never two samples at once, whatever their number; one more pass for histograms."""
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("Relu", net.conv("x", 4, 3)))
    feeds = draw(model, 5)
    taken = []

    def samples():
        taken.append(0)
        for feed in feeds:
            taken[-1] += 1
            yield feed

    quantize(model.SerializeToString(), samples)
    passes = len(taken)
    assert set(taken) == {5}
    quantize(model.SerializeToString(), samples, method="percentile")
    assert len(taken) == 2 * passes + 1


def test_a_sample_that_is_not_finite_is_named(make_net):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.add("Relu", net.conv("x", 4, 3)))
    feed = {"x": np.full((1, 3, 8, 8), np.inf, np.float32)}
    with pytest.raises(UsageError, match="value 'x' is not finite") as caught:
        quantize(model.SerializeToString(), lambda: iter([feed]))
    assert caught.value.code == "E2604"


def test_without_samples_nothing_is_quantized(make_net):
    net = make_net([1, 3, 8, 8])
    with pytest.raises(UsageError) as caught:
        quantize(net.model(net.conv("x", 4, 3)).SerializeToString(), lambda: iter([]))
    assert caught.value.code == "E2609"


def test_constant_and_tiny_activations_have_a_grid(make_net):
    net = make_net([1, 3, 8, 8])
    model = net.model(net.conv(net.add("Relu", net.conv("x", 4, 3)), 2, 4))
    for value in (0.0, 1e-30):
        feed = {"x": np.full((1, 3, 8, 8), value, np.float32)}
        made = quantize(model.SerializeToString(), lambda feed=feed: iter([feed]))
        assert all(np.isfinite(layer.scale) and layer.scale > 1e-20 for layer in made.report.layers)
