"""The instruction set: declared once, here."""

from .instructions import UNITS, Array, Code, Depthwise, Load, Ordered, Vector, VectorOp
from .units import Unit

__all__ = ["UNITS", "Array", "Code", "Depthwise", "Load", "Ordered", "Unit", "Vector", "VectorOp"]
