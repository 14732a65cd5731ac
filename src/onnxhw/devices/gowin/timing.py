"""Registers inside the cells of the GW2A, all of which are used (compare `onnxhw.isa.timing`)."""

MEMORY = 2
"""SDPB, SDPX9B: address and output register; narrow ones have the latter in fabric (`cells.bsram`)."""
MULTIPLIER = 3
"""MULT9X9, MULT18X18: input, pipeline and output register."""
