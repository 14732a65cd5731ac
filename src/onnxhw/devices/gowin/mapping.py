"""Yosys' mapping to the GW2A, the same for bitstreams and for simulated netlists."""

SYNTHESIS = "synth_gowin -family gw2a -nodsp -no-rw-check -top {top}"
"""The command. Multipliers that are wanted are instantiated (`cells`), others are to be logic. Of a read of the address
that is being written nothing is promised, and no logic is to be spent on it."""
