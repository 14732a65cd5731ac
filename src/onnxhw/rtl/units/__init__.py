"""What executes the instructions of each unit, a component per unit."""

from ..ports import UnitComponent
from .array import ArrayUnit
from .depthwise import DepthwiseUnit
from .load import LoadUnit
from .move import MoveUnit
from .vector import VectorUnit

KINDS: tuple[type[UnitComponent], ...] = (LoadUnit, ArrayUnit, DepthwiseUnit, VectorUnit, MoveUnit)
COMPONENTS = {kind.UNIT: kind for kind in KINDS}
"""By unit."""
