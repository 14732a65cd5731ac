"""`best`: the program of a network, chosen by exact cycles where there are few segments.

Costs of groups are rough, and what a transfer takes from the weights of a later group is in none of them. With many
segments such differences are evened out; with few of them the plan that does not count banks is linked, too.
"""

from collections.abc import Callable

from ..config import HwConfig
from ..ir.graph import Graph
from ..program.model import DeviceProgram
from .linker import link
from .part_schedule import PartSchedules
from .plan import Plan
from .techniques import ALL, Techniques

FEW = 48
"""Segments of a plan, at most, beside which another is linked: seconds. ResNet-8, of 15, takes 6 % fewer cycles."""


def best(
    graph: Graph, plan_of: Callable[[bool], Plan], config: HwConfig, schedules: PartSchedules | None = None,
    techniques: Techniques = ALL,
) -> tuple[Plan, DeviceProgram]:  # fmt: skip
    """A plan and its program; `plan_of`: the plan whose costs know banks, or not (`make_plan`).

    Errors as of `plan_of` and `link`.
    """
    plan = plan_of(True)
    program = link(graph, plan, config, schedules, techniques)
    if len(plan.segments) > FEW:
        return plan, program
    other = plan_of(False)
    if other == plan:
        return plan, program
    another = other, link(graph, other, config, schedules, techniques)
    return min((plan, program), another, key=lambda each: each[1].cycles)
