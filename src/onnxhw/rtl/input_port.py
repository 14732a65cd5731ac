"""`InputPort`: brings the bytes of inputs, which arrive in a row, to their places in activation memory."""

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from types import SimpleNamespace
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.input_port import LANES
from .ports import write_request
from .shift import rotate_right

COUNT = 16
"""Bits of the runs and rows of a region."""


LIMITS = {"word": LANES, "memory": LANES + 1, "run": LANES + 1}
"""Bits that tell what each limit of a step leaves, from "1 or more" on: to "5 or more" where it is asked whether so
many bytes are all that is left."""


def position(config: HwConfig) -> data.StructLayout:
    """A byte's place, or a distance: words, and lanes below a word."""
    return data.StructLayout({"word": bits_for(config.act_words + 1), "lane": bits_for(config.word)})


def region(config: HwConfig) -> dict[str, Any]:
    """Shapes of `onnxhw.isa.input_port.InputRegion`: places and gaps as `position`; `fill` is written if `fills`."""
    gaps = dict.fromkeys(("first", "lead", "gap", "row_gap", "tail"), position(config))
    counts = {"run": bits_for(config.act_words * config.word + 1), "runs": COUNT, "rows": COUNT}
    return {**gaps, **counts, "fill": 8, "fills": 1, "ends": 1}


def regions(config: HwConfig) -> wiring.Signature:
    """A stream of regions, whose fields are signals of their own: words of simulated cores are narrow."""
    fields = {name: Out(shape) for name, shape in region(config).items()}
    return wiring.Signature({**fields, "valid": Out(1), "ready": In(1)})


class InputPort(wiring.Component):
    """Does what `onnxhw.isa.input_port.steps` says, a step per cycle; a write shows on `o` in the cycle after.

    Members
    -------
    regions : what is next to be done.
    i : words of the stream, first byte in bits 7..0.
    o : writes of lanes of a word; one that is not taken stays, and the port waits.
    idle : Out(1), no region is being written, and no write waits.
    hungry : Out(1), nothing but the next word is missing, and no write waits.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "regions": In(regions(config)),
                "i": In(stream.Signature(32)),
                "o": Out(stream.Signature(write_request(config))),
                "idle": Out(1),
                "hungry": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config, shown = self.config, {name: getattr(self.regions, name) for name in region(self.config)}
        kept = {name: Signal.like(value, name=f"now_{name}", reset_less=True) for name, value in shown.items()}
        now = SimpleNamespace(**kept)
        at, end = _place(config, "at"), Signal(bits_for(config.word), name="end_lane", reset_less=True)
        size = Signal(position(config), reset_less=True)
        run, runs, rows = (Signal.like(kept[name], name=name, reset_less=True) for name in ("run", "runs", "rows"))
        taken, complete, turn = Signal(2), Signal(), Signal(2, reset_less=True)
        # Of the state and of `waiting`, in registers of their own: all steps ask for these. Behind the last region what
        # is left of the stream's word is dropped.
        running, going, drops, filling = Signal(), Signal(init=1), Signal(), Signal()
        write, waiting = (stream.Signature(write_request(config)).create(path=(name,)) for name in ("write", "waiting"))
        self._give(m, write, waiting, going)

        # What the steps ask of long counters is told late, from registers: a gap is between any two runs; and what has
        # 16 bytes left has 8 two steps later: in one `run[4:]` is counted down, with what tells that it is not 0.
        last_run, last_row = (Signal(name=name, reset_less=True) for name in ("last_run", "last_row"))
        borrows, high, sixteen = Signal(), run[4:], Signal(reset_less=True)
        m.d.sync += [last_run.eq(runs == 1), last_row.eq(rows == 1), drops.eq(complete & now.ends & (taken != 0))]
        m.d.sync += [high.eq(high - borrows), sixteen.eq(Mux(borrows, high != 1, high.any())), borrows.eq(0)]
        # What each limit of a step leaves: registers, worked out with the counters.
        of_word, of_memory, of_run = (Signal(most, name=f"of_{what}", init=-1) for what, most in LIMITS.items())
        limits = _Limits(config.word, sixteen)
        m.d.sync += of_run.eq(limits.of_run(run[:4]))
        words, filled = Signal(len(at.word), reset_less=True), Signal(reset_less=True)
        # A gap is the one before all runs, or begins a row; and counts, for what ends a run is known late.
        leads, begins_row = Signal(reset_less=True), Signal(reset_less=True)
        step = self._step(m, taken, at.lane, (of_word, of_memory, of_run))

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("REGION") & ~self.o.valid & ~waiting.valid)
            m.d.comb += self.hungry.eq(fsm.ongoing("RUN") & ~self.i.valid & ~self.o.valid & ~waiting.valid)
            with m.State("REGION"):
                m.d.comb += self.regions.ready.eq(going)
                m.d.sync += [kept[name].eq(value) for name, value in shown.items()]
                m.d.sync += [at.word.eq(shown["first"].word), at.lane.eq(shown["first"].lane)]
                m.d.sync += [size.eq(shown["lead"]), complete.eq(0), leads.eq(1), begins_row.eq(1)]
                with m.If(going & self.regions.valid):
                    m.next = "GAP"
            with m.State("GAP"), m.If(going):
                lane, further, within = self._further(m, at.lane, size)
                m.d.sync += [end.eq(lane), words.eq(further), filled.eq(within | ~now.fills), borrows.eq(0)]
                m.d.sync += [run.eq(now.run), runs.eq(Mux(begins_row, now.runs, runs - 1))]
                m.d.sync += [rows.eq(Mux(leads, now.rows, rows - begins_row)), sixteen.eq(now.run[4:].any())]
                m.next = "FILL"
            with m.State("FILL"), m.If(going):
                m.d.sync += [at.word.eq(at.word + 1), at.lane.eq(0), words.eq(words - 1), filled.eq(words == 1)]
                m.d.comb += filling.eq(now.fills & ~(filled & (at.lane == end)))
                with m.If(filled):
                    m.d.sync += [at.word.eq(at.word + words), at.lane.eq(end), turn.eq(end[:2] - taken)]
                    m.d.sync += [of_memory.eq(limits.of_memory(end)), running.eq(~complete)]
                    m.next = "RUN"
                    m.d.comb += self.i.ready.eq(drops)
                    with m.If(complete):
                        m.next = "REGION"
                        with m.If(now.ends):
                            m.d.sync += [taken.eq(0), of_word.eq(limits.of_word(Const(0, 2)))]
            with m.State("RUN"):
                m.d.sync += [leads.eq(0), begins_row.eq(last_run), complete.eq(last_run & last_row)]
                m.d.sync += size.eq(Mux(last_run, Mux(last_row, now.tail, now.row_gap), now.gap))
                with m.If(going & self.i.valid & step.run_over):
                    m.next = "GAP"
        with m.If(running & going & self.i.valid):
            m.d.sync += [taken.eq(step.counted(taken)), at.lane.eq(step.counted(at.lane))]
            m.d.sync += Cat(run[:4], borrows).eq(step.counted(run[:4], -1))
            m.d.sync += [of_word.eq(step.counted(taken, told=limits.of_word)), running.eq(~step.run_over)]
            m.d.sync += of_memory.eq(step.counted(at.lane, told=limits.of_memory))
            m.d.sync += of_run.eq(step.counted(run[:4], -1, told=limits.of_run))
            m.d.comb += self.i.ready.eq(step.word_taken)
            with m.If(step.word_full):
                m.d.sync += [at.word.eq(at.word + 1), at.lane.eq(0)]
                m.d.sync += of_memory.eq(limits.of_memory(Const(0, len(at.lane))))
                if config.word % LANES:  # else the turn is that of the whole run
                    m.d.sync += turn.eq(-step.counted(taken)[:2])
        fills = Cat((at.lane <= lane) & (~filled | (lane < end)) for lane in range(config.word))
        m.d.comb += write.valid.eq(Mux(running, going & self.i.valid, filling))
        m.d.comb += [write.payload.en.eq(Mux(running, step.lanes, fills)), write.payload.addr.eq(at.word)]
        m.d.comb += write.payload.data.eq(self._wide(Mux(running, self._turned(turn), now.fill.replicate(LANES))))
        return m

    def _give(self, m: Module, write: Any, waiting: Any, going: Signal) -> None:
        """Registers of what a step writes; `going` is one, too: a step may be taken.

        A step whose write finds its register taken puts it into another one: whether the memory takes a write is known
        late in a cycle, and the next step asks only whether that other register is empty.
        """
        with m.If(~waiting.valid):
            m.d.sync += waiting.payload.eq(write.payload)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(write.valid | waiting.valid)
            m.d.sync += self.o.payload.eq(Mux(waiting.valid, waiting.payload, write.payload))
            m.d.sync += [waiting.valid.eq(0), going.eq(1)]
        with m.Elif(write.valid):
            m.d.sync += [waiting.valid.eq(1), going.eq(0)]

    def _further(self, m: Module, lane: Value, size: Any) -> tuple[Value, Value, Value]:
        """Of what is a `position` further than a lane: its lane, by how many words it is further, and whether by none.

        Where a word's lanes are a power of two the words come from one sum of both, not from two, one behind the other.
        """
        lanes, word = Signal(range(2 * self.config.word)), self.config.word
        carry = Signal()
        m.d.comb += [lanes.eq(lane + size.lane), carry.eq(lanes >= word)]
        words = size.word + carry
        if word == 1 << len(lane):
            words = (Cat(size.lane, size.word) + lane) >> len(lane)
        return Mux(carry, lanes - word, lanes), words, (size.word == 0) & ~carry

    def _step(self, m: Module, taken: Signal, lane: Value, limits: tuple[Signal, ...]) -> SimpleNamespace:
        """Of a step of one to four bytes: a number `counted` up, or down, by them, the `lanes` that take them, and
        whether then the stream's word has been taken, the memory's word is full and the run is over.

        Numbers up to four are told as four bits, "1 or more" to "4 or more": the least of several is their conjunction,
        and chooses between sums that do not wait for it.
        """
        width, steps = self.config.word, range(1, LANES + 1)
        of_word, of_memory, of_run = limits
        least = Signal(LANES, name="least")
        m.d.comb += least.eq(Cat(all_of(each) for each in zip(of_word, of_memory[:LANES], of_run[:LANES], strict=True)))

        def counted(number: Value, sign: int = 1, told: Callable[[Value], Value] = lambda it: it) -> Value:
            """`number` and the step's bytes, less them if the sign is -1; or what is `told` of that."""
            one, two, three, four = (told(number + sign * k) for k in steps)
            return Mux(least[1], Mux(least[3], four, Mux(least[2], three, two)), one)

        ends = [lane == at for at in range(width)]
        within = [of_word[k] & of_run[k] for k in range(LANES)]  # behind the memory's word there is no lane

        def exactly(limit: Signal, k: int) -> Value:
            return limit[k - 1] & ~limit[k]

        # Where one limit is met exactly, only the other two are asked.
        return SimpleNamespace(
            counted=counted,
            lanes=Cat(any_of(ends[at - k] & within[k] for k in range(min(LANES, at + 1))) for at in range(width)),
            word_taken=any_of((taken == LANES - k) & of_memory[k - 1] & of_run[k - 1] for k in steps),
            word_full=any_of(exactly(of_memory, k) & of_word[k - 1] & of_run[k - 1] for k in steps),
            run_over=any_of(exactly(of_run, k) & of_word[k - 1] & of_memory[k - 1] for k in steps),
        )

    def _turned(self, turn: Signal) -> Value:
        """The stream's word so that byte b comes to lane ``b + turn``, modulo four."""
        return rotate_right(self.i.payload, -8, turn)

    def _wide(self, word: Value) -> Value:
        """As many bytes as a word of the memory has."""
        return Cat(word for _ in range(-(-self.config.word // LANES)))[: 8 * self.config.word]


class _Limits:
    """What limits a step, as bits, "1 or more" to "4 or more": of the stream's word what `taken` bytes leave; and to "5
    or more" of the memory's word what a lane leaves, of a run its low bits, with `high`, a register that tells of
    any above them."""

    def __init__(self, width: int, high: Value) -> None:
        self.width, self.high = width, high

    def of_word(self, taken: Value) -> Value:
        return Cat(taken[:2] <= LANES - k for k in range(1, LANES + 1))

    def of_memory(self, lane: Value) -> Value:
        mine = lane[: bits_for(self.width)]
        return Cat(mine <= self.width - k if k <= self.width else Const(0, 1) for k in range(1, LANES + 2))

    def of_run(self, low: Value) -> Value:
        more = self.high | low[2:4].any()
        five = self.high | low[3] | (low[2] & low[:2].any())
        return Cat(*(more | (low[:2] >= k) for k in range(1, LANES)), more, five)


def all_of(values: Iterable[Any]) -> Value:
    """Whether all are true."""
    return reduce(operator.and_, values)


def any_of(values: Iterable[Any]) -> Value:
    """Whether one is true."""
    return reduce(operator.or_, values)


def _place(config: HwConfig, name: str) -> SimpleNamespace:
    """A `position` in a register for words and one for lanes."""
    fields = position(config).members
    return SimpleNamespace(**{part: Signal(fields[part], name=f"{name}_{part}", reset_less=True) for part in fields})
