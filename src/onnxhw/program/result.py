"""`Result`: what a run of a program gives, whichever engine ran it."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass
class Result:
    """One inference.

    Parameters
    ----------
    outputs : int8 ``(1, C, H, W)`` by tensor name (`Port.tensor` of the program's outputs).
    tensors : every tensor of the tensor table that the engine captured, by name; empty unless traced.
    cycles : cycles of the run, as the core's CYCLES register reports them; 0 if the engine has no clock.
    counters : the core's other counters by the lower-case name of their `isa.memory.Control` register.
    """

    outputs: dict[str, npt.NDArray[np.int8]]
    tensors: dict[str, npt.NDArray[np.int8]] = field(default_factory=dict)
    cycles: int = 0
    counters: dict[str, int] = field(default_factory=dict)
