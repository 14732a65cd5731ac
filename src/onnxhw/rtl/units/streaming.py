"""`StreamingUnit`: what the array and the depthwise unit share: how they issue pixels tile by tile, take operands from
activation words, and say where sums go."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value

from ...config import bits_for
from ...isa.early_instructions import most_early
from ...isa.external_instructions import kinds
from ...isa.timing import ACT_READ, array_latency, shadow_ready
from ...isa.units import STREAMING, Unit
from ..accumulator import target
from ..cells import DuplicatedRegister
from ..decode import Decoded
from ..delay import delay, early_delay
from ..input_bounds import within_input
from ..loops import LoopNest
from ..ports import UnitComponent, by_name, reads_unaligned, unturned

ALWAYS, NEVER = Const(1), Const(0, 1)


class StreamingUnit(UnitComponent):
    """Streams one activation word per cycle, a weight tile after the other.

    It is `busy` when it issues a pixel. `done` pulses ``array_latency - 1`` cycles after the last, or as much sooner as
    the instruction is `early`.
    """

    def _issue(
        self, m: Module, loops: LoopNest, outermost: Signal, calm: Value = ALWAYS
    ) -> tuple[Decoded, Signal, Signal]:
        """Take instructions and issue their pixels; a tile waits for its weights, and until it may start: `calm` tells
        a cycle ahead that it may.

        Returns the running instruction, whether it starts (the loops then begin) and whether this is its last pixel;
        `outermost` is ``last`` of the outermost loop. What is issued goes all over the unit: `streaming` and
        ``tiles.taken`` are registers, and what they will be is worked out a cycle ahead.
        """
        issue, tiles, depthwise = self.issue, self.tiles, self.UNIT == Unit.DEPTHWISE
        kind, bits = kinds(self.config)[self.UNIT], Signal.like(issue.bits, name="bits", reset_less=True)
        starting = loops.start
        busy, streaming, taken, last = (Signal(name=name) for name in ("busy", "streaming", "taken", "last"))
        # The loops hold the running instruction; the pixel is a tile's first; the next tile's weights stand in the
        # shadow registers.
        active, at_tile, ready = (Signal(name=name) for name in ("active", "at_tile", "ready"))
        active_next, at_tile_next, ready_next, streaming_next = (
            Signal(name=f"{name}_next") for name in ("active", "at_tile", "ready", "streaming")
        )
        may_start = Signal(name="may_start")
        loaded = delay(m, tiles.started, shadow_ready(self.config, depthwise) - 1, name="loaded")
        m.d.comb += [
            last.eq(streaming & outermost),
            active_next.eq(starting | (active & ~last)),
            at_tile_next.eq(starting | (streaming & loops.last.oh) | (at_tile & ~taken)),
            ready_next.eq(loaded | (ready & ~taken)),
            streaming_next.eq(active_next & (~at_tile_next | (ready_next & calm))),
        ]
        m.d.sync += [
            active.eq(active_next),
            at_tile.eq(at_tile_next),
            ready.eq(ready_next),
            may_start.eq(calm),
            streaming.eq(streaming_next),
            loops.moves.eq(issue.take | streaming_next),
            taken.eq(active_next & at_tile_next & ready_next & calm),
        ]
        m.d.comb += [
            self.status.busy.eq(streaming),
            self.status.starved.eq(active & at_tile & may_start & ~ready),
            tiles.taken.eq(taken),
            issue.free.eq(~busy),
            issue.take.eq(issue.valid & issue.free),
            loops.begins.eq(issue.take),
            loops.step.eq(streaming),
        ]
        now, later = Decoded(kind, bits), array_latency(self.config, depthwise) - 1
        early = most_early(self.UNIT, self.config)
        done = early_delay(m, last, later, now.early, name="done") if early else delay(m, last, later, name="done")
        m.d.comb += self.status.done.eq(done)
        m.d.comb += loops.counts(now, Decoded(kind, issue.bits))
        with m.If(last):
            m.d.sync += busy.eq(0)
        with m.If(issue.take):
            m.d.sync += [busy.eq(1), bits.eq(issue.bits)]
        return now, starting, last

    def _operand(self, m: Module, loops: LoopNest, now: Decoded, group: Value, count: int) -> Signal:
        """Read the activation word of the pixel being issued: `count` bytes of it, of the `group`, or the pad value
        where the pixel lies outside. The bytes are at their user `ACT_READ` + 1 cycles later."""
        (read,) = by_name(self.read).values()
        within = Signal()
        following = Decoded(kinds(self.config)[self.UNIT], self.issue.bits)
        groups = -(-len(read.word) // (8 * count))
        pad_4 = delay(m, now.pad, ACT_READ, name="pad", reset=False)
        lanes = Signal(8 * count * groups)
        at = loops.value.a
        m.d.comb += [
            within.eq(within_input(m, loops, following)),
            read.request.en.eq(self.status.busy & within),
            read.request.addr.eq(at),
            lanes.eq(read.word),
        ]
        # What the operand may be, and, a cycle sooner, which of these it is: one bit for each, in registers of each
        # byte's own, so that two levels of tables choose.
        within_3 = delay(m, within, ACT_READ - 1, name="within", reset=False)
        group_3 = delay(m, group, ACT_READ - 1, name="group", reset=False)[: bits_for(groups)]
        ways = [pad_4.replicate(count), *(lanes.word_select(g, 8 * count) for g in range(groups))]
        meant = [~within_3, *(within_3 & (group_3 == g) for g in range(groups))]
        if reads_unaligned(self.UNIT, self.config):
            turns, unaligned_3, turn_3 = self._unaligned(m, read, at, now)
            meant = [meant[0], *(one & ~unaligned_3 for one in meant[1:])]
            meant += [within_3 & unaligned_3 & (turn_3 == number) for number in range(len(turns))]
            ways += turns
        m.submodules.meant = meant_4 = DuplicatedRegister(len(meant), count)
        m.d.comb += meant_4.i.eq(Cat(meant))
        x_5 = Signal(8 * count, name="x", reset_less=True)
        for byte, chosen in enumerate(meant_4.o):
            parts = [way.word_select(byte, 8) & one.replicate(8) for way, one in zip(ways, chosen, strict=True)]
            m.d.sync += x_5.word_select(byte, 8).eq(reduce(or_, parts))
        return x_5

    def _unaligned(self, m: Module, read: Any, at: Value, now: Decoded) -> tuple[list[Value], Value, Value]:
        """For instructions that read bytes from address `at` on: the operand by how far it is still to be turned; a
        cycle sooner, whether it is such an operand, and how far."""
        config, left = self.config, unturned(self.config)
        grain, width = config.unaligned.bit_length() - 1, config.word.bit_length() - 1
        m.d.comb += [
            read.request.addr.eq(Mux(now.unaligned, at[width:], at)),
            read.request.byte.eq(at),
            read.request.unaligned.eq(now.unaligned),
            read.request.split.eq(now.split),
            read.request.jump.eq(now.jump),
        ]
        turn_3 = delay(m, at[grain:][: left.bit_length() - 1], ACT_READ - 1, name="turn", reset=False)
        unaligned_3 = delay(m, now.unaligned, ACT_READ - 1, name="unaligned", reset=False)
        return [read.turned.rotate_right(8 * config.unaligned * number) for number in range(left)], unaligned_3, turn_3

    def _place(
        self, m: Module, loops: LoopNest, now: Decoded, last: Value, cycles: int, *,
        hit: Value = ALWAYS, accumulate: Value = NEVER,
    ) -> Any:  # fmt: skip
        """Where the sum of the pixel being issued goes, if it is a `hit`, so many cycles later: to the next row, or
        behind the `last` of a tile to the first. It replaces what is there if the tile is the first, unless the
        instruction shall `accumulate`. ``valid`` is reset."""
        tag, later = (Signal(target(self.UNIT, self.config)) for _ in range(2))
        row, first = Signal(15, reset_less=True), Signal()
        m.d.comb += [
            tag.valid.eq(self.status.busy & hit),
            tag.row.eq(row),
            tag.replace.eq(first & ~accumulate),
            *([tag.bank.eq(now.acc_bank)] if STREAMING[self.UNIT].banks > 1 else []),
            later.eq(delay(m, tag.as_value(), cycles, name="target", reset=False)),
            later.valid.eq(delay(m, tag.valid, cycles, name="valid")),
        ]
        with m.If(self.status.busy):
            m.d.sync += row.eq(Mux(last, now.acc_base, row + hit))
            with m.If(last):
                m.d.sync += first.eq(0)
        with m.If(loops.start):
            m.d.sync += [row.eq(now.acc_base), first.eq(1)]
        return later
