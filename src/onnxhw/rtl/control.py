"""`RunControl`: control registers, run and watchdog, counters, the ring of last instructions."""

from collections.abc import Mapping
from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.memory import ACCEPTED, RING_SIZE, Control
from ..isa.units import Unit, units_of
from .delay import delay
from .ports import COUNT_BITS, READS, by_name, completions, each, progress, status

ADDRESS_BITS = 6
GROUP_BITS = 3
"""Bits of the address of a register in its group: groups are read first, and then one of them is chosen."""

HEARD = ACCEPTED + 4
"""Cycles from a frame's CRC until the counter of the latency starts: the write takes two to get here, and two more."""
STARTED = 1
"""The cycle in which a run's start is asked for is the first of a latency that begins with it."""


class RunControl(wiring.Component):
    """Everything behind `onnxhw.isa.memory.Control`.

    A run starts (`running` rises) two cycles after RUN was written and ends `FINISH` cycles after the last
    completion, or when the cycle count reaches a non-zero BUDGET, or two after 0 was written to RUN. ``status`` and
    ``progress`` are by unit: what it and its fetcher tell; ``completed`` counts what they have done. ``input_free``
    tells, a cycle late, that the run has done with its inputs. A read takes 2 cycles.

    With external memory a run that has moves begins otherwise: `asks` asks the memory's controller for its start
    sequence, and `running` rises the cycle after `started`. `active` tells of the time between, too. `stopped`
    tells, for a cycle, that a run with moves was ended before it had finished.
    """

    latency = 2

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.units = units_of(config)
        super().__init__(
            {
                "addr": In(ADDRESS_BITS),
                "w_en": In(1),
                "w_data": In(32),
                "r_data": Out(32),
                "running": Out(1),
                "input_free": Out(1),
                "status": In(each(self.units, status)),
                "progress": In(each(self.units, lambda _: progress())),
                "completed": Out(completions(config)),
                **({"asks": Out(1), "started": In(1), "active": Out(1), "stopped": Out(1)} if config.external else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        start, stop = Signal(), Signal()
        ended, overrun = Signal(), Signal()
        cycles, budget = Signal(32), Signal(32)
        # A write to Control.RUN starts or stops a cycle late: what starts lies all over the device.
        begin, abort = Signal(), Signal()
        written = self.w_en & (self.addr == Control.RUN)
        m.d.sync += [begin.eq(written & self.w_data[0]), abort.eq(written & ~self.w_data[0])]
        units, counts = by_name(self.status), {unit: port.count for unit, port in by_name(self.progress).items()}
        active = self._begin(m, begin, abort, start, counts)
        # A start comes late in its cycle: what nobody looks at in a run's first cycle is cleared in that.
        started = delay(m, start, 1, name="started")
        completed = by_name(self.completed)
        done = {**{unit: port.done for unit, port in units.items()}, READS: units[Unit.VECTOR].done_reads}
        for name, number in completed.items():
            m.d.sync += number.grown.eq(done[name] & self.running)
            with m.If(done[name] & self.running):
                m.d.sync += [number.count.eq(number.following), number.following.eq(number.following + 1)]
            with m.If(start):
                m.d.sync += [number.count.eq(0), number.following.eq(1)]
        finished = {unit: Signal(name=f"finished_{unit}") for unit in self.units}
        m.d.sync += [end.eq((completed[unit].count == counts[unit]) & self.running) for unit, end in finished.items()]
        # The budget changes between runs only, so what it says is worked out before.
        over, limited, most = Signal(), Signal(), Signal(signed(33))
        m.d.sync += [limited.eq(budget != 0), most.eq(budget - 2)]
        m.d.sync += over.eq((cycles >= most) & limited & self.running)
        m.d.comb += stop.eq(self.running & (Cat(finished.values()).all() | over | abort))

        with m.If(self.running):
            m.d.sync += cycles.eq(cycles + 1)
        if self.config.external is not None:
            with_moves = counts[Unit.MOVE] != 0
            m.d.sync += self.stopped.eq(stop & ~Cat(finished.values()).all() & with_moves)
        with m.If(stop):
            m.d.sync += [self.running.eq(0), ended.eq(1), overrun.eq(~Cat(finished.values()).all())]
        with m.If(start):
            m.d.sync += [self.running.eq(1), ended.eq(0), overrun.eq(0), cycles.eq(0)]

        registers: dict[int, Signal | Const] = {
            Control.RUN: Cat(active, ended, overrun),
            Control.BUDGET: budget,
            Control.CYCLES: cycles,
        }
        for unit in self.units:
            registers[unit.registers.count] = counts[unit]
            registers[unit.registers.done] = completed[unit].count
        free_from = Signal(2 * COUNT_BITS)
        registers[Control.INPUT_FREE] = free_from
        for register in (*(unit.registers.count for unit in self.units), Control.BUDGET, Control.INPUT_FREE):
            with m.If(self.w_en & (self.addr == register) & ~active):
                m.d.sync += registers[register].eq(self.w_data)
        done_with = [
            self.completed.array.count >= free_from[:COUNT_BITS],
            self.completed.vector.count >= free_from[COUNT_BITS:],
        ]
        m.d.sync += self.input_free.eq(Cat(*done_with, self.running, free_from != 0).all())
        registers[Control.LATENCY] = self._latency(m, started, stop, abort)
        fingerprint = int(self.config.fingerprint, 16)
        registers[Control.FINGERPRINT_LOW] = Const(fingerprint & 0xFFFFFFFF, 32)
        registers[Control.FINGERPRINT_HIGH] = Const(fingerprint >> 32, 32)
        registers |= self._counters(m, started)
        head, ring = self._ring(m, started)
        registers[Control.RING_HEAD] = head

        self._answer(m, registers, ring)
        return m

    def _begin(self, m: Module, begin: Signal, abort: Signal, start: Signal, counts: Mapping[str, Signal]) -> Signal:
        """When a run starts: at once, or if it has moves, when the external memory is ready for it; the result tells
        that one is in progress, or is to start."""
        if self.config.external is None:
            m.d.comb += start.eq(begin & ~self.running)
            return self.running
        # A start that is aborted is waited for all the same: the memory's controller cannot be told.
        waiting, aborted, moves = Signal(), Signal(), Signal()
        m.d.sync += moves.eq(counts[Unit.MOVE] != 0)
        m.d.comb += [
            self.active.eq(self.running | waiting),
            self.asks.eq(begin & ~self.active & moves),
            start.eq(Mux(waiting, self.started & ~aborted & ~abort, begin & ~self.active & ~moves)),
        ]
        with m.If(self.asks):
            m.d.sync += [waiting.eq(1), aborted.eq(0)]
        with m.Elif(waiting):
            m.d.sync += [waiting.eq(~self.started), aborted.eq(aborted | abort)]
        return self.active

    def _answer(self, m: Module, registers: Mapping[int, Value], ring: Value) -> None:
        """Read a register: in the first cycle one of each group, in the second the group, or the ring."""
        ring_1, group_1 = Signal(), Signal(max(registers).bit_length() - GROUP_BITS)
        values_1 = [Signal(32, name=f"value_{group}") for group in range((max(registers) >> GROUP_BITS) + 1)]
        for group, value in enumerate(values_1):
            with m.Switch(self.addr[:GROUP_BITS]):
                for number, register in registers.items():
                    if number >> GROUP_BITS == group:
                        with m.Case(number % (1 << GROUP_BITS)):
                            m.d.sync += value.eq(register)
                with m.Default():
                    m.d.sync += value.eq(0)
        m.d.sync += [
            ring_1.eq(self.addr >= Control.RING),
            group_1.eq(self.addr[GROUP_BITS:]),
            self.r_data.eq(Mux(ring_1, ring, Array([*values_1, Const(0, 32)])[group_1])),
        ]

    def _latency(self, m: Module, started: Value, stop: Signal, abort: Signal) -> Signal:
        """Cycles since the last frame of input that was accepted while no run was in progress, to the run's end; of a
        run with moves that had none, since its start."""
        latency, accepted, counts = Signal(32, name="latency"), Signal(), Signal()
        m.d.sync += accepted.eq(self.w_en & (self.addr == Control.LATENCY))
        with m.If(counts):
            m.d.sync += latency.eq(latency + 1)
        with m.If(accepted & ~self.running):
            m.d.sync += [latency.eq(HEARD), counts.eq(1)]
        with m.Elif(started & ~counts):
            m.d.sync += latency.eq(0)
        with m.Elif(stop):
            m.d.sync += counts.eq(0)
        if self.config.external is not None:
            with m.If(delay(m, self.asks, 1, name="asked") & ~counts):
                m.d.sync += [latency.eq(STARTED + 1), counts.eq(1)]
            with m.If(abort):
                m.d.sync += counts.eq(0)
        return latency

    def _counters(self, m: Module, started: Value) -> dict[int, Signal]:
        """Stall and busy counters."""
        events: dict[Control, Value] = {}
        progress = by_name(self.progress)
        for unit, told in by_name(self.status).items():
            registers = Unit(unit).registers
            events[registers.stall_order] = progress[unit].waiting
            if registers.stall_weights is not None:
                events[registers.stall_weights] = told.starved
            if registers.busy is not None:
                events[registers.busy] = told.busy
        counters: dict[int, Signal] = {}
        for number, event in events.items():
            counter = Signal(32, name=number.name.lower())
            seen = Signal(name=f"{number.name.lower()}_event")
            m.d.sync += seen.eq(event & self.running)
            with m.If(started):
                m.d.sync += counter.eq(0)
            with m.Elif(seen):
                m.d.sync += counter.eq(counter + 1)
            counters[number] = counter
        return counters

    def _ring(self, m: Module, started: Value) -> tuple[Signal, Signal]:
        """The last issued instructions; of units that issue together only the first is entered."""
        head, entry = Signal(range(RING_SIZE)), Signal(32)
        taken = Signal()
        m.d.sync += taken.eq(0)
        # Units lie far apart, and that they take an instruction is known late: it is entered a cycle later.
        issued = {
            unit: (
                delay(m, port.take & self.running, 1, name=f"{unit}_taken"),
                delay(m, port.index, 1, name=f"{unit}_index", reset=False),
            )
            for unit, port in by_name(self.progress).items()
        }
        for unit in reversed(self.units):
            take, index = issued[unit]
            with m.If(take):
                m.d.sync += [taken.eq(1), entry.eq(Cat(index, Const(unit.number << 12, 16)))]
        m.submodules.ring = ring = memory.Memory(shape=32, depth=RING_SIZE, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [write.addr.eq(head), write.data.eq(entry), write.en.eq(taken)]
        with m.If(taken):
            m.d.sync += head.eq(head + 1)
        with m.If(started):
            m.d.sync += [head.eq(0), taken.eq(0)]
        address_1 = Signal(range(RING_SIZE))
        m.d.sync += address_1.eq(self.addr)
        m.d.comb += read.addr.eq(address_1)
        return head, read.data
