"""Nested loops in hardware: counters, and values that are affine in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .decode import Decoded
from .ports import by_name, each

Fields = Decoded | Mapping[str, Value]
"""Fields of an instruction by name."""


class LoopNest(wiring.Component):
    """Nested loops, outermost level first; one iteration of the innermost per `step`.

    `levels` maps a level's name to the width of its count. `values` maps a value's name to ``(width, levels it
    depends on)``; it is ``base + sum(index[level] * stride[level])`` modulo ``2**width``. Members:

    - ``start`` loads bases and counts (they and the strides must then hold still); the values of the first
      iteration show in the next cycle.
    - ``step`` advances to the next iteration.
    - ``count`` (in), by level: at least 1. ``last`` (out), by level: it and all inside it are in their last iteration.
    - ``base`` (in) and ``value`` (out), by value. ``stride`` (in), by value and then by level.
    """

    def __init__(self, levels: Mapping[str, int], values: Mapping[str, tuple[int, Sequence[str]]]) -> None:
        self.levels, self.values = dict(levels), {name: (w, tuple(on)) for name, (w, on) in values.items()}
        width = {name: bits for name, (bits, _) in self.values.items()}
        super().__init__(
            {
                "start": In(1),
                "step": In(1),
                "count": In(each(self.levels, self.levels.__getitem__)),
                "last": Out(each(self.levels, lambda _: 1)),
                "base": In(each(width, width.__getitem__)),
                "stride": In(each(width, lambda name: each(self.values[name][1], lambda _: width[name]))),
                "value": Out(each(width, width.__getitem__)),
            }
        )

    def counts(self, fields: Fields) -> list[Any]:
        """Assignments that give every level the count ``LEVEL_n`` of an instruction's fields."""
        return [count.eq(fields[f"{level}_n"]) for level, count in by_name(self.count).items()]

    def strides(self, fields: Fields, *names: str) -> list[Any]:
        """Assignments that give every stride of these values the field ``VALUE_LEVEL``."""
        strides = by_name(self.stride)
        return [
            stride.eq(fields[f"{name}_{level}"]) for name in names for level, stride in by_name(strides[name]).items()
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        advance = self._counters(m)
        for name in self.values:
            self._value(m, name, advance)
        return m

    def _counters(self, m: Module) -> dict[str, Signal]:
        """Count each level; the result says which single level a step increments.

        Both that and ``last`` are registers: what they will be is worked out a step ahead.
        """
        advance: dict[str, Signal] = {}
        inner_last: Value = Const(1)
        inner_last_next: Value = Const(1)
        counts, lasts = by_name(self.count), by_name(self.last)
        for level, bits in reversed(self.levels.items()):
            count = counts[level]
            left = Signal(bits, name=f"left_{level}", reset_less=True)  # iterations behind the running one
            before_last, at_last, last, single = (
                Signal(name=f"{what}_{level}_now", reset_less=True)
                for what in ("before_last", "at_last", "last", "single")
            )
            at_last_next, last_next = (Signal(name=f"{what}_{level}_next") for what in ("at_last", "last"))
            advance[level] = Signal(name=f"advance_{level}", reset_less=True)
            m.d.comb += [
                lasts[level].eq(last),
                at_last_next.eq(Mux(inner_last, Mux(at_last, single, before_last), at_last)),
                last_next.eq(at_last_next & inner_last_next),
            ]
            with m.If(self.start):
                m.d.comb += at_last_next.eq(count == 1)
                m.d.sync += single.eq(count == 1)
            with m.If(self.start | (self.step & inner_last & at_last)):
                m.d.sync += [left.eq(count - 1), before_last.eq(count == 2)]
            with m.Elif(self.step & inner_last):
                m.d.sync += [left.eq(left - 1), before_last.eq(left == 2)]
            with m.If(self.start | self.step):
                m.d.sync += [
                    at_last.eq(at_last_next),
                    last.eq(last_next),
                    advance[level].eq(~last_next & inner_last_next),
                ]
            inner_last, inner_last_next = last, last_next
        return advance

    def _value(self, m: Module, name: str, advance: dict[str, Signal]) -> None:
        """One affine value: a register per level it depends on holds it as of that level's iteration."""
        width, on = self.values[name]
        at = {level: Signal(width, name=f"{name}_at_{level}", reset_less=True) for level in on}
        first, strides = by_name(self.base)[name], by_name(by_name(self.stride)[name])
        m.d.comb += by_name(self.value)[name].eq(at[on[-1]])
        base = Signal(width, name=f"{name}_base", reset_less=True)
        following = Signal(width, name=f"{name}_next")
        held, stride = Const(0), Const(0)
        origin = base
        for level in self.levels:  # `advance` is one-hot
            if level in on:
                stride = stride | Mux(advance[level], strides[level], 0)
                origin = at[level]
            held = held | Mux(advance[level], origin, 0)
        m.d.comb += following.eq(held + stride)
        with m.If(self.start):
            m.d.sync += [signal.eq(first) for signal in (base, *at.values())]
        with m.Elif(self.step):
            outer = list(self.levels)
            for level in on:
                reached = [advance[other] for other in outer[: outer.index(level) + 1]]
                with m.If(Cat(*reached).any()):
                    m.d.sync += at[level].eq(following)
