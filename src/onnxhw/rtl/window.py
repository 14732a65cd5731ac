"""`WindowUnit`: executes `Depthwise`: streams strips of activations under a window, into sums of its own."""

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import WINDOW, HwConfig, bits_for
from ..isa.instructions import Depthwise
from ..isa.timing import ACT_READ, DEPTHWISE, MEMORY
from .accumulator import WindowSums, window_target
from .decode import Decoded
from .delay import delay
from .depthwise import DepthwiseUnit, WindowCounter
from .loops import LoopNest
from .operand import arrive, issue, operand, ports

LEVELS = {"kh": 8, "kw": 8, "oh": 12, "ow": 12}
VALUES = {"a": (16, ("kh", "kw", "oh", "ow")), "ih": (16, ("kh", "oh")), "iw": (16, ("kw", "ow"))}


class WindowUnit(wiring.Component):
    """One activation word per cycle; for each kh, kw a weight tile: `loaded` and `taken`.

    ``streaming`` shows a pixel being issued, ``starved`` a tile that waits for its weights. `done` pulses
    ``array_latency - 1`` cycles after the last pixel. ``drain_row`` -> ``drain`` (D sums) takes `DRAIN_READ` cycles.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                **ports(Depthwise, config),
                "enable": In(1),
                "drain_row": In(bits_for(config.window_depth)),
                "drain": Out(config.depthwise_lanes * config.sum_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.loops = loops = LoopNest(LEVELS, VALUES)
        m.submodules.window = window = DepthwiseUnit(config)
        m.submodules.counter = counter = WindowCounter(config.depthwise)
        m.submodules.sums = sums = WindowSums(config)
        now = Decoded(Depthwise, self._sequence(m, loops))

        within = Signal()
        m.d.comb += [
            within.eq((loops.ih < now.in_h) & (loops.iw < now.in_w)),
            self.read.en.eq(self.streaming & within),
            self.read.addr.eq(loops.a),
            counter.start.eq(loops.start),
            counter.step.eq(self.streaming),
            counter.last_column.eq(loops.last_ow),
            counter.last.eq(loops.last_oh),
            counter.stride_rows.eq(now.sh),
            counter.stride_columns.eq(now.sw),
            window.x.eq(operand(m, self.word, within, now.pad, now.group, config.depthwise_lanes)),
            window.column.eq(delay(m, counter.column, ACT_READ - MEMORY, name="column", reset=False)),
            window.valid.eq(delay(m, self.streaming, ACT_READ, name="pixel")),
            window.swap.eq(delay(m, self.taken, ACT_READ, name="swap")),
            window.weights.eq(self.weights),
            window.load.eq(self.enable),
            sums.i_target.eq(arrive(m, self._target(m, now, loops, counter.hit), ACT_READ + DEPTHWISE - MEMORY)),
            *(sums.i_sums[d].eq(window.sums[d]) for d in range(config.depthwise_lanes)),
            sums.drain_row.eq(self.drain_row),
            self.drain.eq(sums.drain),
        ]
        return m

    def _sequence(self, m: Module, loops: LoopNest) -> Signal:
        """Issue instructions and pixels; returns the bits of the running instruction."""
        bits, _, _ = issue(m, self, loops, loops.last_kh, 1)
        now = Decoded(Depthwise, bits)
        m.d.comb += [
            loops.base_a.eq(now.act_base),
            loops.base_ih.eq(now.ih0),
            loops.base_iw.eq(now.iw0),
            loops.a_kh.eq(now.a_kh),
            loops.a_oh.eq(now.a_oh),
            *(getattr(loops, name).eq(WINDOW) for name in ("a_kw", "ih_kh", "iw_kw")),
            *(getattr(loops, name).eq(1) for name in ("a_ow", "ih_oh", "iw_ow")),
            *loops.counts(now),
        ]
        return bits

    def _target(self, m: Module, now: Decoded, loops: LoopNest, hit: Value) -> Any:
        """The row of the window that the pixel being issued completes, if it does."""
        tag = Signal(window_target(self.config))
        row = Signal(15, reset_less=True)
        first = Signal()  # the first window of the kernel
        m.d.comb += [tag.valid.eq(self.streaming & hit), tag.row.eq(row), tag.replace.eq(first)]
        with m.If(self.streaming):
            m.d.sync += row.eq(Mux(loops.last_oh, now.acc_base, row + hit))
            with m.If(loops.last_oh):
                m.d.sync += first.eq(0)
        with m.If(loops.start):
            m.d.sync += [row.eq(now.acc_base), first.eq(1)]
        return tag
