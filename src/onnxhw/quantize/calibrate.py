"""`calibrate_grids`: the range of every activation over the calibration samples, one sample in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..qdq import Grid
from .plan import QuantizationPlan
from .ranges import Histogram, entropy, percentile
from .runner import Runner

Samples = Callable[[], Iterator[Mapping[str, npt.NDArray[Any]]]]
"""Iterates over the feeds of one inference each; called once for each pass over the data."""
METHODS = ("min-max", "percentile", "entropy")
SMALLEST_RANGE = 2.0**-60
"""A narrower range counts as zero: products of its scale would leave float32."""


def calibrate_grids(
    runner: Runner, samples: Samples, plan: QuantizationPlan, method: str, percent: float
) -> dict[str, Grid]:
    """The grid of each group of values (see `QuantizationPlan.group`).

    One pass for the extremes; percentile and entropy take a second one for histograms between them. `runner` returns
    all sources of the plan. `UsageError` E2604: an activation that is not finite; E2609: no samples.
    """
    extremes = _extremes(runner, samples())
    ranges = extremes
    if method != "min-max":
        histograms = {name: Histogram(low, high) for name, (low, high) in extremes.items() if low < high}
        for feeds in samples():
            found = runner.run(feeds)
            for name, histogram in histograms.items():
                histogram.add(found[name])
        cut = {
            name: percentile(histogram, percent) if method == "percentile" else entropy(histogram)
            for name, histogram in histograms.items()
        }
        ranges = {**extremes, **cut}
    return {root: _grid(ranges[name] for name in names) for root, names in plan.sources.items()}


def _extremes(runner: Runner, samples: Iterable[Mapping[str, npt.NDArray[Any]]]) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for feeds in samples:
        for name, values in runner.run(feeds).items():
            low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
            if not np.isfinite([low, high]).all():
                raise UsageError(
                    "E2604",
                    f"value {name!r} is not finite for a calibration sample",
                    where=runner.where,
                    hint="check the calibration data and its --mean and --std",
                )
            before = found.get(name, (low, high))
            found[name] = min(before[0], low), max(before[1], high)
    if not found:
        raise UsageError("E2609", "there are no calibration samples", where=runner.where)
    return found


def _grid(ranges: Iterable[tuple[float, float]]) -> Grid:
    lows, highs = zip(*ranges, strict=True)
    low, high = min(lows), max(highs)
    return Grid.covering(low, high) if max(high, -low) >= SMALLEST_RANGE else Grid(np.float32(1), -128)
