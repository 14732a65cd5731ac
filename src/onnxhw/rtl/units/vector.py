"""`VectorUnit`: executes `Vector`: drain, pooling, addition, multiplication, sums of products, tables."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value

from ...config import HwConfig, bits_for
from ...isa.early_instructions import most_early
from ...isa.external_instructions import kinds
from ...isa.fields import WORD_BITS
from ...isa.instructions import VectorOp
from ...isa.memory import Space, param_shape
from ...isa.timing import (
    ACT_READ,
    DRAIN_READ,
    MEMORY,
    REQUANTIZE,
    drain_later,
    results_later,
    vector_issue_interval,
    vector_latency,
)
from ...isa.units import Unit
from ..cells import BlockRam
from ..decode import Decoded
from ..delay import delay, early_delay
from ..input_bounds import BOUNDS, with_bounds, within_input
from ..loops import LoopNest
from ..ports import UnitComponent, by_name
from ..tables import Tables
from ..window_reduce import WindowReduce
from .lanes import add_lanes

LEVELS = {"cb": 12, "oh": 15, "ow": 15, "kh": 8, "kw": 10}
VALUES = with_bounds({
    "a": (16, ("cb", "oh", "ow", "kh", "kw")),
    "b": (16, ("cb", "oh", "ow", "kw")),
    "ih": (16, ("oh", "kh")),
    "iw": (16, ("ow", "kw")),
    "p": (16, ("cb",)),
})  # fmt: skip
OUT_LEVELS = {"cb": 12, "oh": 15, "ow": 15}
OUT_VALUES = {"o": (16, ("cb", "oh", "ow"))}
OUT_FIELDS = ("o_base", *(f"o_{level}" for level in OUT_LEVELS), *(f"{level}_n" for level in OUT_LEVELS))
"""What the loops of the results take from an instruction."""


class VectorUnit(UnitComponent):
    """One window position per cycle, then one group of Q lanes per cycle; one instruction after the other.

    An instruction is taken when the one before is done; or if it `follows` it, as soon as that one's last group has
    been read, but no sooner than `vector_issue_interval` cycles after it: what it does not share with it are the loops,
    and those of the results begin `results_later`. Activation operands arrive `ACT_READ` cycles after their address,
    accumulator rows `DRAIN_READ`, and are read so much later that they arrive with the sums of windows. Each group's
    parameters, a row of `params`, are read with its operands; if in two halves (`HwConfig.param_reads`), with the first
    word of a plane only, and held by the lanes.
    """

    UNIT = Unit.VECTOR

    def __init__(self, config: HwConfig) -> None:
        super().__init__(config)
        width, depth = param_shape(config)
        self.params = BlockRam(width=width, depth=depth, granularity=8, role="params")
        self.tables = Tables(config)
        self.memories |= {Space.PARAM: self.params, Space.TABLE: self.tables}

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.params, m.submodules.tables = self.params, self.tables
        m.submodules.loops = loops = LoopNest(LEVELS, VALUES, apart=BOUNDS)
        m.submodules.out_loops = out_loops = LoopNest(OUT_LEVELS, OUT_VALUES)
        m.submodules.reduce = reduce = WindowReduce(self.config.word)
        bits = Signal.like(self.issue.bits, name="bits", reset_less=True)
        kind = kinds(self.config)[Unit.VECTOR]
        now, following = Decoded(kind, bits), Decoded(kind, self.issue.bits)
        with m.If(self.issue.take):
            m.d.sync += bits.eq(self.issue.bits)
        busy, alike, may_follow = Signal(), self._same_settings(m, bits), Signal()
        m.d.comb += [
            self.issue.free.eq(~busy | (may_follow & alike)),
            self.issue.take.eq(self.issue.valid & self.issue.free),
            self.status.busy.eq(busy | self.issue.take),
        ]

        read, first, word_ends, plane, last = self._sequence(m, loops, now, following)
        window = Signal(reset_less=True)  # of the operation: it stands a cycle before the first read
        m.d.sync += window.eq((now.op == VectorOp.SUM) | (now.op == VectorOp.MAX))
        inside = Signal()  # whether the position counts, and may be read; always, but for windows
        m.d.comb += inside.eq(~window | within_input(m, loops, following))
        self._addresses(m, loops, now, read & inside)
        drained = self._drain(m, loops, now, drain_later(self.config))
        dotting = Signal()
        m.d.comb += [
            dotting.eq(now.op == VectorOp.DOT),  # the lanes sum, so every word is the window's first and only
            reduce.valid.eq(delay(m, read, ACT_READ, name="read")),
            reduce.first.eq(delay(m, first | dotting, ACT_READ, name="first")),
            reduce.inside.eq(delay(m, inside, ACT_READ - 1, name="inside")),
            reduce.op.eq(now.op),
            reduce.za.eq(now.za),
            reduce.zb.eq(now.zb),
            reduce.word_a.eq(self.read.a.word),
            reduce.word_b.eq(self.read.b.word),
        ]
        before = ACT_READ + reduce.latency - 4 - MEMORY
        word_0 = delay(m, word_ends, before, name="word_ends")
        plane_0 = delay(m, plane, before, name="plane")
        param_0 = delay(m, loops.value.p[: bits_for(self.config.param_depth)], before, name="param", reset=False)
        again_5 = delay(m, dotting & ~first, ACT_READ + reduce.latency - 1, name="again", reset=False)
        valid_7, lanes = add_lanes(m, self.config, self.params, reduce, now, word_0, plane_0, param_0, again_5, drained)
        self._results(m, out_loops, now, valid_7, lanes)

        # The last group of the last word follows its read by groups - 1 cycles; then the pipeline drains.
        over = delay(m, last, vector_latency() - 1, name="finished")
        done = over
        if most_early(self.UNIT, self.config):
            done = early_delay(m, last, vector_latency() - 1, now.early, name="done")
        m.d.comb += [self.status.done_reads.eq(last), self.status.done.eq(done)]
        self._permit(m, busy, may_follow, last, over)
        return m

    def _same_settings(self, m: Module, bits: Signal) -> Signal:
        """A register: the next instruction has the settings of the running one, whose `bits` are given, as of a cycle
        ago. Words are compared as they arrive: those that do not are the running one's."""
        settings = sum((1 << spec.bits) - 1 << spec.offset for spec in kinds(self.config)[Unit.VECTOR].specs()
                       if spec.setting)  # fmt: skip
        words, alike = [], Signal()
        for number, arriving in enumerate(self.issue.arriving):
            if mask := settings >> number * WORD_BITS & (1 << WORD_BITS) - 1:
                same = Signal(name=f"same_{number}")
                words.append(same)
                with m.If(self.issue.take):
                    m.d.sync += same.eq(1)
                with m.Elif(arriving):
                    m.d.sync += same.eq(((bits.word_select(number, WORD_BITS) ^ self.issue.data) & mask) == 0)
        m.d.sync += alike.eq(Cat(words).all())
        return alike

    def _permit(self, m: Module, busy: Signal, may_follow: Signal, last: Value, over: Value) -> None:
        """When the next instruction may be taken, from registers: whether there is another one decides at once."""
        running, following = Signal(3), Signal(3)  # instructions taken and not over
        # Cycles until the next may follow; not all is read.
        apart, reading = Signal(range(vector_issue_interval())), Signal()
        m.d.comb += following.eq(running + self.issue.take - over)
        m.d.sync += [
            running.eq(following),
            busy.eq(following != 0),
            may_follow.eq(~self.issue.take & (apart <= 1) & (~reading | last)),
        ]
        with m.If(self.issue.take):
            m.d.sync += [apart.eq(vector_issue_interval() - 1), reading.eq(1)]
        with m.Else():
            with m.If(apart != 0):
                m.d.sync += apart.eq(apart - 1)
            with m.If(last):
                m.d.sync += reading.eq(0)

    def _sequence(
        self, m: Module, loops: LoopNest, now: Decoded, following: Decoded
    ) -> tuple[Signal, Signal, Signal, Signal, Signal]:
        """Reads of a word's window, then groups - 1 cycles of pause, or one where the next parameter row takes two:
        read, first, last of a word, that of a plane's first word, end of all."""
        active, at_first = Signal(), Signal()
        m.d.comb += loops.begins.eq(self.issue.take)
        pause = Signal(6)  # cycles until the next word, and whether they are none or one
        at_once, soon = Signal(init=1), Signal()
        single, double = Signal(reset_less=True), Signal(reset_less=True)  # groups of a word
        paced: Value = Const(0)
        if self.config.param_reads > 1:
            counts = Cat(now.oh_n, now.ow_n, now.kh_n, now.kw_n)
            ones = Cat(Const(1, len(count)) for count in (now.oh_n, now.ow_n, now.kh_n, now.kw_n))
            paced = (counts == ones) & (now.cb_n != 1)
        m.d.sync += [single.eq((now.groups == 1) & ~paced), double.eq((now.groups == 2) | paced)]
        read, word_ends, last = Signal(), Signal(), Signal()
        final = Signal()  # the pause after the last word
        # A read goes all over the unit: it is a register, and what these will be is worked out a cycle ahead.
        active_next, at_once_next, final_next = (Signal(name=f"{name}_next") for name in ("active", "at_once", "final"))
        m.d.comb += [
            word_ends.eq(read & loops.last.kh),
            loops.step.eq(read),
            *loops.counts(now, following),
            last.eq(Mux(single, read & loops.last.cb, final & soon)),
            active_next.eq(loops.start | (active & ~last)),
            at_once_next.eq(loops.start | Mux(word_ends, single, at_once | soon)),
            final_next.eq(~loops.start & (final | (read & loops.last.cb))),
        ]
        m.d.sync += [
            active.eq(active_next),
            at_once.eq(at_once_next),
            final.eq(final_next),
            read.eq(active_next & at_once_next & ~final_next),
            loops.moves.eq(self.issue.take | (active_next & at_once_next & ~final_next)),
        ]
        with m.If(~at_once):
            m.d.sync += [pause.eq(pause - 1), soon.eq(pause == 2)]
        with m.If(read):
            m.d.sync += at_first.eq(loops.last.kh)
        with m.If(word_ends):
            m.d.sync += [pause.eq(now.groups - 1), soon.eq(double)]
        with m.If(loops.start):
            m.d.sync += at_first.eq(1)
        first, at_plane, plane = Signal(), Signal(), Signal()
        m.d.comb += [first.eq(read & at_first), plane.eq(word_ends & at_plane)]
        with m.If(word_ends):
            m.d.sync += at_plane.eq(loops.last.oh)
        with m.If(loops.start):
            m.d.sync += at_plane.eq(1)
        return read, first, word_ends, plane, last

    def _addresses(self, m: Module, loops: LoopNest, now: Decoded, read: Value) -> None:
        """Operand addresses."""
        draining, pairs = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += draining.eq(now.op == VectorOp.DRAIN)
        m.d.sync += pairs.eq((now.op == VectorOp.ADD) | (now.op == VectorOp.MUL) | (now.op == VectorOp.DOT))
        m.d.comb += [
            loops.base.a.eq(now.a_base),
            loops.base.b.eq(now.b_base),
            loops.base.ih.eq(now.ih0),
            loops.base.iw.eq(now.iw0),
            loops.base.p.eq(now.param_base),
            loops.stride.p.cb.eq(now.param_cb),
            *loops.strides(now, "a", "b", "ih", "iw"),
            self.read.a.request.en.eq(read & ~draining),
            self.read.a.request.addr.eq(loops.value.a),
            self.read.b.request.en.eq(read & pairs),
            self.read.b.request.addr.eq(loops.value.b),
        ]

    def _drain(self, m: Module, loops: LoopNest, now: Decoded, later: int) -> Value:
        """Read rows of sums so many cycles after their address; those of the depthwise unit in a register behind their
        memory, for it may lie far away."""
        config = self.config
        bank = delay(m, now.acc_bank, later, name="acc_bank", reset=False)
        row = delay(m, loops.value.a[: bits_for(config.drain_rows)], later, name="acc_row", reset=False)
        m.d.comb += [self.drain.array.bank.eq(bank[0]), *(port.row.eq(row) for port in by_name(self.drain).values())]
        sums: Value = self.drain.array.sums
        if not config.depthwise:
            return sums
        of_window = delay(m, bank, DRAIN_READ, name="drain_bank", reset=False)[1]
        drained = Signal.like(sums, name="drained", reset_less=True)
        short = (self.drain.depthwise.sums.word_select(d, config.sum_bits) for d in range(config.depthwise_lanes))
        m.d.sync += drained.eq(Mux(of_window, Cat(_signed(value, config.acc_bits) for value in short), sums))
        return drained

    def _results(self, m: Module, out_loops: LoopNest, now: Decoded, valid_7: Signal, lanes: list[Signal]) -> None:
        """Table, then the write of one group of lanes."""
        config = self.config
        m.d.comb += self.tables.index.eq(now.table_index)
        for q, y in enumerate(lanes):
            m.d.comb += self.tables.i[q].eq(y)
        plain = [delay(m, y, self.tables.latency, name=f"plain_{q}", reset=False) for q, y in enumerate(lanes)]
        valid = delay(m, valid_7, REQUANTIZE + self.tables.latency, name="valid_7")

        group, single = Signal(6), Signal()
        at_last = Signal()  # the group that comes next is its word's last
        word_ends = valid & at_last
        # The loops of the results: those of the instruction before are at their end when these begin.
        # What they take from it waits in two registers: in the first while that one's results are still written.
        taken = delay(m, self.issue.take, vector_issue_interval() - 1, name="take")
        starts = delay(m, taken, results_later() - vector_issue_interval(), name="taken")
        waiting = {name: Signal.like(now[name], name=f"waiting_{name}", reset_less=True) for name in OUT_FIELDS}
        own = {name: Signal.like(now[name], name=f"out_{name}", reset_less=True) for name in OUT_FIELDS}
        with m.If(taken):
            m.d.sync += [register.eq(now[name]) for name, register in waiting.items()]
        with m.If(starts):
            m.d.sync += [register.eq(waiting[name]) for name, register in own.items()]
        m.d.comb += out_loops.begins.eq(starts)
        m.d.comb += single.eq(now.groups == 1)
        with m.If(out_loops.start):
            m.d.sync += [group.eq(0), at_last.eq(single)]
        with m.Elif(valid):
            m.d.sync += [
                group.eq(Mux(at_last, 0, group + 1)),
                at_last.eq(Mux(at_last, single, group + 2 == now.groups)),
            ]
        m.d.comb += [
            out_loops.step.eq(word_ends),
            out_loops.moves.eq(out_loops.start | word_ends),
            out_loops.base.o.eq(own["o_base"]),
            *out_loops.strides(own, "o"),
            *out_loops.counts(own, waiting),
        ]

        lane = (now.lane_group + group)[:6]
        write = self.write.request
        data, addr = Signal.like(write.data, reset_less=True), Signal.like(write.addr, reset_less=True)
        m.d.comb += [write.data.eq(data), write.addr.eq(addr)]
        for g in range(config.lane_groups):
            with m.If(valid & (lane == g)):
                m.d.sync += write.en[g * config.lanes : (g + 1) * config.lanes].eq(-1)
            with m.Else():
                m.d.sync += write.en[g * config.lanes : (g + 1) * config.lanes].eq(0)
            for q in range(config.lanes):
                y = Mux(now.use_table, self.tables.o[q], plain[q])
                m.d.sync += data.word_select(g * config.lanes + q, 8).eq(y)
        m.d.sync += addr.eq(out_loops.value.o)


def _signed(value: Value, bits: int) -> Value:
    """A signed value in more bits."""
    return Cat(value, value[-1].replicate(bits - len(value)))
