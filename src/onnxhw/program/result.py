"""`Result`: what a run of a program gives, whichever engine ran it; and where two results differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import Entry
from .storage import Array8


@dataclass
class Result:
    """One inference.

    Parameters
    ----------
    outputs : int8 ``(1, C, H, W)`` by tensor name (`Port.tensor` of the program's outputs).
    tensors : every tensor of the tensor table that the engine captured, by name; empty unless traced.
    cycles : cycles of the run, as the core's CYCLES register reports them; 0 if the engine has no clock.
    latency : cycles from the acceptance of the last frame of input to the end of the run, as a device measured them
        that was idle then; None if it was not, or is none, and behind the first inference of a batch.
    counters : the core's other counters by the lower-case name of their `isa.memory.Control` register; a device tells
        them of the first inference of a batch.
    """

    outputs: dict[str, npt.NDArray[np.int8]]
    tensors: dict[str, npt.NDArray[np.int8]] = field(default_factory=dict)
    cycles: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    latency: int | None = None


@dataclass(frozen=True)
class FirstDifference:
    """Where two arrays differ: the first such element, its two values, how many there are, of how many."""

    element: tuple[int, ...]
    expected: Any
    got: Any
    different: int
    of: int


def first_difference(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], equal: npt.NDArray[np.bool_] | None = None
) -> FirstDifference | None:
    """The first difference of two arrays of one shape, in their order; None if there is none.

    `equal`: which elements count as equal, if not those that are.
    """
    equal = np.asarray(expected == got if equal is None else equal)
    if equal.all():
        return None
    where = np.argwhere(~equal)
    at = tuple(int(i) for i in where[0])
    return FirstDifference(at, expected[at], got[at], len(where), equal.size)


def values_of(entry: Entry, tensors: Mapping[str, Array8]) -> Array8 | None:
    """What `tensors` say that an entry of the tensor table holds: the tensor of its name, else the box of the tensor of
    which it is a part, for a golden model knows no parts; None if they have neither."""
    if entry.name in tensors or entry.part is None:
        return tensors.get(entry.name)
    whole = tensors.get(entry.part.tensor)
    return None if whole is None else whole[entry.part.box.slices]
