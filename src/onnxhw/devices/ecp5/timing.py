"""Registers inside the ECP5's own cells, all of which are used: they make the clock, and the core's timing counts them.

`onnxhw.isa.timing` says how many cycles a memory and a multiplier of any device take, for a program runs on every one
in the same cycles. Cells with fewer registers get the rest in fabric.
"""

MEMORY = 2
"""DP16KD: address and output register."""
MULTIPLIER = 3
"""MULT18X18D: input, pipeline and output register."""
