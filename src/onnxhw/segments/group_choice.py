"""`Choice`: of candidates of a graph's groups those that make all operations, in order, and cost least."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import inf, isinf

import numpy as np
import numpy.typing as npt

from ..errors import DoesNotFitError
from ..ir.graph import Op
from .groups import Candidate

SAME = 0.5
"""Cycles below which costs are equal: the first, of fewest operations, is taken. Sums of parts differ by roundings."""


class NoPartError(DoesNotFitError):
    """E5191: of an operation of a graph no part fits the chip; `operation` is its name."""

    def __init__(self, op: Op, refusals: Sequence[str]) -> None:
        last = f"; last: {refusals[-1]}" if refusals else ""
        super().__init__("E5191", f"no part of it fits the chip{last}", where=op.where, hint="a larger preset")
        self.operation = op.name


class Left(IntEnum):
    """What a group leaves on chip of its last result as a whole: nothing, what is stored besides, or what is there
    alone."""

    NOTHING = 0
    STORED = 1
    ALONE = 2


def _costs(each: Candidate) -> list[list[float]]:
    """Costs of a candidate ``[3, 2]``, by what the one before has left: with its last result stored, and with that left
    alone; infinite where that cannot be."""
    stored, behind = each.cost, each.behind
    alone, behind_alone = (each.unstored, each.behind_unstored) if each.left else (inf, inf)
    found = [[stored, alone], [behind, behind_alone], [behind, behind_alone]]
    return found if each.sole else [*found[: Left.ALONE], [inf, inf]]


def _behind(each: Candidate) -> tuple[int, int]:
    """The states behind a candidate, in the order of its costs."""
    return _state(each.end, Left.STORED if each.left else Left.NOTHING), _state(each.end, Left.ALONE)


class Choice:
    """The candidates of groups of operations, by their first one."""

    def __init__(self, ops: Sequence[Op], by_first: Mapping[int, Sequence[Candidate]]) -> None:
        self.ops, self.by_first = ops, {first: [*mine] for first, mine in by_first.items() if mine}
        self.places = {each: (first, n) for first, mine in self.by_first.items() for n, each in enumerate(mine)}
        self.costs = {first: np.array([*map(_costs, mine)]) for first, mine in self.by_first.items()}
        self.then = {first: np.array([*map(_behind, mine)]) for first, mine in self.by_first.items()}

    def best(
        self, refused: Mapping[Candidate, str], exact: Mapping[Candidate, Candidate]
    ) -> tuple[float, list[Candidate]]:
        """The cost of the cheapest candidates, and these; `NoPartError` if there are none. `exact`: those whose costs
        are known better."""
        count = len(self.ops)
        costs = self._costs(refused, exact)
        least = np.full(_state(count + 1, Left.NOTHING), inf)
        """From an operation on, by what the one before has left: the least cost."""
        least[[_state(count, Left.NOTHING), _state(count, Left.STORED)]] = 0
        chosen: dict[int, tuple[Candidate, int]] = {}
        """Of these states the next candidate, and the state behind it."""
        for first in sorted(self.by_first, reverse=True):
            then = self.then[first]
            totals = costs[first] + least[then][:, None]
            for left in Left:
                mine = totals[:, left].reshape(-1)
                if isinf(lowest := mine.min()):
                    continue
                n = int((mine < lowest + SAME).argmax())
                least[_state(first, left)] = mine[n]
                chosen[_state(first, left)] = self.by_first[first][n // 2], int(then.reshape(-1)[n])
        if (at := _state(0, Left.NOTHING)) not in chosen:
            stuck = max(n for n in range(count) if _state(n, Left.NOTHING) not in chosen)
            raise NoPartError(self.ops[stuck], [why for each, why in refused.items() if each.first == stuck])
        cost, path = float(least[at]), list[Candidate]()
        while at in chosen:
            step, at = chosen[at]
            path.append(step)
        return cost, path

    def _costs(
        self, refused: Mapping[Candidate, str], exact: Mapping[Candidate, Candidate]
    ) -> dict[int, npt.NDArray[np.float64]]:
        """Costs, by the first operation: infinite if refused."""
        made = {first: costs.copy() for first, costs in self.costs.items()}
        for each, known in exact.items():
            first, n = self.places[each]
            made[first][n] = _costs(known)
        for each in refused:
            first, n = self.places[each]
            made[first][n] = inf
        return made


def _state(first: int, left: Left) -> int:
    """The number of a state: an operation, and what the one before has left."""
    return first * len(Left) + left
