"""The instruction set: declared once, here."""

from .instructions import UNITS, Array, Depthwise, Load, Ordered, Vector, VectorOp

__all__ = ["UNITS", "Array", "Depthwise", "Load", "Ordered", "Vector", "VectorOp"]
