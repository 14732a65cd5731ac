"""Uses of one bank whose cycles meet, against all pairs."""

import random
from itertools import combinations

from onnxhw.isa.units import Unit
from onnxhw.sched.bank_conflicts import BankUse, conflict


def meet(one: BankUse, other: BankUse) -> bool:
    apart = one.unit == other.unit or one.first > other.last or other.first > one.last
    return not apart and bool(one.banks & other.banks)


def test_it_finds_a_pair_if_there_is_one() -> None:
    rng, seen = random.Random(0), set()
    for _ in range(300):
        uses = []
        for unit in (Unit.ARRAY, Unit.VECTOR, Unit.MOVE):
            for index, first in enumerate(sorted(rng.randrange(200) for _ in range(rng.randint(0, 4)))):
                banks = frozenset(rng.sample(range(6), rng.randint(0, 2)))
                uses.append(BankUse(unit, index, first, first + rng.randint(0, 40), banks))
        found, wanted = conflict(uses), any(meet(*pair) for pair in combinations(uses, 2))
        assert (found is not None) == wanted
        assert found is None or meet(*found)
        seen.add(wanted)
    assert seen == {False, True}
