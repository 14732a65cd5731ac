"""A duplicated register made of a family's flip-flops."""

from collections.abc import Callable
from typing import Any

from amaranth import Module

from ..rtl.cells import DuplicatedRegister

MakeFlipFlop = Callable[..., Any]
"""A family's flip-flop as an instance: ``(d, q, *, init)``."""


def copies(register: DuplicatedRegister, make: MakeFlipFlop) -> Module:
    """The body of `register`: a flip-flop, made by `make`, for each bit of each copy."""
    m = Module()
    for j in range(register.count):
        for bit in range(register.width):
            init = register.init >> bit & 1
            m.submodules[f"copy_{j}_{bit}"] = make(register.i[bit], register.o[j][bit], init=init)
    return m
