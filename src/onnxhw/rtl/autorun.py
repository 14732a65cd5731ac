"""Starting a program that was baked into the core's memories, without a host."""

from dataclasses import dataclass
from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa.input_port import REGION_STRIDE, REGIONS
from ..isa.memory import Control, Space
from .cells import BlockRam

MEMORY_NAME = "autorun"
"""Name of the memory whose contents (`Standalone.words`) a standalone bitstream replaces."""
TABLE = REGIONS * REGION_STRIDE
"""Where in it the table of inputs begins, which is as long."""


@dataclass(frozen=True)
class Standalone:
    """What a baked program needs beside its memories: its instruction counts, in the order of `isa.UNITS`, cycle
    budget, and the table of its inputs (`program.input_regions.input_table`), for a host that sends some.

    `at_reset` starts the first run by itself; every press of the start button starts one.
    """

    counts: tuple[int, ...]
    budget: int
    at_reset: bool = False
    table: tuple[int, ...] = ()

    def words(self) -> tuple[int, ...]:
        """Contents of `Autorun`'s memory: flags, then Control.LOAD_COUNT .. BUDGET at their register numbers; from
        `TABLE` on the table."""
        head = (1 | self.at_reset << 1, *self.counts, self.budget)
        return (*head, *[0] * (TABLE - len(head)), *self.table) if self.table else head


class Autorun(wiring.Component):
    """After reset writes counts and table that its memory holds, then 1 to Control.RUN for each pulse of `start`.

    Does nothing if the memory's first word is 0, as in a bitstream without a baked program. A host that
    loads another program later overwrites the counts; the button then starts that one, once it is complete.

    Members
    -------
    start : In(1), one cycle asks for a run; ignored unless a complete program is `loaded`, and by run control in a run.
    baked : Out(1), one cycle tells that the counts are written: the baked program is complete.
    space, addr, data, we : the access to CONTROL or INPUT_TABLE it wants; held until `granted`.
    granted : In(1), the host port is free this cycle and the access is made.
    """

    def __init__(self, program: Standalone | None = None) -> None:
        self.program = program
        super().__init__(
            {
                "start": In(1),
                "loaded": In(1),
                "baked": Out(1),
                "granted": In(1),
                "space": Out(4),
                "addr": Out(24),
                "data": Out(32),
                "we": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        words = self.program.words() if self.program else ()
        m.submodules.memory = mem = BlockRam(width=32, depth=2 * TABLE, init=words, name=MEMORY_NAME, role="link_start")
        at, settled, wanted, starting = Signal(range(2 * TABLE)), Signal(2), Signal(), Signal()
        of_table = at[-1]
        m.d.comb += [
            mem.r_addr.eq(at),
            self.space.eq(Mux(of_table, Space.INPUT_TABLE, Space.CONTROL)),
            self.addr.eq(Mux(starting, Control.RUN, at[:-1])),
            self.data.eq(Mux(starting, 1, mem.r_data)),
        ]
        m.d.sync += settled.eq(settled + 1)
        with m.FSM():
            with m.State("FLAGS"), m.If(settled == 3):
                m.d.sync += [wanted.eq(mem.r_data[1]), at.eq(Control.LOAD_COUNT)]
                m.next = "OFF"
                with m.If(mem.r_data[0]):
                    m.next = "FETCH"
            with m.State("OFF"):
                pass
            with m.State("FETCH"), m.If(settled == 3):
                m.next = "COUNT"
            with m.State("COUNT"):
                m.d.comb += self.we.eq(1)
                with m.If(self.granted):
                    m.d.sync += [at.eq(at + 1), settled.eq(0)]
                    m.next = "FETCH"
                    with m.If(at == Control.BUDGET):
                        m.d.sync += at.eq(TABLE)
                    with m.If(at == 2 * TABLE - 1):
                        m.next = "BAKED"
            with m.State("BAKED"):
                m.d.comb += self.baked.eq(1)
                m.next = "READY"
            with m.State("READY"):
                m.next = "WAIT"
            _start_when_wanted(m, self, wanted, starting)
        return m


class StartLoaded(wiring.Component):
    """Writes 1 to Control.RUN once a program is loaded after reset, and for each pulse of `start`; for a device whose
    program comes from flash.

    Members as of `Autorun`, but for `baked`; `busy` : In(1), a command is performed: the one that completes the program
    still writes its counts.
    """

    def __init__(self) -> None:
        super().__init__({
            "start": In(1), "loaded": In(1), "busy": In(1), "granted": In(1),
            "space": Out(4), "addr": Out(24), "data": Out(32), "we": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        wanted, starting = Signal(init=1), Signal()
        m.d.comb += [self.space.eq(Space.CONTROL), self.addr.eq(Control.RUN), self.data.eq(1)]
        with m.FSM():
            with m.State("LOADING"), m.If(self.loaded & ~self.busy):
                m.next = "WAIT"
            _start_when_wanted(m, self, wanted, starting)
        return m


def _start_when_wanted(m: Module, port: Any, wanted: Signal, starting: Signal) -> None:
    """The states WAIT and START of both: a run is asked for once it is `wanted` and the program complete. In a run
    nothing comes of it: run control takes no second start."""
    with m.State("WAIT"):
        m.d.sync += wanted.eq(port.start)
        with m.If(wanted & port.loaded):
            m.next = "START"
    with m.State("START"):
        m.d.comb += [port.we.eq(port.loaded), starting.eq(1)]
        with m.If(port.granted | ~port.loaded):
            m.d.sync += wanted.eq(0)
            m.next = "WAIT"
