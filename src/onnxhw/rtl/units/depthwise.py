"""`DepthwiseUnit`: executes `Depthwise`: streams strips of activations under a window, into sums of its own."""

from typing import Any

from amaranth import Module
from amaranth.lib import wiring

from ...config import WINDOW
from ...isa.timing import ACT_READ, DEPTHWISE, MEMORY
from ...isa.units import Unit
from ..accumulator import WindowSums
from ..decode import Decoded
from ..delay import delay
from ..input_bounds import BOUNDS, with_bounds
from ..kernel_window import KernelWindow, WindowCounter
from ..loops import LoopNest
from .streaming import StreamingUnit

LEVELS = {"kh": 8, "kw": 8, "oh": 12, "ow": 12}
VALUES = with_bounds({"a": (16, ("kh", "kw", "oh", "ow")), "ih": (16, ("kh", "oh")), "iw": (16, ("kw", "ow"))})


class DepthwiseUnit(StreamingUnit):
    """One activation word per cycle; for each kh, kw a weight tile."""

    UNIT = Unit.DEPTHWISE

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.loops = loops = LoopNest(LEVELS, VALUES, apart=BOUNDS)
        m.submodules.window = window = KernelWindow(config)
        m.submodules.counter = counter = WindowCounter(config.depthwise)
        m.submodules.sums = sums = WindowSums(config)
        now, streaming = self._sequence(m, loops), self.status.busy
        target = self._place(m, loops, now, loops.last.oh, ACT_READ + DEPTHWISE - MEMORY, hit=counter.hit)
        m.d.comb += [
            counter.start.eq(loops.start),
            counter.step.eq(streaming),
            counter.last_column.eq(loops.last.ow),
            counter.last.eq(loops.last.oh),
            counter.stride_rows.eq(now.sh),
            counter.stride_columns.eq(now.sw),
            window.x.eq(self._operand(m, loops, now, now.group, config.depthwise_lanes)),
            window.column.eq(delay(m, counter.column, ACT_READ - MEMORY, name="column", reset=False)),
            window.valid.eq(delay(m, streaming, ACT_READ, name="pixel")),
            window.swap.eq(delay(m, self.tiles.taken, ACT_READ, name="swap")),
            window.weights.eq(self.tiles.weights),
            window.load.eq(self.tiles.enable),
            sums.i_target.eq(target),
            *(sums.i_sums[d].eq(window.sums[d]) for d in range(config.depthwise_lanes)),
        ]
        wiring.connect(m, sums.drain, wiring.flipped(self.drain))
        return m

    def _sequence(self, m: Module, loops: LoopNest) -> Decoded:
        """Issue instructions and pixels; returns the running instruction."""
        (now, *_), strides = self._issue(m, loops, loops.last.kh), loops.stride
        m.d.comb += [
            loops.base.a.eq(now.act_base),
            loops.base.ih.eq(now.ih0),
            loops.base.iw.eq(now.iw0),
            strides.a.kh.eq(now.a_kh),
            strides.a.oh.eq(now.a_oh),
            *(stride.eq(WINDOW) for stride in (strides.a.kw, strides.ih.kh, strides.iw.kw)),
            *(stride.eq(1) for stride in (strides.a.ow, strides.ih.oh, strides.iw.ow)),
        ]
        return now
