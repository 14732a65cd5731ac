"""`Effort`: how much of what there is to choose from the planner looks at."""

from dataclasses import dataclass

CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of blocks of channels, of stripes of rows that are tried."""
FEW_CUTS = (1, 2, 3, 4)
"""Numbers of stripes of the other side: a line buffer of 64 words holds 224 pixels in four."""
COARSE_CUTS = tuple(n for n in CUTS if n & (n - 1) == 0)
"""Every second one, and the most."""


@dataclass(frozen=True)
class Effort:
    """What is tried: groups of `longest` operations at most; results in `cuts` blocks of channels and stripes of rows,
    in `few_cuts` stripes of the other side, in `long_cuts` of the side that is long. `again`: groups are chosen again
    with the exact cycles of those that were chosen before, until nothing new comes. `packed`: no boxes of an input
    that are too large to lie packed as smaller ones do, for what is sent in two forms is sent twice."""

    longest: int
    cuts: tuple[int, ...]
    few_cuts: tuple[int, ...]
    long_cuts: tuple[int, ...]
    again: bool
    packed: bool = True


THOROUGH = Effort(14, CUTS, FEW_CUTS, (*CUTS, 96, 128, 192, 256, 384, 512), again=True)
"""For programs. A stage of two branches with a SiLU behind each of five convolutions has 14 operations: YOLOv5n takes
9 % more cycles with 8. 512 stripes of half the memory for activations are as much as the external memory holds."""
QUICK = Effort(8, COARSE_CUTS, (1, 4), (*COARSE_CUTS, 128, 256, 512), again=False)
"""For forecasts, in a tenth to a third of the time: YOLOv5n's plan takes 5 seconds instead of 27, and its forecast 2 %
more cycles than the program has."""
