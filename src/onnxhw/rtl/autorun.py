"""Starting a program that was baked into the core's memories, without a host."""

from dataclasses import dataclass
from typing import Any

from amaranth import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa.memory import Control


@dataclass(frozen=True)
class Standalone:
    """What is not in the memories: the instruction counts and the cycle budget of the baked program.

    `at_reset` starts the first run by itself; every press of the start button starts one.
    """

    load_count: int
    array_count: int
    vector_count: int
    budget: int
    at_reset: bool = False

    def writes(self) -> list[tuple[Control, int]]:
        """The control registers and their values."""
        return [
            (Control.LOAD_COUNT, self.load_count),
            (Control.ARRAY_COUNT, self.array_count),
            (Control.VECTOR_COUNT, self.vector_count),
            (Control.BUDGET, self.budget),
        ]


class Autorun(wiring.Component):
    """Writes the counts after reset, then 1 to Control.RUN for each pulse of `start`.

    A host that loads another program later overwrites the counts; the button then starts that one.

    Members
    -------
    start : In(1), one cycle asks for a run; ignored while `running`.
    addr, data, we : the access to CONTROL it wants; held until `granted`.
    granted : In(1), the host port is free this cycle and the access is made.
    """

    def __init__(self, program: Standalone) -> None:
        self.program = program
        super().__init__(
            {
                "start": In(1),
                "running": In(1),
                "granted": In(1),
                "addr": Out(24),
                "data": Out(32),
                "we": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        writes = self.program.writes()
        index, wanted = Signal(range(len(writes))), Signal(init=self.program.at_reset)
        with m.If(self.start):
            m.d.sync += wanted.eq(1)
        with m.FSM():
            with m.State("COUNTS"):
                m.d.comb += [
                    self.we.eq(1),
                    self.addr.eq(Array(Const(int(register), 24) for register, _ in writes)[index]),
                    self.data.eq(Array(Const(value, 32) for _, value in writes)[index]),
                ]
                with m.If(self.granted):
                    m.d.sync += index.eq(index + 1)
                    with m.If(index == len(writes) - 1):
                        m.next = "WAIT"
            with m.State("WAIT"), m.If(wanted):
                m.d.sync += wanted.eq(0)
                with m.If(~self.running):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += [self.we.eq(1), self.addr.eq(Control.RUN), self.data.eq(1)]
                with m.If(self.granted):
                    m.next = "WAIT"
        return m
