"""`front`: the points that no other is better than."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether `one` is nowhere larger than `other`, and somewhere smaller."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def front(points: Sequence[tuple[tuple[float, ...], T]]) -> list[T]:
    """Of points with their objectives, all to be small, those that no other dominates, in order of the objectives.

    Of points with equal objectives the first counts, so the result depends on the order of `points` alone.
    """
    kept: list[tuple[tuple[float, ...], T]] = []
    for values, point in sorted(points, key=lambda each: each[0]):  # what dominates a point comes before it
        if not any(other == values or dominates(other, values) for other, _ in kept):
            kept.append((values, point))
    return [point for _, point in kept]
