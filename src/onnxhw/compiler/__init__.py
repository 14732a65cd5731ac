"""From a model to its program: what runs on the hardware, in which parts, and whether it fits.

compile     the program of a model                                  (programs.py)
place       a model placed so that what is on the hardware fits it  (placing.py, split.py, reasons.py)
fit         what hardware parts need, and what a configuration has  (capacity.py)
Cost        what line, core and host take                           (cost.py)
"""

from .placing import LARGE, SLOW, Placing, place
from .programs import compile, compile_graph, place_and_schedule

__all__ = ["LARGE", "SLOW", "Placing", "compile", "compile_graph", "place", "place_and_schedule"]
