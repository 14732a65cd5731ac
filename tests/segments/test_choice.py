"""Of two plans of a small network the one is taken whose program takes fewer cycles."""

from typing import Any

import pytest
from small_networks import NETWORKS, SMALL

from onnxhw.segments import PartCycles, Plan, best, choice, link, make_plan

GRAPH = NETWORKS["inverted"]()
KNOWN = PartCycles(SMALL)
PLANS = {banks: make_plan(GRAPH, SMALL, KNOWN, banks=banks) for banks in (True, False)}
CYCLES = {banks: link(GRAPH, plan, SMALL, KNOWN.schedules).cycles for banks, plan in PLANS.items()}


@pytest.mark.parametrize("turned", [False, True])
def test_the_program_of_fewer_cycles(turned: bool) -> None:
    plan, program = best(GRAPH, lambda banks: PLANS[banks != turned], SMALL, KNOWN.schedules)
    assert CYCLES[True] != CYCLES[False]
    fewest = min(CYCLES, key=CYCLES.__getitem__)
    assert (plan, program.cycles) == (PLANS[fewest], CYCLES[fewest])


def test_of_many_segments_one_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", len(PLANS[True].segments) - 1)
    asked = list[bool]()

    def plan_of(banks: bool) -> Plan:
        asked.append(banks)
        return PLANS[banks]

    assert best(GRAPH, plan_of, SMALL, KNOWN.schedules)[1].cycles == CYCLES[True]
    assert asked == [True]


def test_equal_plans_are_linked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = list[Any]()
    monkeypatch.setattr(choice, "link", lambda *args: linked.append(args) or link(*args))
    best(GRAPH, lambda _: PLANS[True], SMALL, KNOWN.schedules)
    assert len(linked) == 1
