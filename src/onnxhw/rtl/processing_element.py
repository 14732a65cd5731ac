"""`ProcessingElement`: a multiplier of the array, with the weights of the rows that it serves."""

from typing import Any

from amaranth import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .cells import Multiplier


class ProcessingElement(wiring.Component):
    """One multiplier with its weights and their shadows: one of each where `rows` is 1, a pair where it is 2.

    Cycle 0: ``swap`` makes the shadow weights the active ones. Cycle 1: ``a`` (`rows` bytes) enters. `MULTIPLY` cycles
    later, registered::

        south = north + a * w                        # one row
        south = north + (a0 + w1) * (a1 + w0)        # a pair: a0 * w0 + a1 * w1 + a0 * a1 + w0 * w1

    modulo ``2**psum_bits``. `role` and `shared` are its multiplier's.
    """

    def __init__(self, psum_bits: int, rows: int, style: str, role: str = "", shared: Any = None) -> None:
        self.rows, self.style, self.role, self.shared = rows, style, role, shared
        super().__init__(
            {
                "a": In(8 * rows),
                "swap": In(1),
                "load": In(rows),
                "weight": In(8 * rows),
                "north": In(signed(psum_bits)),
                "south": Out(signed(psum_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        active: list[Value] = []
        for i in range(self.rows):
            shadow = Signal(signed(8), name=f"shadow_{i}", reset_less=True)
            weight = Signal(signed(8), name=f"active_{i}", reset_less=True)
            with m.If(self.load[i]):
                m.d.sync += shadow.eq(self.weight.word_select(i, 8))
            with m.If(self.swap):
                m.d.sync += weight.eq(shadow)
            active.append(weight)
        a = [self.a.word_select(i, 8).as_signed() for i in range(self.rows)]
        if self.rows == 2:
            _multiply(m, self, a[0] + active[1], a[1] + active[0])
        else:
            _multiply(m, self, a[0], active[0])
        return m


class ActivationElement(wiring.Component):
    """``south = north + a0 * a1``: what the pairs of a row have too much; timing and names of `ProcessingElement`."""

    def __init__(self, psum_bits: int, style: str, role: str = "", shared: Any = None) -> None:
        self.style, self.role, self.shared = style, role, shared
        super().__init__(
            {
                "a": In(16),
                "north": In(signed(psum_bits)),
                "south": Out(signed(psum_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        _multiply(m, self, self.a[:8].as_signed(), self.a[8:].as_signed())
        return m


def _multiply(m: Module, element: Any, left: Value, right: Value) -> None:
    """The multiplier and the sum."""
    multiplier = Multiplier(len(left), len(right), style=element.style, role=element.role, shared=element.shared)
    m.submodules.multiplier = multiplier
    south = Signal.like(element.south, reset_less=True)
    m.d.comb += [multiplier.a.eq(left), multiplier.b.eq(right), element.south.eq(south)]
    m.d.sync += south.eq(element.north + multiplier.p)
