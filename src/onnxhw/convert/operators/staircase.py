"""A staircase: a monotone function from integer sums to a few integers, and requantizers that are equal to it.

    y = f(sum)       never falls; known by its steps: the least sum that reaches each level

A float formula behind a sum (BatchNormalization, then a quantizer) is such a function. `line` seeks constants with
``f(sum) == requantize(factor * sum + bias, multiplier)`` for every sum that can occur; `lines` one such entry for every
few levels, whose results add up to f: a multi-threshold. A factor that multiplies the weights makes the bias finer.

Both sides never fall, so they are equal on ``low .. high`` if they are where f rises, just before, and at the ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ... import fixed
from ..values import Ints

LEAST, MOST = 2.0**-23, 2.0**7
"""Multipliers that every requantizer has."""
SLOPES = 65
"""Slopes that are tried between the least and the most possible."""
TRIES = 24
"""Lines that are proved before a search is given up; nearly always the first is right."""
MOST_BIAS = 1 << 30
"""Half of what a parameter's 32 bits hold: the input's zero point times the weights' sum is folded into the bias later,
and takes the other half only with 66,000 weights (``128 * 127 * 66000 < 2**30``)."""
NARROWEST, WIDEST = 1 / (MOST * 128), 1 / LEAST
"""Sums per level, for weights multiplied by at most 128."""
GRID, ROUNDS = 65, 12
"""Points of a grid that narrows down an interval 32 times at least, and how often: to the bits of a float64."""
Reals = npt.NDArray[np.float64]
Ends = Callable[[Reals], tuple[Reals, Reals]]
"""The least and the greatest b of each u."""


@dataclass(frozen=True)
class RequantizedSum:
    """``requantize(factor * sum + bias, multiplier)``; the factor goes into the weights."""

    factor: int
    bias: int
    multiplier: float


@dataclass(frozen=True)
class Staircase:
    """One channel's function on ``low .. high``, from `first` on; ``steps[k]`` is the least sum with a value above
    ``first + k`` (``high + 1``: none)."""

    low: int
    high: int
    first: int
    steps: Ints

    @property
    def last(self) -> int:
        """The value at `high`."""
        return self.first + int((self.steps <= self.high).sum())

    def values(self, sums: Ints) -> Ints:
        """The function."""
        return np.asarray(self.first + np.searchsorted(self.steps, sums, side="right"))

    def part(self, start: int, count: int) -> "Staircase":
        """How many of the levels above ``start`` are reached, at most `count`: ``clip(f - start, 0, count)``."""
        known = np.full(count, self.high + 1, np.int64)
        for k in range(count):
            index = start + k - self.first
            if index < 0:
                known[k] = self.low
            elif index < len(self.steps):
                known[k] = self.steps[index]
        first = int((known <= self.low).sum())
        return Staircase(self.low, self.high, first, known[first:])


def staircases(function: Callable[[Ints], Ints], low: Ints, high: Ints, levels: int) -> list[Staircase]:
    """The staircases of a function of ``[C, N]`` sums that never falls along N, by bisection.

    `low`, `high`: the ends of the sums, ``[C]``. `levels`: how far its values can lie from each other.
    """
    first = function(low[:, None])[:, 0]
    wanted = first[:, None] + np.arange(1, levels + 1)
    before = np.repeat(low[:, None], levels, axis=1)  # below the level
    after = np.repeat(high[:, None] + 1, levels, axis=1)  # at the level, or beyond the end
    while bool((after - before > 1).any()):
        middle = (before + after) // 2
        reached = function(middle) >= wanted
        open_ = after - before > 1
        after = np.where(reached & open_, middle, after)
        before = np.where(~reached & open_, middle, before)
    return [Staircase(int(low[c]), int(high[c]), int(first[c]), after[c]) for c in range(len(low))]


def line(
    stairs: Staircase, zero_point: int, lo: int, hi: int, most: int, slope: float = np.inf
) -> RequantizedSum | None:
    """An entry equal to the staircase with a factor up to `most`; None if none is found.

    Level ``k - 1/2`` is crossed in ``(t - 1, t]`` for every step t. With the slope 1 / u: ``u * c - t <= b`` and
    ``b < u * c - t + 1`` for ``c = k - zero_point - 1/2``, which are intervals of b for each u; b is a multiple of
    1 / factor. The given `slope` is tried first, then others.
    """
    first, last = stairs.first, stairs.last
    if first == last:
        return RequantizedSum(0, first - zero_point, 1.0)
    inside = stairs.steps[: last - first]
    crossed = np.arange(first + 1, last + 1) - zero_point - 0.5
    below, above = (crossed, inside), (crossed, inside - 1)
    if first > lo:  # at the ends it may only saturate
        below = np.append(crossed, first - zero_point - 0.5), np.append(inside, stairs.low)
    if last < hi:
        above = np.append(crossed, last - zero_point + 0.5), np.append(inside - 1, stairs.high)

    def ends(u: Reals) -> tuple[Reals, Reals]:
        least = (u[:, None] * below[0] - below[1]).max(axis=1)
        return least, (u[:, None] * above[0] - above[1]).min(axis=1)

    points = np.unique(np.concatenate([[stairs.low, stairs.high], inside, inside - 1]))
    points = points[(points >= stairs.low) & (points <= stairs.high)]
    wanted = stairs.values(points)

    def equal(entry: RequantizedSum) -> bool:
        sums = points * entry.factor + entry.bias
        return np.array_equal(fixed.requantize(sums, entry.multiplier, zero_point, lo, hi), wanted)

    if np.isfinite(slope) and slope > 0:
        entry = _best(np.array([1 / slope]), ends, most, equal)
        if entry is not None:
            return entry
    slopes = _slopes(ends)
    return None if slopes is None else _best(slopes, ends, most, equal)


def _best(slopes: Reals, ends: Ends, most: int, equal: Callable[[RequantizedSum], bool]) -> RequantizedSum | None:
    """The entry of the least factor that is equal, of the slope nearest to the middle."""
    least, greatest = ends(slopes)
    factors = np.arange(1, most + 1)[:, None]
    multipliers = (1 / (slopes * factors)).astype(np.float32)
    lowest, highest = np.ceil(least * factors), np.ceil(greatest * factors) - 1
    biases = np.clip(np.floor((least + greatest) / 2 * factors + 0.5), lowest, highest)
    fits = (lowest <= highest) & (np.abs(biases) < MOST_BIAS) & (multipliers >= LEAST) & (multipliers <= MOST)
    rows, columns = np.nonzero(fits)
    order = np.lexsort((np.abs(columns - len(slopes) // 2), rows))[:TRIES]
    for row, column in zip(rows[order], columns[order], strict=True):
        entry = RequantizedSum(int(row) + 1, int(biases[row, column]), float(multipliers[row, column]))
        if equal(entry):
            return entry
    return None


def _slopes(ends: Ends) -> Reals | None:
    """Values of u for which there may be a b, the middle one with the widest interval; None if there are none.

    The width of the interval is a concave function of u: its maximum lies between the neighbours of the best point of a
    grid, and it is positive on one interval around that.
    """

    def width(u: Reals) -> Reals:
        least, greatest = ends(u)
        return np.asarray(greatest - least)

    left, right = NARROWEST, WIDEST
    for _ in range(ROUNDS):
        grid = np.linspace(left, right, GRID)
        at = int(width(grid).argmax())
        left, right, best = grid[max(at - 1, 0)], grid[min(at + 1, GRID - 1)], grid[at]
    if float(width(np.array([best]))[0]) <= 0:
        return None
    bounds = []
    for outer in (NARROWEST, WIDEST):
        inner = best
        for _ in range(ROUNDS):
            grid = np.linspace(inner, outer, GRID)
            at = int(np.argmin(np.append(width(grid)[1:], -1.0) > 0)) + 1
            inner, outer = grid[at - 1], grid[min(at, GRID - 1)]
        bounds.append(inner)
    half = SLOPES // 2 + 1
    return np.concatenate([np.linspace(bounds[0], best, half)[:-1], np.linspace(best, bounds[1], half)])


def lines(
    stairs: list[Staircase], lo: int, hi: int, most: list[int], groups: int, slopes: Sequence[float] = ()
) -> tuple[int, list[list[RequantizedSum]]] | None:
    """How many levels each entry has, and per channel the entries that add up to ``f - lo``; None if they would be more
    than `groups`. `slopes`: of each channel, tried first.

    Entry g is ``clip(f - lo - g * count, 0, count)``, on integers from 0 to `count` with the zero point 0.
    """
    levels, order = hi - lo, list(range(len(stairs)))
    for number in range(1, min(groups, levels) + 1):
        count = -(-levels // number)
        if number > 1 and count == -(-levels // (number - 1)):
            continue
        found: dict[int, list[RequantizedSum]] = {}
        for channel in order:
            slope = slopes[channel] if slopes else np.inf
            entries = _parts(stairs[channel], lo, count, number, most[channel], slope)
            if entries is None:
                order.remove(channel)
                order.insert(0, channel)  # what has failed will most likely do so again
                break
            found[channel] = entries
        else:
            return count, [found[channel] for channel in range(len(stairs))]
    return None


def _parts(
    stairs: Staircase, lo: int, count: int, number: int, most: int, slope: float
) -> list[RequantizedSum] | None:
    found = []
    for g in range(number):
        entry = line(stairs.part(lo + g * count, count), 0, 0, count, most, slope)
        if entry is None:
            return None
        found.append(entry)
    return found
