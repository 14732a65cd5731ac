"""`ArrayUnit`: executes `Array`: streams activations through the systolic array into the accumulators."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Array
from ..isa.timing import (
    ACT_READ,
    MEMORY,
    MIN_TILE,
    array_latency,
    array_pipeline,
    settle,
    shadow_ready,
    sums_pipeline,
)  # fmt: skip
from .accumulator import Accumulators, target
from .array import SystolicArray
from .decode import Decoded
from .delay import delay
from .depthwise import DepthwiseUnit, WindowCounter
from .loops import LoopNest
from .memory import read_request

LEVELS = {"kt": 12, "sub": 6, "kh": 8, "kw": 8, "nt": 12, "oh": 12, "ow": 12}
VALUES = {
    "a": (16, ("kt", "kh", "kw", "oh", "ow")),
    "ih": (16, ("kh", "oh")),
    "iw": (16, ("kw", "ow")),
    "sub": (6, ("sub",)),
}


class ArrayUnit(wiring.Component):
    """One activation word per cycle; for each kt, sub, kh, kw, nt a weight tile: `loaded` and `taken`, or for the
    depthwise unit `loaded_depthwise` and `taken_depthwise`.

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
                "loaded_depthwise": In(1),
                "taken": Out(1),
                "taken_depthwise": Out(1),
                "weights": In(8 * config.weight_word),
                "row_enable": In(config.tile_words),
                "depthwise_enable": In(1),
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
            array.x.eq(self._operand(m, now, loops, within, config.rows)),
            array.swap.eq(delay(m, self.taken, ACT_READ, name="swap")),
            array.weights.eq(self.weights),
            array.row_enable.eq(self.row_enable),
            accumulators.drain_bank.eq(self.drain_bank),
            accumulators.drain_row.eq(self.drain_row),
            self.drain.eq(accumulators.drain),
        ]
        if config.depthwise:
            self._both(m, now, loops, within, array, accumulators)
        else:
            tag = self._target(m, now, loops, 1)
            m.d.comb += accumulators.i_target.eq(_arrive(m, tag, ACT_READ + array_pipeline(config) - MEMORY))
            for c in range(config.cols):
                m.d.comb += accumulators.i_sums[c].eq(array.sums[c])
        return m

    def _depthwise(self, now: Decoded) -> Value:
        """Whether the running instruction is the depthwise unit's."""
        return now.depthwise if self.config.depthwise else Const(0)

    def _both(
        self, m: Module, now: Decoded, loops: LoopNest, within: Signal, array: SystolicArray, accumulators: Accumulators
    ) -> None:
        """The depthwise unit beside the array: its pixels, and one way for the sums of both."""
        config = self.config
        m.submodules.depthwise = unit = DepthwiseUnit(config)
        m.submodules.windows = windows = WindowCounter(config.depthwise)
        same = config.depthwise_lanes == config.rows
        m.d.comb += [
            windows.start.eq(loops.start),
            windows.step.eq(self.streaming),
            windows.last_column.eq(loops.last_ow),
            windows.last.eq(loops.last_oh),
            windows.stride_rows.eq(now.dw_sh),
            windows.stride_columns.eq(now.dw_sw),
            unit.x.eq(array.x if same else self._operand(m, now, loops, within, config.depthwise_lanes)),
            unit.column.eq(delay(m, windows.column, ACT_READ + 1 - MEMORY, name="column", reset=False)),
            unit.valid.eq(delay(m, self.streaming & now.depthwise, ACT_READ + 1, name="pixel")),
            unit.swap.eq(delay(m, self.taken_depthwise, ACT_READ, name="swap_depthwise")),
            unit.weights.eq(self.weights),
            unit.load.eq(self.depthwise_enable),
        ]
        # Targets of depthwise sums overtake: they join those of the array `settle` cycles later.
        tag, early = self._target(m, now, loops, ~now.depthwise | windows.hit), Signal(target(config))
        joined = Signal(target(config))
        slow, fast = (ACT_READ + sums_pipeline(config, depthwise) - MEMORY for depthwise in (0, 1))
        m.d.comb += early.eq(tag)
        with m.If(now.depthwise):
            m.d.comb += early.valid.eq(0)
        late = _arrive(m, early, slow - fast)
        overtakes = tag.valid & now.depthwise
        m.d.comb += joined.eq(Mux(overtakes, tag.as_value(), late.as_value()))
        m.d.comb += joined.valid.eq(overtakes | late.valid)
        own = delay(m, overtakes, fast + MEMORY, name="depthwise")  # a cycle before the sums arrive
        m.d.comb += accumulators.i_target.eq(_arrive(m, joined, fast))
        for c in range(config.cols):
            slack = sums_pipeline(config) - array_pipeline(config) - 1
            of_array = delay(m, array.sums[c], slack, name=f"slack_{c}", reset=False)
            total = Signal(signed(config.sum_bits), name=f"sum_{c}", reset_less=True)
            m.d.sync += total.eq(Mux(own, unit.sums[c] if c < config.depthwise_lanes else 0, of_array))
            m.d.comb += accumulators.i_sums[c].eq(total)

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
        may_start, takes = Signal(), Signal()
        m.d.comb += [
            may_start.eq((cooling == 0) & self._settled(m, now)),
            self.streaming.eq(active & (~at_tile | (ready & may_start))),
            self.starved.eq(active & at_tile & may_start & ~ready),
            takes.eq(self.streaming & at_tile),
            self.taken.eq(takes & ~self._depthwise(now)),
            self.taken_depthwise.eq(takes & self._depthwise(now)),
            last.eq(self.streaming & loops.last_kt),
            self.free.eq(~busy),
            self.take.eq(self.valid & self.free),
            loops.start.eq(starting),
            loops.step.eq(self.streaming),
            self.done.eq(self._completed(m, now, last)),
        ]
        with m.If(cooling != 0):
            m.d.sync += cooling.eq(cooling - 1)
        with m.If(takes):
            m.d.sync += [ready.eq(0), at_tile.eq(0)]
            with m.If(~dense | last):
                m.d.sync += cooling.eq(MIN_TILE - 1)
        with m.If(delay(m, self.loaded, shadow_ready(self.config) - 1, name="loaded")):
            m.d.sync += ready.eq(1)
        if self.config.depthwise:
            with m.If(delay(m, self.loaded_depthwise, shadow_ready(self.config, 1) - 1, name="loaded_depthwise")):
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
            loops.base_sub.eq(Mux(self._depthwise(now), now.dw_group, 0)),
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

    def _settled(self, m: Module, now: Decoded) -> Value:
        """Whether the sums of a tile that starts will stay behind those of the tiles before."""
        wait = settle(self.config)
        if not wait:
            return Const(1)
        left = Signal(range(wait), reset_less=True)
        settled = Signal(init=1)
        with m.If(self.streaming & ~now.depthwise):
            m.d.sync += [left.eq(wait - 1), settled.eq(0)]
        with m.Elif(~settled):
            m.d.sync += [left.eq(left - 1), settled.eq(left == 0)]
        return ~now.depthwise | settled

    def _completed(self, m: Module, now: Decoded, last: Value) -> Value:
        """The last pixel's sums can be read."""
        if not self.config.depthwise:
            return delay(m, last, array_latency(self.config) - 1, name="done")
        done = delay(m, last & ~now.depthwise, settle(self.config), name="early") | (last & now.depthwise)
        return delay(m, done, array_latency(self.config, 1) - 1, name="done")

    def _operand(self, m: Module, now: Decoded, loops: LoopNest, within: Signal, count: int) -> Signal:
        """`count` bytes from the word read, or the pad value: at their user `ACT_READ` + 1 cycles after the issue."""
        groups = -(-self.config.word // count)
        within_4 = delay(m, within, ACT_READ, name="within")
        pad_4 = delay(m, now.pad, ACT_READ, name="pad", reset=False)
        sub_4 = delay(m, loops.sub, ACT_READ, name="sub", reset=False)
        lanes = Signal(8 * count * groups, name=f"lanes_{count}")
        m.d.comb += lanes.eq(self.word)
        group = lanes.word_select(sub_4[: bits_for(groups)], 8 * count)
        x_5 = Signal(8 * count, name=f"x_{count}", reset_less=True)
        m.d.sync += x_5.eq(Mux(within_4, group, pad_4.replicate(count)))
        return x_5

    def _target(self, m: Module, now: Decoded, loops: LoopNest, counts: Value | int) -> Any:
        """The accumulator row of the pixel being issued, if its sums count."""
        tag = Signal(target(self.config))
        row = Signal(15, reset_less=True)
        first = Signal()  # the first tap and channels
        m.d.comb += [
            tag.valid.eq(self.streaming & counts),
            tag.bank.eq(now.acc_bank),
            tag.row.eq(row),
            tag.replace.eq(first & ~now.accumulate),
        ]
        with m.If(self.streaming):
            m.d.sync += row.eq(Mux(loops.last_nt, now.acc_base, row + counts))
            with m.If(loops.last_nt):
                m.d.sync += first.eq(0)
        with m.If(loops.start):
            m.d.sync += [row.eq(now.acc_base), first.eq(1)]
        return tag


def _arrive(m: Module, tag: Any, cycles: int) -> Any:
    """A target `cycles` later."""
    later = Signal(tag.shape())
    m.d.comb += later.eq(delay(m, tag.as_value(), cycles, name="target", reset=False))
    m.d.comb += later.valid.eq(delay(m, tag.valid, cycles, name="valid"))
    return later
