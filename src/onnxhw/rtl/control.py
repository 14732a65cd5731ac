"""`RunControl`: control registers, run and watchdog, counters, the ring of last instructions."""

from collections.abc import Mapping
from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.memory import RING_SIZE, Control
from ..isa.units import units_of
from .fetch import COUNT_BITS

ADDRESS_BITS = 6
GROUP_BITS = 3
"""Bits of the address of a register in its group: groups are read first, and then one of them is chosen."""


class RunControl(wiring.Component):
    """Everything behind `onnxhw.isa.memory.Control`.

    A run starts (`running` rises) two cycles after RUN was written and ends `FINISH` cycles after the last
    completion, or when the cycle count reaches a non-zero BUDGET, or two after 0 was written to RUN. Per unit:
    ``done_reads`` counts a vector instruction that has read its operands, ``completed_reads`` is the count.
    ``done_UNIT`` counts a completion, ``completed_UNIT`` is the count, ``count_UNIT`` the program's length.
    ``input_free`` tells, a cycle late, that the run has done with its inputs. A read takes 2 cycles.
    """

    latency = 2

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.units = units_of(config)
        members: dict[str, In | Out] = {
            "addr": In(ADDRESS_BITS),
            "w_en": In(1),
            "w_data": In(32),
            "r_data": Out(32),
            "running": Out(1),
            "input_free": Out(1),
            "vector_busy": In(1),
            "done_reads": In(1),
            "completed_reads": Out(COUNT_BITS),
        }
        for unit in self.units:
            if unit.ports.streams:
                members |= {f"starved_{unit}": In(1), f"streaming_{unit}": In(1)}
            members |= {
                f"done_{unit}": In(1),
                f"take_{unit}": In(1),
                f"index_{unit}": In(COUNT_BITS),
                f"waiting_{unit}": In(1),
                f"completed_{unit}": Out(COUNT_BITS),
                f"count_{unit}": Out(COUNT_BITS),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        start, stop = Signal(), Signal()
        ended, overrun = Signal(), Signal()
        cycles, budget = Signal(32), Signal(32)
        # A write to Control.RUN starts or stops a cycle late: what starts lies all over the device.
        begin, abort = Signal(), Signal()
        written = self.w_en & (self.addr == Control.RUN)
        m.d.sync += [begin.eq(written & self.w_data[0]), abort.eq(written & ~self.w_data[0])]
        m.d.comb += start.eq(begin & ~self.running)

        finished = []
        for unit in self.units:
            completed, count = getattr(self, f"completed_{unit}"), getattr(self, f"count_{unit}")
            finished_unit = Signal(name=f"finished_{unit}")
            m.d.sync += finished_unit.eq((completed == count) & self.running)
            finished.append(finished_unit)
            with m.If(getattr(self, f"done_{unit}") & self.running):
                m.d.sync += completed.eq(completed + 1)
            with m.If(start):
                m.d.sync += completed.eq(0)
        with m.If(self.done_reads & self.running):
            m.d.sync += self.completed_reads.eq(self.completed_reads + 1)
        with m.If(start):
            m.d.sync += self.completed_reads.eq(0)
        over = Signal()
        m.d.sync += over.eq((cycles + 2 >= budget) & (budget != 0) & self.running)
        m.d.comb += stop.eq(self.running & (Cat(*finished).all() | over | abort))

        with m.If(self.running):
            m.d.sync += cycles.eq(cycles + 1)
        with m.If(stop):
            m.d.sync += [self.running.eq(0), ended.eq(1), overrun.eq(~Cat(*finished).all())]
        with m.If(start):
            m.d.sync += [self.running.eq(1), ended.eq(0), overrun.eq(0), cycles.eq(0)]

        registers: dict[int, Signal | Const] = {
            Control.RUN: Cat(self.running, ended, overrun),
            Control.BUDGET: budget,
            Control.CYCLES: cycles,
        }
        for unit in self.units:
            count = unit.registers.count
            registers[count] = getattr(self, f"count_{unit}")
            registers[unit.registers.done] = getattr(self, f"completed_{unit}")
            with m.If(self.w_en & (self.addr == count) & ~self.running):
                m.d.sync += getattr(self, f"count_{unit}").eq(self.w_data)
        with m.If(self.w_en & (self.addr == Control.BUDGET) & ~self.running):
            m.d.sync += budget.eq(self.w_data)
        free_from = Signal(2 * COUNT_BITS)
        with m.If(self.w_en & (self.addr == Control.INPUT_FREE) & ~self.running):
            m.d.sync += free_from.eq(self.w_data)
        registers[Control.INPUT_FREE] = free_from
        done_with = [
            self.completed_array >= free_from[:COUNT_BITS],
            self.completed_vector >= free_from[COUNT_BITS:],
        ]
        m.d.sync += self.input_free.eq(Cat(*done_with, self.running, free_from != 0).all())
        fingerprint = int(self.config.fingerprint, 16)
        registers[Control.FINGERPRINT_LOW] = Const(fingerprint & 0xFFFFFFFF, 32)
        registers[Control.FINGERPRINT_HIGH] = Const(fingerprint >> 32, 32)
        registers |= self._counters(m, start)
        head, ring = self._ring(m, start)
        registers[Control.RING_HEAD] = head

        self._answer(m, registers, ring)
        return m

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

    def _counters(self, m: Module, start: Signal) -> dict[int, Signal]:
        """Stall and busy counters."""
        events: dict[Control, Value] = {Control.BUSY_VECTOR: self.vector_busy}
        for unit in self.units:
            registers = unit.registers
            events[registers.stall_order] = getattr(self, f"waiting_{unit}")
            if registers.stall_weights is not None and registers.busy is not None:
                events[registers.stall_weights] = getattr(self, f"starved_{unit}")
                events[registers.busy] = getattr(self, f"streaming_{unit}")
        counters: dict[int, Signal] = {}
        for number, event in events.items():
            counter = Signal(32, name=number.name.lower())
            seen = Signal(name=f"{number.name.lower()}_event")
            m.d.sync += seen.eq(event & self.running)
            with m.If(start):
                m.d.sync += counter.eq(0)
            with m.Elif(seen):
                m.d.sync += counter.eq(counter + 1)
            counters[number] = counter
        return counters

    def _ring(self, m: Module, start: Signal) -> tuple[Signal, Signal]:
        """The last issued instructions; of units that issue together only the first is entered."""
        head, entry = Signal(range(RING_SIZE)), Signal(32)
        taken = Signal()
        m.d.sync += taken.eq(0)
        for unit in reversed(self.units):
            with m.If(getattr(self, f"take_{unit}") & self.running):
                index = getattr(self, f"index_{unit}")
                m.d.sync += [taken.eq(1), entry.eq(Cat(index, Const(unit.number << 12, 16)))]
        m.submodules.ring = ring = memory.Memory(shape=32, depth=RING_SIZE, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [write.addr.eq(head), write.data.eq(entry), write.en.eq(taken)]
        with m.If(taken):
            m.d.sync += head.eq(head + 1)
        with m.If(start):
            m.d.sync += [head.eq(0), taken.eq(0)]
        address_1 = Signal(range(RING_SIZE))
        m.d.sync += address_1.eq(self.addr)
        m.d.comb += read.addr.eq(address_1)
        return head, read.data
