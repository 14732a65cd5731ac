"""Whether the position that a loop nest is at lies inside the input, from the signs of values that the loops keep."""

from collections.abc import Mapping, Sequence

from amaranth import Const, Module, Signal, Value

from .loops import Fields, LoopNest
from .ports import by_name

COUNTS = {"ih": "in_h", "iw": "in_w"}
"""Values of a position, and the fields with the counts that they must be below."""


BOUNDS = tuple(f"{name}{past}" for name in COUNTS for past in ("", "_past"))
"""The values that tell whether the position lies inside: they are not used where addresses are."""


def with_bounds(values: Mapping[str, tuple[int, Sequence[str]]]) -> dict[str, tuple[int, Sequence[str]]]:
    """The values of a `LoopNest` with ``ih`` and ``iw``, and both less ``in_h`` and ``in_w``.

    To compare them with the counts would take a chain of carries before the address may be used.
    """
    return {**values, **{f"{name}_past": values[name] for name in COUNTS}}


def within_input(m: Module, loops: LoopNest, following: Fields) -> Value:
    """``0 <= ih < in_h and 0 <= iw < in_w`` of the loops' position, 1 bit; gives the values of `with_bounds` what they
    begin with, and the strides of ``ih`` and ``iw``. `following` are the instruction's fields in the cycle before
    ``start``."""
    within: Value = Const(1)
    values, bases, strides = map(by_name, (loops.value, loops.base, loops.stride))
    for name, count in COUNTS.items():
        past = f"{name}_past"
        first = Signal.like(bases[past], name=f"{past}_first", reset_less=True)
        m.d.sync += first.eq(following[f"{name}0"] - following[count])
        m.d.comb += bases[past].eq(first)
        mine, theirs = by_name(strides[past]), by_name(strides[name])
        m.d.comb += [mine[level].eq(theirs[level]) for level in mine]
        within = within & ~values[name][-1] & values[past][-1]
    return within
