"""Nested loops in hardware: counters, and values that are affine in them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .cells import DuplicatedRegister
from .decode import Decoded
from .ports import by_name, each

Fields = Decoded | Mapping[str, Value]
"""Fields of an instruction by name."""


class LoopNest(wiring.Component):
    """Nested loops, outermost level first; one iteration of the innermost per `step`.

    `levels` maps a level's name to the width of its count. `values` maps a value's name to ``(width, levels it
    depends on)``; it is ``base + sum(index[level] * stride[level])`` modulo ``2**width``. Values of `apart` are used
    elsewhere than the others: what a step does to them is told by registers of their own. Members:

    - ``begins`` (in) asks for ``start`` (out), a cycle later. That loads bases and counts (they and the strides must
      then hold still); the values of the first iteration show in the next cycle. Each value has a register of its own
      for it: it chooses in all of the value's bits. So have the counters: who asks for ``start`` may lie far away.
    - ``step`` advances to the next iteration. All are stepped through, or the nest is reset, before another ``start``.
    - ``moves`` is ``start | step``, which all registers ask for: a register, of a user who knows it a cycle ahead.
    - ``count`` (in), by level: at least 1. ``ahead`` (in), by level: the same in the two cycles before ``start``.
      ``last`` (out), by level: it and all inside it are in their last iteration.
    - ``base`` (in) and ``value`` (out), by value. ``stride`` (in), by value and then by level.
    """

    def __init__(
        self, levels: Mapping[str, int], values: Mapping[str, tuple[int, Sequence[str]]], apart: Collection[str] = ()
    ) -> None:
        self.apart = apart
        self.levels, self.values = dict(levels), {name: (w, tuple(on)) for name, (w, on) in values.items()}
        width = {name: bits for name, (bits, _) in self.values.items()}
        super().__init__(
            {
                "begins": In(1),
                "start": Out(1),
                "step": In(1),
                "moves": In(1),
                "count": In(each(self.levels, self.levels.__getitem__)),
                "ahead": In(each(self.levels, self.levels.__getitem__)),
                "last": Out(each(self.levels, lambda _: 1)),
                "base": In(each(width, width.__getitem__)),
                "stride": In(each(width, lambda name: each(self.values[name][1], lambda _: width[name]))),
                "value": Out(each(width, width.__getitem__)),
            }
        )

    def counts(self, fields: Fields, following: Fields) -> list[Any]:
        """Assignments that give every level the count ``LEVEL_n`` of an instruction's fields; `following` are
        what they will be in the cycle of ``start``, in the two before."""
        return [
            port.eq(source[f"{level}_n"])
            for ports, source in ((self.count, fields), (self.ahead, following))
            for level, port in by_name(ports).items()
        ]

    def strides(self, fields: Fields, *names: str) -> list[Any]:
        """Assignments that give every stride of these values the field ``VALUE_LEVEL``."""
        strides = by_name(self.stride)
        return [
            stride.eq(fields[f"{name}_{level}"]) for name in names for level, stride in by_name(strides[name]).items()
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.starts = starts = DuplicatedRegister(1, len(self.values) + 1)
        m.d.comb += starts.i.eq(self.begins)
        m.d.sync += self.start.eq(self.begins)
        *of_values, of_counters = starts.o
        steps = self._counters(m, of_counters)
        for name, start in zip(self.values, of_values, strict=True):
            self._value(m, name, start, steps)
        return m

    def _counters(self, m: Module, start: Value) -> "_Steps":
        """Count each level.

        What a step does, and ``last``, are registers: what they will be is worked out a step ahead, and for the start
        in the two cycles before.
        """
        steps = _Steps(self, m, start)
        inner_last: Value = Const(1)
        inner_last_next: Value = Const(1)
        inner_last_step: Value = Const(1)
        inner_one: Value = Const(1)
        counts, lasts, ahead = by_name(self.count), by_name(self.last), by_name(self.ahead)
        for level, bits in reversed(self.levels.items()):
            count = counts[level]
            left = Signal(bits, name=f"left_{level}", reset_less=True)  # iterations behind the running one
            before_last, at_last, last, single, double = (
                Signal(name=f"{what}_{level}_now", reset_less=True)
                for what in ("before_last", "at_last", "last", "single", "double")
            )
            # The counts ahead: a cycle before the start, and at it; this one and all inside it are one.
            one_before, two_before, is_one, is_two, all_one = (
                Signal(name=f"{what}_{level}", reset_less=True)
                for what in ("one_before", "two_before", "is_one", "is_two", "all_one")
            )
            inner_one = inner_one & one_before
            m.d.sync += [
                one_before.eq(ahead[level] == 1),
                two_before.eq(ahead[level] == 2),
                is_one.eq(one_before),
                is_two.eq(two_before),
                all_one.eq(inner_one),
            ]
            at_last_next, last_next = (Signal(name=f"{what}_{level}_next") for what in ("at_last", "last"))
            steps.reached[level], steps.reached_next[level], steps.last_next[level] = (
                inner_last, inner_last_next, last_next,
            )  # fmt: skip
            m.d.comb += [
                lasts[level].eq(last),
                at_last_next.eq(Mux(inner_last, Mux(at_last, single, before_last), at_last)),
                last_next.eq(Mux(start, all_one, at_last_next & inner_last_step)),
            ]
            inner_last_step = inner_last_step & at_last_next
            with m.If(start):
                m.d.sync += [single.eq(is_one), double.eq(is_two)]
            with m.If(self.moves & (start | inner_last)):
                m.d.sync += [
                    left.eq(Mux(start | at_last, count - 1, left - 1)),
                    before_last.eq(Mux(start, is_two, Mux(at_last, double, left == 2))),
                ]
            with m.If(self.moves):
                m.d.sync += [at_last.eq(Mux(start, is_one, at_last_next)), last.eq(last_next)]
            inner_last, inner_last_next = last, last_next
        return steps

    def _value(self, m: Module, name: str, start: Value, steps: "_Steps") -> None:
        """One affine value: a register per level it depends on holds it as of that level's iteration.

        A step adds the stride of the level that it increments to the register of that level, or of the next one outside
        of it that has one; and so the start adds nothing to the base. The innermost register alone takes the sum: the
        others have it from there, a cycle later, and a step that would need one of them sooner takes the innermost.
        """
        width, on = self.values[name]
        at = {level: Signal(width, name=f"{name}_at_{level}", reset_less=True) for level in on}
        first, strides = by_name(self.base)[name], by_name(by_name(self.stride)[name])
        innermost = at[on[-1]]
        m.d.comb += by_name(self.value)[name].eq(innermost)
        base = Signal(width, name=f"{name}_base", reset_less=True)
        following = Signal(width, name=f"{name}_next")
        stride: Value = Const(0)
        apart = name in self.apart
        levels = list(self.levels)
        for level in on:
            stride = stride | Mux(steps.increments(level, level, apart), strides[level], 0)
        begins = [*(levels.index(level) for level in on), len(levels)]
        held: Value = Mux(start, first, 0)
        if begins[0] > 0:
            held = held | Mux(steps.increments(levels[0], levels[begins[0] - 1], apart), base, 0)
        ranges = {level: (level, levels[end - 1]) for level, end in zip(on, begins[1:], strict=True)}
        for level, register in at.items():
            held = held | Mux(steps.origin(level, ranges, apart), register, 0)
        m.d.comb += following.eq(held + stride)
        with m.If(start):
            m.d.sync += base.eq(first)
        with m.If(self.moves & (start | steps.reached[on[-1]])):
            m.d.sync += innermost.eq(following)
        for level in on[:-1]:
            with m.If(steps.reached_late(level)):
                m.d.sync += at[level].eq(innermost)


class _Steps:
    """What a step does to the levels of a nest.

    `reached` tells by level that a step increments it or one outside of it; `reached_next` and `last_next` what that
    and ``last`` will be after the step.
    """

    def __init__(self, nest: LoopNest, m: Module, start: Value) -> None:
        self.nest, self.m, self.start = nest, m, start
        self.reached, self.reached_next, self.last_next = dict[str, Value](), dict[str, Value](), dict[str, Value]()
        self.registers = dict[tuple[str, ...], Value]()

    def increments(self, outer: str, inner: str, apart: bool) -> Value:
        """A register: the next step increments one of the levels from `outer` to `inner`. Before a start it is 0: the
        step from the last iteration increments none."""
        names = outer if outer == inner else f"{outer}_to_{inner}"
        return self._ahead(("increments", names), self._will_increment(outer, inner), apart)

    def origin(self, level: str, ranges: Mapping[str, tuple[str, str]], apart: bool) -> Value:
        """A register: the next step starts from the value that the register of `level` holds. `ranges` has the levels,
        outer and inner, whose increment starts from each register's, and all that begin at the innermost of them. If
        the step that is taken now reaches a level its register follows late, and the innermost one stands in for it."""
        *outer, innermost = ranges
        if level != innermost:
            wanted = self._will_increment(*ranges[level]) & ~self._reaches(level)
            return self._ahead(("from", *ranges[level]), wanted, apart)
        chosen: Value = self._will_increment(*ranges[level])
        for other in outer:
            chosen = chosen | (self._will_increment(*ranges[other]) & self._reaches(other))
        return self._ahead(("from_innermost_of", *ranges), chosen, apart)

    def reached_late(self, level: str) -> Value:
        """A register: the step before, or the start, reached a level."""
        register = self.registers.get(key := ("reached", level))
        if register is None:
            register = self.registers[key] = Signal(name=f"reached_{level}_late")
            self.m.d.sync += register.eq(self.nest.moves & self._reaches(level))
        return register

    def _reaches(self, level: str) -> Value:
        return self.start | self.reached[level]

    def _will_increment(self, outer: str, inner: str) -> Value:
        """What `increments` will be after this step."""
        goes_on = self.start | ~by_name(self.nest.last)[next(iter(self.nest.levels))]
        return self.reached_next[inner] & ~self.last_next[outer] & goes_on

    def _ahead(self, key: tuple[str, ...], value: Value, apart: bool) -> Value:
        """A register that a start or a step gives a new value, one for each key, and another one for values that are
        `apart`: it holds the opposite, so that synthesis does not merge them."""
        key = ("not", *key) if apart else key
        found = self.registers.get(key)
        if found is None:
            register = Signal(1, name="_".join(key), init=apart)
            with self.m.If(self.nest.moves):
                self.m.d.sync += register.eq(~value if apart else value)
            found = self.registers[key] = ~register if apart else register
        return found
