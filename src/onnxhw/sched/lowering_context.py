"""`LoweringContext`: what the lowering of an operation reads and fills."""

from dataclasses import dataclass

from ..config import HwConfig
from ..ir.graph import Graph
from ..ir.operation import Interval
from .aliases import Aliases
from .constant_memories import ConstantMemories
from .heuristics import Heuristics


@dataclass(frozen=True)
class LoweringContext:
    """A graph on its way: `ranges` has what each tensor can hold, `images` grow by each operation's constants."""

    graph: Graph
    config: HwConfig
    aliases: Aliases
    ranges: dict[str, Interval]
    images: ConstantMemories
    use: Heuristics
