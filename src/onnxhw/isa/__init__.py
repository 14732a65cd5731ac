"""The instruction set: declared once, here."""

from .instructions import UNITS, Array, Load, Ordered, Vector, VectorOp

__all__ = ["UNITS", "Array", "Load", "Ordered", "Vector", "VectorOp"]
