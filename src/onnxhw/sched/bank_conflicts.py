"""No two users of an activation bank in the same cycle, by the exact cycles of a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..isa.units import Unit


@dataclass(frozen=True)
class BankUse:
    """An instruction that uses banks in some of the cycles ``first .. last``."""

    unit: Unit
    index: int
    first: int
    last: int
    banks: frozenset[int]


def conflict(uses: Sequence[BankUse]) -> tuple[BankUse, BankUse] | None:
    """Two uses of one bank by different units whose cycles meet, or None. Those of a unit are in order of `first`."""
    by_bank: dict[int, dict[Unit, list[BankUse]]] = {}
    for use in uses:
        for bank in use.banks:
            by_bank.setdefault(bank, {}).setdefault(use.unit, []).append(use)
    for units in by_bank.values():
        for one, other in combinations(units.values(), 2):
            if found := _meeting(one, other):
                return found
    return None


def _meeting(one: Sequence[BankUse], other: Sequence[BankUse]) -> tuple[BankUse, BankUse] | None:
    begins = _numbers([use.first for use in other])
    until = np.maximum.accumulate(_numbers([use.last for use in other]))
    before = np.searchsorted(begins, _numbers([use.last for use in one]), side="right")
    meets = (before > 0) & (until[before - 1] >= _numbers([use.first for use in one]))
    if not meets.any():
        return None
    mine = one[int(meets.argmax())]
    return mine, next(use for use in other if use.first <= mine.last and use.last >= mine.first)


def _numbers(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)
