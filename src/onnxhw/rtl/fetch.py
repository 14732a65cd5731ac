"""`Fetcher`: reads a unit's program, one instruction ahead of the one that runs."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.external_instructions import kinds
from ..isa.fields import WORD_BITS
from ..isa.timing import FETCH_OVERHEAD, MEMORY
from ..isa.units import STREAMING, Unit
from .cells import BlockRam, DuplicatedRegister
from .decode import Decoded
from .delay import delay
from .ports import COUNT_BITS, READS, by_name, completions, issue, progress


class Fetcher(wiring.Component):
    """Fetches the next instruction while the unit executes one: the words that `onnxhw.isa.microcode` gives of it.

    It starts when its reset ends; `progress.count` must have stood for two cycles then. ``valid`` rises ``words +
    FETCH_OVERHEAD`` cycles after the start or the last ``take``, words being those that are given, if the ordering
    fields are satisfied by ``completed`` (one cycle after the counter shows it). ``bits`` holds the instruction until
    it is taken. With external memory the microcode memory is a ring.
    """

    latency = FETCH_OVERHEAD

    def __init__(self, unit: Unit, config: HwConfig) -> None:
        self.unit, self.config = unit, config
        self.instruction, self.depth = kinds(config)[unit], unit.ucode(config)
        self.words = self.instruction.words()
        address = bits_for(self.depth)
        super().__init__(
            {
                "w_addr": In(address),
                "w_data": In(WORD_BITS),
                "w_en": In(1),
                "issue": Out(issue(unit, config)),
                "progress": Out(progress()),
                "completed": In(completions(config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        valid, take, index, count = self.issue.valid, self.issue.take, self.progress.index, self.progress.count
        m.submodules.ucode = ucode = BlockRam(
            width=WORD_BITS, depth=self.depth, role=f"ucode_{self.unit}",
            distributed=self.unit.in_luts(self.config),
        )  # fmt: skip
        m.d.comb += [ucode.w_addr.eq(self.w_addr), ucode.w_data.eq(self.w_data), ucode.w_en.eq(self.w_en)]

        address = Signal(ucode.r_addr.shape())
        # Bit w: word w is still to be read, and whether there is one. Then comes the mask of the next instruction.
        left, mask = Signal(self.words, init=-1), Signal(self.words, reset_less=True)
        rest = Signal.like(left)
        some, reading, final, last = Signal(init=1), Signal(), Signal(), Signal()
        # Whether there is an instruction behind the last one taken: compared ahead, and while the unit rests.
        more, more_then, following = Signal(reset_less=True), Signal(reset_less=True), Signal(COUNT_BITS, init=1)
        # `take` comes late in its cycle and `index` follows it, so behind it the register stands for a cycle.
        differs, taken = Signal(reset_less=True), Signal()
        m.d.sync += [
            more.eq(Mux(take, more_then, Mux(taken, more, differs))),
            more_then.eq(following != count),
            differs.eq(index != count),
            taken.eq(take),
        ]
        m.d.comb += [
            ucode.r_addr.eq(address),
            rest.eq(left & (left - 1)),
            reading.eq(some & more),
            final.eq(~_more_than_one(left)),  # of what is read
        ]
        m.d.sync += last.eq(reading & final)
        with m.If(reading):
            m.d.sync += [left.eq(rest), some.eq(~final)]
        with m.If(reading | last):
            m.d.sync += address.eq(self._behind(address))

        # A register before the words: they lie where they are used. One for the words, one for what becomes of their
        # numbers, which is compared elsewhere, and one for the unit, which compares settings.
        m.submodules.data = words = DuplicatedRegister(WORD_BITS, 3)
        data, numbers = words.o[0], words.o[1]
        bits = Signal(self.words * WORD_BITS, reset_less=True)
        m.d.comb += [words.i.eq(ucode.r_data), self.issue.bits.eq(bits), self.issue.data.eq(words.o[2])]
        # As many of which word it is.
        m.submodules.arriving = arriving = DuplicatedRegister(self.words, 3)
        m.d.comb += arriving.i.eq(delay(m, left & ~rest & reading.replicate(self.words), MEMORY, name="arriving"))
        m.d.comb += self.issue.arriving.eq(arriving.o[2])
        for w in range(self.words):
            with m.If(arriving.o[0][w]):
                m.d.sync += bits.word_select(w, WORD_BITS).eq(data)
        with m.If(delay(m, last, MEMORY + 1, name="last")):
            m.d.sync += mask.eq(data)
        # What `bits` will be in the next cycle, and with it which numbers are waited for.
        coming_words = (Mux(arriving.o[1][w], numbers, bits.word_select(w, WORD_BITS)) for w in range(self.words))
        coming = Decoded(self.instruction, Cat(coming_words))
        ordered = self._ordered(m, coming)
        fetched, fetched_1 = Signal(), Signal()
        m.d.comb += [self.progress.take.eq(take), self.progress.waiting.eq(fetched_1 & ~valid & self.issue.free)]
        with m.If(delay(m, last, MEMORY, name="final")):
            m.d.sync += fetched.eq(1)
        with m.If(take):
            m.d.sync += [
                fetched.eq(0),
                valid.eq(0),
                fetched_1.eq(0),
                left.eq(mask),
                some.eq(1),
                index.eq(following),
                following.eq(following + 1),
            ]
        with m.Else():
            m.d.sync += [valid.eq(fetched & ordered), fetched_1.eq(fetched)]
        return m

    def _ordered(self, m: Module, coming: Decoded) -> Value:
        """So many instructions of each unit, and of `READS`, have been completed as an instruction waits for. `coming`:
        its fields, as they will be in the next cycle.

        The run control lies afar, so numbers are compared with those that it told a cycle before: they may have grown
        by one.
        """
        waits = []
        told = by_name(self.completed)
        if self.unit not in STREAMING:
            del told[READS]
        for name, completed in told.items():
            reached, one_is_left = Signal(name=f"reached_{name}"), Signal(name=f"one_is_left_{name}")
            if name != READS:
                number = coming[Unit(name).after]
                m.d.sync += [reached.eq(completed.count >= number), one_is_left.eq(completed.following == number)]
            else:  # the sum of two fields takes a cycle, in which what is told waits
                reads, following = Signal(COUNT_BITS + 1, reset_less=True), Signal(COUNT_BITS, reset_less=True)
                m.d.sync += [reads.eq(coming.after_vector + coming.more_reads), following.eq(completed.following)]
                m.d.comb += [reached.eq(following > reads), one_is_left.eq(following == reads)]
            waits.append(reached | (completed.grown & one_is_left))
        return Cat(*waits).all()

    def _behind(self, address: Signal) -> Value:
        """The next word's address."""
        if self.config.external is None or self.depth == 1 << len(address):
            return address + 1
        return Mux(address == self.depth - 1, 0, address + 1)


def _more_than_one(bits: Value) -> Value:
    """Whether two bits or more are set: of groups that a lookup table takes, so that few follow each other."""
    if len(bits) <= 1:
        return Const(0, 1)
    groups = [bits[first : first + 4] for first in range(0, len(bits), 4)]
    within = [(a & b) for group in groups for n, a in enumerate(group) for b in group[:n]]
    return Cat(within).any() | _more_than_one(Cat(group.any() for group in groups) if len(groups) > 1 else Const(0, 1))
