"""From a model to its program: what runs on the hardware, in which parts, and whether it fits.

compile     the program of a model                                  (compilation.py)
place       a model placed so that what is on the hardware fits it  (placement.py, split.py, reasons.py)
SegmentedGraphs  parts that are larger than the chip, with external memory  (segmented.py)
fit         what hardware parts need, and what a configuration has  (capacity.py)
Cost        what line, core and host take                           (cost.py)
"""

from .compilation import compile, compile_graph, place_and_schedule
from .placement import LARGE, SLOW, Placement, place

__all__ = ["LARGE", "SLOW", "Placement", "compile", "compile_graph", "place", "place_and_schedule"]
