"""`InputPort`: brings the bytes of inputs, which arrive in a row, to their places in activation memory."""

from types import SimpleNamespace
from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.input_port import LANES
from .ports import write_request

COUNT = 16
"""Bits of the runs and rows of a region."""


def position(config: HwConfig) -> data.StructLayout:
    """A byte's place, or a distance: words, and lanes below a word."""
    return data.StructLayout({"word": bits_for(config.act_words + 1), "lane": bits_for(config.word)})


def region(config: HwConfig) -> dict[str, Any]:
    """Shapes of `onnxhw.isa.input_port.Region`: places and gaps as `position`; `fill` is written if `fills`."""
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
        at, end = (_place(config, name) for name in ("at", "end"))
        size = Signal(position(config), reset_less=True)
        run, runs, rows = (Signal.like(kept[name], name=name, reset_less=True) for name in ("run", "runs", "rows"))
        taken, complete, going = Signal(2), Signal(), Signal()
        m.d.comb += going.eq(~self.o.valid | self.o.ready)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("REGION") & ~self.o.valid)
            m.d.comb += self.hungry.eq(fsm.ongoing("RUN") & ~self.i.valid & ~self.o.valid)
            with m.State("REGION"):
                m.d.comb += self.regions.ready.eq(going)
                m.d.sync += [kept[name].eq(value) for name, value in shown.items()]
                m.d.sync += [at.word.eq(shown["first"].word), at.lane.eq(shown["first"].lane)]
                m.d.sync += [size.eq(shown["lead"]), complete.eq(0)]
                for left, whole in ((run, "run"), (runs, "runs"), (rows, "rows")):
                    m.d.sync += left.eq(shown[whole])
                with m.If(going & self.regions.valid):
                    m.next = "GAP"
            with m.State("GAP"), m.If(going):
                word, lane = self._further(m, at, size)
                m.d.sync += [end.word.eq(word), end.lane.eq(lane)]
                m.next = "FILL"
            with m.State("FILL"), m.If(going):
                last = Signal()
                m.d.comb += last.eq((at.word == end.word) | ~now.fills)
                self._write(m, at, Mux(last, end.lane, config.word), now.fill.replicate(LANES), now.fills)
                m.d.sync += [at.word.eq(at.word + 1), at.lane.eq(0)]
                with m.If(last):
                    m.d.sync += [at.word.eq(end.word), at.lane.eq(end.lane)]
                    m.next = "RUN"
                    with m.If(complete):
                        m.next = "REGION"
                        with m.If(now.ends):
                            m.d.comb += self.i.ready.eq(taken != 0)
                            m.d.sync += taken.eq(0)
            with m.State("RUN"), m.If(going & self.i.valid):
                count = self._count(m, run, taken, at.lane)
                beyond = Signal(range(config.word + LANES + 1))
                m.d.comb += beyond.eq(at.lane + count)
                self._write(m, at, beyond, self._turned(at.lane, taken), 1)
                m.d.sync += [taken.eq(taken + count), at.lane.eq(beyond), run.eq(run - count)]
                m.d.comb += self.i.ready.eq(taken + count == LANES)
                with m.If(beyond == config.word):
                    m.d.sync += [at.word.eq(at.word + 1), at.lane.eq(0)]
                with m.If(run == count):
                    m.d.sync += [run.eq(now.run), runs.eq(runs - 1), size.eq(now.gap)]
                    with m.If(runs == 1):
                        m.d.sync += [runs.eq(now.runs), rows.eq(rows - 1), size.eq(now.row_gap)]
                        with m.If(rows == 1):
                            m.d.sync += [size.eq(now.tail), complete.eq(1)]
                    m.next = "GAP"
        return m

    def _further(self, m: Module, at: Any, size: Any) -> tuple[Value, Value]:
        """The place so many words and lanes further."""
        lanes, word = Signal(range(2 * self.config.word)), self.config.word
        carry = Signal()
        m.d.comb += [lanes.eq(at.lane + size.lane), carry.eq(lanes >= word)]
        return at.word + size.word + carry, Mux(carry, lanes - word, lanes)

    def _count(self, m: Module, run: Signal, taken: Signal, lane: Value) -> Signal:
        """Bytes of a step: what is left of the stream's word, of the run and of the memory's word."""
        found = Signal(range(LANES + 1), name="count")
        ways = [LANES - taken, Mux(run[2:].any(), LANES, run[:2])]
        room = Signal(range(self.config.word + 1), name="room")
        m.d.comb += room.eq(self.config.word - lane)
        ways.append(Mux(room[2:].any(), LANES, room[:2]))
        least: Any = ways[0]
        for way in ways[1:]:
            least = Mux(way < least, way, least)
        m.d.comb += found.eq(least)
        return found

    def _turned(self, lane: Value, taken: Signal) -> Value:
        """The stream's word so that byte `taken` comes to lane `lane`, modulo four."""
        turns = (lane[:2] - taken)[:2]
        return Array([self.i.payload.rotate_left(8 * turn) for turn in range(LANES)])[turns]

    def _write(self, m: Module, at: Any, behind: Any, word: Value, enable: Any) -> None:
        """Bytes of lanes from that of `at` up to, not including, `behind`."""
        config, request = self.config, self.o.payload
        lanes = Cat((lane >= at.lane) & (lane < behind) for lane in range(config.word))
        wide = Cat(word for _ in range(-(-config.word // LANES)))[: 8 * config.word]
        address = Signal(len(request.addr))
        m.d.comb += address.eq(at.word)
        with m.If(enable & lanes.any()):
            m.d.sync += [self.o.valid.eq(1), request.eq(Cat(lanes, address, wide))]


def _place(config: HwConfig, name: str) -> SimpleNamespace:
    """A `position` in a register for words and one for lanes."""
    fields = position(config).members
    return SimpleNamespace(**{part: Signal(fields[part], name=f"{name}_{part}", reset_less=True) for part in fields})
