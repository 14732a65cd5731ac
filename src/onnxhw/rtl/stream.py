"""`ArrayUnit`: executes `Array`: streams activations through the systolic array into the accumulators."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Array
from ..isa.timing import ACT_READ, MEMORY, MIN_TILE, array_pipeline
from .accumulator import Accumulators, target
from .array import SystolicArray
from .decode import Decoded
from .delay import delay
from .loops import LoopNest
from .operand import arrive, issue, operand, ports

LEVELS = {"kt": 12, "sub": 6, "kh": 8, "kw": 8, "nt": 12, "oh": 12, "ow": 12}
VALUES = {
    "a": (16, ("kt", "kh", "kw", "oh", "ow")),
    "ih": (16, ("kh", "oh")),
    "iw": (16, ("kw", "ow")),
    "sub": (6, ("sub",)),
}


class ArrayUnit(wiring.Component):
    """One activation word per cycle; for each kt, sub, kh, kw, nt a weight tile: `loaded` and `taken`.

    ``streaming`` shows a pixel being issued, ``starved`` a tile that waits for its weights. `done` pulses
    ``array_latency - 1`` cycles after the last pixel.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                **ports(Array, config),
                "row_enable": In(config.tile_words),
                "drain_bank": In(1),
                "drain_row": In(bits_for(config.acc_depth)),
                "drain": Out(config.cols * config.acc_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        m.submodules.array = array = SystolicArray(config)
        m.submodules.accumulators = accumulators = Accumulators(config)
        m.submodules.loops = loops = LoopNest(LEVELS, VALUES)
        now = Decoded(Array, self._sequence(m, loops))

        within = Signal()
        m.d.comb += [
            within.eq((loops.ih < now.in_h) & (loops.iw < now.in_w)),
            self.read.en.eq(self.streaming & within),
            self.read.addr.eq(loops.a),
            array.x.eq(operand(m, self.word, within, now.pad, loops.sub, config.rows)),
            array.swap.eq(delay(m, self.taken, ACT_READ, name="swap")),
            array.weights.eq(self.weights),
            array.row_enable.eq(self.row_enable),
            accumulators.drain_bank.eq(self.drain_bank),
            accumulators.drain_row.eq(self.drain_row),
            self.drain.eq(accumulators.drain),
        ]
        tag = self._target(m, now, loops)
        m.d.comb += accumulators.i_target.eq(arrive(m, tag, ACT_READ + array_pipeline(config) - MEMORY))
        for c in range(config.cols):
            m.d.comb += accumulators.i_sums[c].eq(array.sums[c])
        return m

    def _sequence(self, m: Module, loops: LoopNest) -> Signal:
        """Issue instructions and pixels; returns the bits of the running instruction."""
        cooling = Signal(range(MIN_TILE))  # cycles until another tile may start
        dense = Signal()  # a row is not met again within MIN_TILE cycles
        may_start = Signal()
        m.d.comb += may_start.eq(cooling == 0)
        bits, starting, last = issue(m, self, loops, loops.last_kt, 0, may_start)
        now = Decoded(Array, bits)
        with m.If(cooling != 0):
            m.d.sync += cooling.eq(cooling - 1)
        with m.If(self.taken & (~dense | last)):
            m.d.sync += cooling.eq(MIN_TILE - 1)
        with m.If(starting):
            m.d.sync += dense.eq(self._dense(now))

        m.d.comb += [
            loops.base_a.eq(now.act_base),
            loops.base_ih.eq(now.ih0),
            loops.base_iw.eq(now.iw0),
            loops.base_sub.eq(0),
            loops.sub_sub.eq(1),
            *loops.strides("a", now),
            *(getattr(loops, name).eq(now[name]) for name in ("ih_kh", "ih_oh", "iw_kw", "iw_ow")),
            *loops.counts(now),
        ]
        return bits

    @staticmethod
    def _dense(now: Decoded) -> Value:
        """``nt_n * oh_n * ow_n >= MIN_TILE``, which is 4: one of the counts is, or two of them are more than 1."""
        counts = now.nt_n, now.oh_n, now.ow_n
        large = Cat(count[2:].any() for count in counts).any()
        nt, oh, ow = (count[1:].any() for count in counts)
        return large | (nt & oh) | (nt & ow) | (oh & ow)

    def _target(self, m: Module, now: Decoded, loops: LoopNest) -> Any:
        """The accumulator row of the pixel being issued."""
        tag = Signal(target(self.config))
        row = Signal(15, reset_less=True)
        first = Signal()  # the first tap and channels
        m.d.comb += [
            tag.valid.eq(self.streaming),
            tag.bank.eq(now.acc_bank),
            tag.row.eq(row),
            tag.replace.eq(first & ~now.accumulate),
        ]
        with m.If(self.streaming):
            m.d.sync += row.eq(Mux(loops.last_nt, now.acc_base, row + 1))
            with m.If(loops.last_nt):
                m.d.sync += first.eq(0)
        with m.If(loops.start):
            m.d.sync += [row.eq(now.acc_base), first.eq(1)]
        return tag

