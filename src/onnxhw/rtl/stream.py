"""`ArrayUnit`: executes `Array`: streams activations through the systolic array into the accumulators."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Array
from ..isa.timing import ACT_READ, MEMORY, MIN_TILE, array_latency, array_pipeline, shadow_ready
from .accumulator import Accumulators, target
from .array import SystolicArray
from .decode import Decoded
from .delay import delay
from .loops import LoopNest
from .memory import read_request
from .operand import arrive, operand

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
                "valid": In(1),
                "bits": In(32 * Array.words()),
                "free": Out(1),
                "take": Out(1),
                "read": Out(read_request()),
                "word": In(8 * config.word),
                "loaded": In(1),
                "taken": Out(1),
                "weights": In(8 * config.weight_word),
                "row_enable": In(config.tile_words),
                "drain_bank": In(1),
                "drain_row": In(bits_for(config.acc_depth)),
                "drain": Out(config.cols * config.acc_bits),
                "done": Out(1),
                "streaming": Out(1),
                "starved": Out(1),
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
        bits = Signal.like(self.bits, reset_less=True)
        busy, starting = Signal(), Signal()
        active = Signal()  # the loops hold the running instruction
        ready = Signal()  # the next tile's weights stand in the shadow registers
        cooling = Signal(range(MIN_TILE))  # cycles until another tile may start
        dense = Signal()  # a row is not met again within MIN_TILE cycles
        at_tile = Signal()
        last = Signal()
        now = Decoded(Array, bits)
        may_start = Signal()
        m.d.comb += [
            may_start.eq(cooling == 0),
            self.streaming.eq(active & (~at_tile | (ready & may_start))),
            self.starved.eq(active & at_tile & may_start & ~ready),
            self.taken.eq(self.streaming & at_tile),
            last.eq(self.streaming & loops.last_kt),
            self.free.eq(~busy),
            self.take.eq(self.valid & self.free),
            loops.start.eq(starting),
            loops.step.eq(self.streaming),
            self.done.eq(delay(m, last, array_latency(self.config) - 1, name="done")),
        ]
        with m.If(cooling != 0):
            m.d.sync += cooling.eq(cooling - 1)
        with m.If(self.taken):
            m.d.sync += [ready.eq(0), at_tile.eq(0)]
            with m.If(~dense | last):
                m.d.sync += cooling.eq(MIN_TILE - 1)
        with m.If(delay(m, self.loaded, shadow_ready(self.config) - 1, name="loaded")):
            m.d.sync += ready.eq(1)
        with m.If(self.streaming & loops.last_oh):
            m.d.sync += at_tile.eq(1)
        m.d.sync += starting.eq(self.take)
        with m.If(last):
            m.d.sync += [busy.eq(0), active.eq(0)]
        with m.If(self.take):
            m.d.sync += [busy.eq(1), bits.eq(self.bits)]
        with m.If(starting):
            m.d.sync += [active.eq(1), at_tile.eq(1), dense.eq(self._dense(now))]

        m.d.comb += [
            loops.base_a.eq(now.act_base),
            loops.base_ih.eq(now.ih0),
            loops.base_iw.eq(now.iw0),
            loops.base_sub.eq(0),
            loops.sub_sub.eq(1),
            *(getattr(loops, f"a_{level}").eq(getattr(now, f"a_{level}")) for level in VALUES["a"][1]),
            *(getattr(loops, name).eq(getattr(now, name)) for name in ("ih_kh", "ih_oh", "iw_kw", "iw_ow")),
            *(getattr(loops, f"n_{level}").eq(getattr(now, f"{level}_n")) for level in LEVELS),
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

