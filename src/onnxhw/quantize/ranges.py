"""From the values of an activation to the range that its grid covers: min-max, percentile or entropy."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .floatgraph import Doubles

BINS = 8192
"""Bins of a histogram: 32 for each step of an int8 grid over the whole range."""
LEVELS = 256
CANDIDATES = 128
"""Thresholds that `entropy` compares."""


@dataclass
class Histogram:
    """Counts of the values in `BINS` equal bins of ``low .. high``; zeros are counted apart."""

    low: float
    high: float
    zeros: int = 0
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, values: npt.NDArray[np.float32]) -> None:
        """Count these values, which lie in ``low .. high``."""
        flat = values.ravel().astype(np.float64)  # float32 cannot tell the bins of a narrow range apart
        nonzero = flat[flat != 0]
        self.zeros += flat.size - nonzero.size
        self.counts += np.histogram(nonzero, BINS, (self.low, self.high))[0]

    def edges(self) -> Doubles:
        """The `BINS` + 1 ends of the bins."""
        return np.linspace(self.low, self.high, BINS + 1)


def percentile(histogram: Histogram, percent: float) -> tuple[float, float]:
    """The values that ``100 - percent`` and `percent` percent of all do not exceed, interpolated within a bin."""
    counts, edges = histogram.counts.astype(np.float64), histogram.edges()
    if histogram.zeros:
        counts[int(np.clip(np.searchsorted(edges, 0.0, "right") - 1, 0, BINS - 1))] += histogram.zeros
    total = np.concatenate([[0.0], counts.cumsum()])
    inside = np.flatnonzero(np.diff(total, prepend=-1.0))  # one point for each level of the cumulative count
    wanted = total[-1] * np.array([100 - percent, percent]) / 100
    low, high = np.interp(wanted, total[inside], edges[inside])
    return float(low), float(high)


def entropy(histogram: Histogram) -> tuple[float, float]:
    """The range, cut at one magnitude on both sides, whose `LEVELS` steps lose the least information.

    For each threshold ``t`` the distribution within ``-t .. t``, the rest added to its outermost bins, is compared with
    itself averaged over the steps of the grid, by the Kullback-Leibler divergence. Zeros are exact on every grid and do
    not count.
    """
    edges, counts = histogram.edges(), histogram.counts.astype(np.float64)
    if not counts.any():
        return histogram.low, histogram.high
    peak = max(-histogram.low, histogram.high)
    best, found = np.inf, (histogram.low, histogram.high)
    for share in np.arange(CANDIDATES, 0, -1) / CANDIDATES:
        low, high = max(histogram.low, -peak * share), min(histogram.high, peak * share)
        inside = np.flatnonzero((edges[1:] > low) & (edges[:-1] < high))
        if inside.size < LEVELS:
            break
        divergence = _divergence(counts, int(inside[0]), int(inside[-1]) + 1)
        if divergence < best:
            best, found = divergence, (low, high)
    return found


def _divergence(counts: Doubles, first: int, last: int) -> float:
    """KL divergence between bins ``first .. last`` with what is outside at the ends, and the same in `LEVELS` steps."""
    inside = counts[first:last]
    clipped = inside.copy()
    clipped[0] += counts[:first].sum()
    clipped[-1] += counts[last:].sum()
    level = np.arange(inside.size) * LEVELS // inside.size
    occupied = clipped > 0
    sums = np.bincount(level, inside, LEVELS)
    bins = np.bincount(level, occupied, LEVELS)
    spread = np.where(occupied, sums[level] / np.maximum(bins[level], 1), 0.0)
    if not inside.any():
        return float("inf")
    p, q = clipped / clipped.sum(), spread / spread.sum()
    q = np.maximum(q, 1e-12)  # a step without counts inside: all of it was outside
    return float((p[occupied] * np.log(p[occupied] / q[occupied])).sum())
