"""`ArrayUnit`: executes `Array`: streams activations through the systolic array into the accumulators."""

from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring

from ...isa.timing import ACT_READ, MEMORY, MIN_TILE, array_pipeline
from ...isa.units import Unit
from ..accumulator import Accumulators
from ..decode import Decoded
from ..delay import delay
from ..input_bounds import BOUNDS, with_bounds
from ..loops import LoopNest
from ..systolic import SystolicArray
from .streaming import StreamingUnit

LEVELS = {"kt": 12, "sub": 6, "kh": 8, "kw": 8, "nt": 12, "oh": 12, "ow": 12}
VALUES = with_bounds({
    "a": (16, ("kt", "kh", "kw", "oh", "ow")),
    "ih": (16, ("kh", "oh")),
    "iw": (16, ("kw", "ow")),
    "sub": (6, ("sub",)),
})  # fmt: skip


class ArrayUnit(StreamingUnit):
    """One activation word per cycle; for each kt, sub, kh, kw, nt a weight tile."""

    UNIT = Unit.ARRAY

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.array = array = SystolicArray(config)
        m.submodules.accumulators = accumulators = Accumulators(config)
        m.submodules.loops = loops = LoopNest(LEVELS, VALUES, apart=BOUNDS)
        now = self._sequence(m, loops)
        target = self._place(
            m, loops, now, loops.last.nt, ACT_READ + array_pipeline(config) - MEMORY, accumulate=now.accumulate
        )
        m.d.comb += [
            array.x.eq(self._operand(m, loops, now, loops.value.sub, config.rows)),
            array.swap.eq(delay(m, self.tiles.taken, ACT_READ, name="swap")),
            array.weights.eq(self.tiles.weights),
            array.row_enable.eq(self.tiles.enable),
            accumulators.i_target.eq(target),
            *(accumulators.i_sums[c].eq(array.sums[c]) for c in range(config.cols)),
        ]
        wiring.connect(m, accumulators.drain, wiring.flipped(self.drain))
        return m

    def _sequence(self, m: Module, loops: LoopNest) -> Decoded:
        """Issue instructions and pixels; returns the running instruction."""
        cooling = Signal(range(MIN_TILE))  # cycles until another tile may start
        dense = Signal()  # a row is not met again within MIN_TILE cycles
        cools, calm = Signal(), Signal()
        now, starting, last = self._issue(m, loops, loops.last.kt, calm)
        m.d.comb += [cools.eq(self.tiles.taken & (~dense | last)), calm.eq(~cools & (cooling <= 1))]
        with m.If(cooling != 0):
            m.d.sync += cooling.eq(cooling - 1)
        with m.If(cools):
            m.d.sync += cooling.eq(MIN_TILE - 1)
        with m.If(starting):
            m.d.sync += dense.eq(self._dense(now))

        m.d.comb += [
            loops.base.a.eq(now.act_base),
            loops.base.ih.eq(now.ih0),
            loops.base.iw.eq(now.iw0),
            loops.base.sub.eq(0),
            loops.stride.sub.sub.eq(1),
            *loops.strides(now, "a", "ih", "iw"),
        ]
        return now

    @staticmethod
    def _dense(now: Decoded) -> Value:
        """``nt_n * oh_n * ow_n >= MIN_TILE``, which is 4: one of the counts is, or two of them are more than 1."""
        counts = now.nt_n, now.oh_n, now.ow_n
        large = Cat(count[2:].any() for count in counts).any()
        nt, oh, ow = (count[1:].any() for count in counts)
        return large | (nt & oh) | (nt & ow) | (oh & ow)
