"""Estimates of plans whose constants stay on chip."""

from dataclasses import replace

import pytest
from small_networks import NETWORKS, SMALL, anything, chain

from onnxhw.ir.graph import Graph
from onnxhw.segments import estimate_cycles, estimate_with_residents, make_plan
from onnxhw.segments.plan import weights_of

RUN = 1000


def always(_: Graph) -> int:
    return RUN


def test_weights_that_all_fit_do_not_move() -> None:
    plan, wide = make_plan(chain(), SMALL, anything), replace(SMALL, weight_depth=1024)
    found = estimate_with_residents(plan, wide, always)
    assert found.weight_bytes == 0 < estimate_cycles(plan, wide, always).weight_bytes


@pytest.mark.parametrize("name", NETWORKS)
def test_what_stays_costs_nothing(name: str) -> None:
    plan = make_plan(NETWORKS[name](), SMALL, anything)
    found, without = estimate_with_residents(plan, SMALL, always), estimate_cycles(plan, SMALL, always)
    assert found.cycles <= without.cycles
    assert found.weight_bytes <= without.weight_bytes
    assert found.run == without.run


def test_parameters_stay_if_all_fit() -> None:
    plan = make_plan(NETWORKS["residual"](), SMALL, anything)
    rows = sum({key: key[1][1] - key[1][0] for each in plan.segments for key in weights_of(each, SMALL)}.values())
    there, missing = (
        estimate_with_residents(plan, replace(SMALL, param_depth=depth), always) for depth in (rows, rows - 1)
    )
    assert there.weight_bytes < missing.weight_bytes
