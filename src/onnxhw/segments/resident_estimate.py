"""`estimate_with_residents`: the cycles of a plan with constants that stay on chip, about.

As `residents` chooses them of a linked program, but of the plan alone: whole operations' weights in the planner's
words, and parameters if all fit.
"""

from collections.abc import Callable, Iterator

from ..config import HwConfig
from .estimate import PlanEstimate, estimate_cycles
from .plan import Plan, Segment, Weights, weights_of
from .residents import PARTS, WORTH


def estimate_with_residents(plan: Plan, config: HwConfig, cycles: Callable[[Segment], int]) -> PlanEstimate:
    """The estimate of fewest cycles, of those with fewer and with more weights that stay; `cycles`: of a segment's
    run."""
    needed = [weights_of(segment, config) for segment in plan.segments]
    rows = sum({key: key[1][1] - key[1][0] for mine in needed for key in mine}.values())
    params = rows > config.param_depth
    made = (estimate_cycles(plan, config, cycles, each, params) for each in _choices(plan, needed, config, cycles))
    return min(made, key=lambda each: each.cycles)


def _choices(
    plan: Plan, needed: list[Weights], config: HwConfig, cycles: Callable[[Segment], int]
) -> Iterator[Weights]:
    """Weights that may stay, those of segments first that would wait for them longest."""
    total = sum({key: words for mine in needed for key, words in mine.items()}.values())
    hurry = [sum(mine.values()) / cycles(segment) for mine, segment in zip(needed, plan.segments, strict=True)]
    order = sorted(range(len(needed)), key=lambda n: (-hurry[n], n))
    for part in PARTS if total < WORTH * config.weight_depth else PARTS[:1]:
        found: dict[tuple[str, tuple[int, int]], int] = {}
        taken = 0
        for n in order:
            for key, words in needed[n].items():
                if key in found or taken + words > part * config.weight_depth:
                    continue
                kept = {**found, key: words}
                ring = max(sum(w for other, w in mine.items() if other not in kept) for mine in needed)
                if taken + words + ring <= config.weight_depth:
                    found, taken = kept, taken + words
        yield found
