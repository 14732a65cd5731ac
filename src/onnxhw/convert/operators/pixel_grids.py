"""`pieces`: a map of pixels as few grids, each with constant steps in the source and in the result."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...ir.graph import Piece
from ..blockers import BlockedError
from ..values import Ints

MOST = 64
"""Pieces of one Copy: each is an instruction."""
STEPS = ((1, 1), (2, 2), (1, 2), (2, 1), (3, 3), (1, 3), (3, 1), (4, 4), (1, 4), (4, 1), (8, 8))
"""Steps in the result that are tried: the factors of Resize, DepthToSpace and strides that models have, along one axis
or both. Each costs a pass over the pixels; with other factors a result takes as many pieces as its lines have runs."""


def pieces(source: Ints, pixel: Ints) -> list[Piece]:
    """Grids that cover the pixels ``[H, W]`` of a result, given the source (-1: none) and the source's pixel of each.

    `BlockedError` if more than `MOST` are needed.
    """
    best: list[Piece] | None = None
    for dy, dx in STEPS:
        if dy > source.shape[0] or dx > source.shape[1]:
            continue
        found: list[Piece] = []
        for y in range(dy):
            for x in range(dx):
                if len(found) <= MOST:
                    part = slice(y, None, dy), slice(x, None, dx)
                    found += [
                        Piece(*grid[:6], y + grid[6] * dy, x + grid[7] * dx, dy, dx)
                        for grid in _grids(source[part], pixel[part])
                    ]
        if len(found) <= MOST and (best is None or len(found) < len(best)):
            best = found
        if best is not None and len(best) <= dy * dx:
            break
    if best is None:
        raise BlockedError(f"its pixels do not move in at most {MOST} regular pieces")
    return best


Grid = tuple[int, int, int, int, int, int, int, int]
"""Source, start, row step, column step, rows, columns, row and column in the result."""


def _grids(source: Ints, pixel: Ints) -> list[Grid]:
    """Grids without gaps; stops soon after `MOST`."""
    same = source[:, 1:] == source[:, :-1]
    steps = np.where(same, np.diff(pixel, axis=1), np.iinfo(np.int64).max)
    alike = (source[1:] == source[:-1]).all(axis=1) & (steps[1:] == steps[:-1]).all(axis=1)
    edges = [0, *(np.flatnonzero(~alike) + 1).tolist(), len(source)]
    found: list[Grid] = []
    for top, bottom in pairwise(edges):
        for left, cols, col in runs(pixel[top], source[top]):
            if source[top, left] < 0:
                continue
            column = pixel[top:bottom, left]
            for first, rows, row in runs(column, np.zeros_like(column)):
                start = int(column[first])
                found.append((int(source[top, left]), start, row, col, rows, cols, top + first, left))
            if len(found) > MOST:
                return found
    return found


def runs(values: npt.NDArray[np.int64], kinds: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Stretches of one kind with a constant step: ``(first, count, step)``, from the left, each as long as it goes."""
    found, first = [], 0
    while first < len(values):
        end = first + 1
        step = 0
        if end < len(values) and kinds[end] == kinds[first]:
            step = int(values[end] - values[first])
            while end < len(values) and kinds[end] == kinds[first] and values[end] - values[end - 1] == step:
                end += 1
        found.append((first, end - first, step if end - first > 1 else 0))
        first = end
    return found
