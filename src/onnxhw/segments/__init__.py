"""Networks larger than the chip: a plan of segments with buffers in external memory, and the program that is linked
from it."""

from .checker import check_plan
from .effort import QUICK, THOROUGH, Effort
from .estimate import PlanEstimate, estimate_cycles, kind
from .executor import differences, execute
from .group_choice import NoPartError
from .linker import link, part_name
from .packed_boxes import PackedRegion, sources_of
from .part_cycles import PartCycles, ScaledCycles
from .plan import Buffer, Plan, Region, Segment
from .planner import make_plan
from .resident_estimate import estimate_with_residents
from .sampling import sampled
from .techniques import Techniques

__all__ = [
    "QUICK",
    "THOROUGH",
    "Buffer",
    "Effort",
    "NoPartError",
    "PackedRegion",
    "PartCycles",
    "Plan",
    "PlanEstimate",
    "Region",
    "ScaledCycles",
    "Segment",
    "Techniques",
    "check_plan",
    "differences",
    "estimate_cycles",
    "estimate_with_residents",
    "execute",
    "kind",
    "link",
    "make_plan",
    "part_name",
    "sampled",
    "sources_of",
]
