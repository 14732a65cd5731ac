"""Networks larger than the chip: a plan of segments with buffers in external memory. `compile` does not use it yet."""

from .checker import check_plan
from .estimate import Estimate, PartCycles, estimate, kind
from .executor import differences, execute
from .plan import Buffer, Plan, Region, Segment
from .planner import plan

__all__ = [
    "Buffer",
    "Estimate",
    "PartCycles",
    "Plan",
    "Region",
    "Segment",
    "check_plan",
    "differences",
    "estimate",
    "execute",
    "kind",
    "plan",
]
