"""`MoveUnit`: copies 32-bit words between external memory and the memories of the core."""

from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory
from amaranth.lib.wiring import Out

from ...config import HwConfig
from ...isa.external_instructions import Move
from ...isa.memory import Space, host_stride
from ...isa.move_timing import BEGIN, STORED, TO_BUFFER, WRITTEN, columns_per_word
from ...isa.timing import ACT_READ
from ...isa.units import Unit
from ..decode import Decoded
from ..delay import delay
from ..external.controller import requester
from ..loops import LoopNest
from ..ports import UnitComponent

ADDRESS_BITS = 24
BUFFER = 16
"""Words of a store that are read ahead. From a word's column to the next one that takes its place pass 10 cycles, so
with columns of a word's width fewer would not keep up."""

MOVED = (Space.WEIGHT, Space.PARAM, Space.TABLE, *(unit.microcode for unit in Unit))
"""Spaces that words are moved to by way of the host's writes: all but `Space.ACT`."""


def moved_word() -> data.StructLayout:
    """A word for a memory of the core other than that of activations: host word `addr` of a space of `MOVED`, which has
    its bit of `valid`."""
    return data.StructLayout({"valid": len(MOVED), "addr": ADDRESS_BITS, "data": 32})


class MoveUnit(UnitComponent):
    """Executes `Move`, one after the other, in the cycles that `onnxhw.isa.move_timing` tells.

    A load's words come to activation memory by ``write``, to others by ``moved``, two registers behind the controller.
    A store reads ahead into a buffer, by ``read``, as long as it has room. ``external`` is the controller's side.
    """

    UNIT = Unit.MOVE

    def __init__(self, config: HwConfig) -> None:
        assert config.external is not None
        self.memory, self.columns = config.external, columns_per_word(config)
        super().__init__(config, {"external": Out(requester(config.external)), "moved": Out(moved_word())})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        issue, bits = self.issue, Signal.like(self.issue.bits, name="bits", reset_less=True)
        fields, following = Decoded(Move, bits), Decoded(Move, issue.bits)
        active, ends = Signal(), Signal()
        m.submodules.chip = chip = LoopNest(
            {"block": 12, "run": 12, "word": 14}, {"c": (ADDRESS_BITS, ("block", "run", "word"))}
        )
        m.d.comb += [
            issue.free.eq(~active),
            issue.take.eq(issue.valid & issue.free),
            self.status.busy.eq(active),
            self.status.done.eq(ends),
            chip.begins.eq(issue.take),
            chip.moves.eq(chip.start | chip.step),
            chip.base.c.eq(fields.chip),
            *chip.counts(fields, following),
            *(getattr(chip.stride.c, level).eq(fields[f"c_{level}"]) for level in ("block", "run")),
            chip.stride.c.word.eq(1),
        ]
        with m.If(issue.take):
            m.d.sync += [bits.eq(issue.bits), active.eq(1)]
        with m.If(ends):
            m.d.sync += active.eq(0)
        self._requests(m, fields, following, chip.start)
        loaded = self._load(m, fields, chip)
        stored = self._store(m, fields, chip)
        m.d.comb += [
            ends.eq(delay(m, loaded, WRITTEN - 2, name="loaded") | delay(m, stored, STORED - 2, name="stored")),
        ]
        return m

    def _requests(self, m: Module, fields: Decoded, following: Decoded, starting: Value) -> None:
        """A request for each run: the first one `BEGIN` cycles after the issue, or `TO_BUFFER` later."""
        words = self.memory.address_bits - (self.columns - 1)
        m.submodules.external_loops = loops = LoopNest({"block": 12, "run": 12}, {"e": (words, ("block", "run"))})
        request = self.external.request
        offered, again, taken = Signal(), Signal(), Signal()
        behind = Signal.like(fields.word_n, name="behind", reset_less=True)  # words of a run, but for one
        with m.If(self.issue.take):
            m.d.sync += behind.eq(following.word_n - 1)
        m.d.comb += [
            loops.begins.eq(self.issue.take),
            loops.base.e.eq(fields.external),
            *loops.counts(fields, following),
            loops.stride.e.block.eq(fields.e_block),
            loops.stride.e.run.eq(fields.e_run),
            loops.step.eq(taken),
            loops.moves.eq(loops.start | taken),
            taken.eq(offered & request.ready),
            request.valid.eq(offered),
            request.payload.write.eq(fields.store),
            request.payload.address.eq(loops.value.e << (self.columns - 1)),
            request.payload.count.eq(fields.word_n << (self.columns - 1)),
            request.payload.behind.eq(Cat(Const(self.columns - 1, self.columns - 1), behind)),
        ]
        assert BEGIN == 2
        m.d.sync += again.eq(taken & ~loops.last.block)
        with m.If((starting & ~fields.store) | delay(m, starting & fields.store, TO_BUFFER, name="buffered") | again):
            m.d.sync += offered.eq(1)
        with m.Elif(taken):
            m.d.sync += offered.eq(0)

    def _load(self, m: Module, fields: Decoded, chip: LoopNest) -> Value:
        """Words from columns, and to their memories; the result tells that the last one is there."""
        controller = self.external
        there, word, second = Signal(), Signal(32, reset_less=True), Signal()
        if self.columns == 1:
            m.d.sync += [there.eq(controller.r_valid), word.eq(controller.r_data)]
        else:
            m.d.sync += there.eq(controller.r_valid & second)
            with m.If(controller.r_valid):
                m.d.sync += [second.eq(~second), word.eq(Cat(word[16:], controller.r_data))]
        moved, write = self.moved, self.write.request
        into_act, address = Signal(), Signal(ADDRESS_BITS, reset_less=True)
        value = Signal(32, reset_less=True)
        m.d.sync += [into_act.eq(there & (fields.space == Space.ACT)), address.eq(chip.value.c), value.eq(word)]
        m.d.sync += moved.valid.eq(Cat(there & (fields.space == space) for space in MOVED))
        with m.If(there):
            m.d.comb += chip.step.eq(1)
        m.d.comb += [moved.addr.eq(address), moved.data.eq(value)]
        stride = host_stride(self.config.word)
        shift = (stride - 1).bit_length()
        lanes = Signal(4 * stride)
        with m.If(into_act):
            m.d.comb += lanes.word_select(address[:shift], 4).eq(0xF)
        m.d.comb += [
            write.en.eq(lanes),
            write.addr.eq(address[shift:]),
            write.data.eq(value.replicate(stride)),
        ]
        return there & chip.last.block

    def _store(self, m: Module, fields: Decoded, chip: LoopNest) -> Value:
        """Words from activation memory into the buffer, and from it columns; the result tells, a cycle later, of the
        last column.

        That a column is taken comes late in its cycle, and is acted on in the next one.
        """
        controller, read = self.external, self.read.move
        stride = host_stride(self.config.word)
        shift = (stride - 1).bit_length()
        reading, reads, pops = Signal(), Signal(), Signal()
        under_way, full = Signal(range(BUFFER + 1)), Signal()
        """Words that are read, or in the buffer; there are `BUFFER` of them."""
        m.d.comb += [
            reads.eq(reading & ~full),
            read.request.en.eq(reads),
            read.request.addr.eq(chip.value.c[shift:]),
        ]
        with m.If(chip.start & fields.store):
            m.d.sync += reading.eq(1)
        with m.If(reads):
            m.d.comb += chip.step.eq(1)
            with m.If(chip.last.block):
                m.d.sync += reading.eq(0)
        # The last word is at hand, known a cycle ahead: one is left. While words are read there are more, for the first
        # column is taken after three of them, and no word leaves sooner than the next one comes.
        final = Signal()
        one_next = Mux(reads, Mux(pops, under_way == 1, under_way == 0), Mux(pops, under_way == 2, under_way == 1))
        m.d.sync += final.eq(one_next)
        m.d.sync += under_way.eq(under_way + reads - pops)
        m.d.sync += full.eq(~pops & (full | (reads & (under_way == BUFFER - 1))))

        place = delay(m, chip.value.c[:shift] if shift else Const(0, 1), ACT_READ, name="place", reset=False)
        found, word = Signal(), Signal(32, reset_less=True)
        words = Signal(32 * stride)
        m.d.comb += words.eq(read.word)
        m.d.sync += [found.eq(delay(m, reads, ACT_READ, name="reads")), word.eq(words.word_select(place, 32))]
        m.submodules.buffer = buffer = memory.Memory(shape=32, depth=BUFFER, init=[])
        # Columns are chosen a cycle ahead: the one that is shown, and the next one, if it is taken in this cycle.
        into = buffer.write_port()
        ports = -(-(self.columns + 2) // self.columns)
        at = [Signal(range(BUFFER), init=number, name=f"at_{number}") for number in range(ports)]
        taken, half = Signal(), Signal()
        m.d.comb += [into.data.eq(word), into.en.eq(found), pops.eq(taken & (half if self.columns == 2 else 1))]
        columns: list[Value] = []
        for address in at:
            out = buffer.read_port(domain="comb")
            m.d.comb += out.addr.eq(address)
            columns += [out.data.word_select(number, self.memory.data_bits) for number in range(self.columns)]
        m.d.sync += taken.eq(controller.w_next)
        with m.If(pops):
            m.d.sync += [one.eq(behind) for one, behind in zip(at, [*at[1:], at[-1] + 1], strict=True)]
        with m.If(found):
            m.d.sync += into.addr.eq(into.addr + 1)
        if self.columns == 2:
            m.d.sync += half.eq(half ^ taken)
        shown, behind = (Signal(self.memory.data_bits, reset_less=True, name=name) for name in ("shown", "behind"))
        position = half + taken
        m.d.sync += [shown.eq(Array(columns)[position]), behind.eq(Array(columns[1:])[position])]
        m.d.comb += controller.w_data.eq(Mux(taken, behind, shown))
        return pops & final
