"""Registers in the pads of the external memory: those of a board's pins, and the same for simulation."""

from typing import Any

from amaranth import Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from ...external import ExternalMemory
from ..cells import BidirectionalPads
from ..ports import by_name
from .controller import pins

NAMES = {"cke": "clk_en", "cs": "cs", "ras": "ras", "cas": "cas", "we": "we", "dqm": "dqm", "ba": "ba", "a": "a"}
"""Outputs, and what the platform's resource calls them (``SDRAMResource`` of amaranth-boards). Pins that are not there
are tied on the board (clock enable, chip select, data masks)."""


class SimulatedPads(wiring.Component):
    """Pads for simulation: `pins` towards the `memory`, and those of the controller, which are `inner`."""

    def __init__(self, external: ExternalMemory) -> None:
        super().__init__({"memory": Out(pins(external)), "inner": In(pins(external))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        inner, memory = by_name(self.inner), by_name(self.memory)
        m.d.sync += [memory[name].eq(inner[name]) for name in memory if name != "dq_i"]
        m.d.sync += self.inner.dq_i.eq(self.memory.dq_i)
        return m


class DeviceWithPads(wiring.Component):
    """A device whose external memory's pins have the registers of a board's pads; its other members as they are."""

    def __init__(self, device: Any, external: ExternalMemory) -> None:
        self.device, self.memory = device, external
        super().__init__(dict(device.signature.members))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.device = self.device
        m.submodules.pads = pads = SimulatedPads(self.memory)
        wiring.connect(m, self.device.external, pads.inner)
        wiring.connect(m, pads.memory, wiring.flipped(self.external))
        mine, its = by_name(self), by_name(self.device)
        for name, member in self.signature.members.items():
            if member.is_port:
                m.d.comb += mine[name].eq(its[name]) if member.flow == Out else its[name].eq(mine[name])
        return m


def with_pads(device: Any) -> Any:
    """A device for simulation: with registers in the pads of its external memory, if it has one."""
    external = device.config.external
    return device if external is None else DeviceWithPads(device, external)


class BoardPads(wiring.Component):
    """The pins of a platform's resource, with registers in the pads; its clock leaves inverted.

    The clock of the memory rises in the middle of each cycle, so that commands and data have half a cycle of setup and
    hold at the memory.
    """

    def __init__(self, external: ExternalMemory, resource: str) -> None:
        self.resource = resource
        super().__init__({"inner": In(pins(external))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        raw = platform.request(self.resource, 0, dir=self._undirected(platform))
        m.submodules.clock = clock = io.DDRBuffer("o", raw.clk)
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        inner = by_name(self.inner)
        for name, called in NAMES.items():
            if hasattr(raw, called):
                port, value = getattr(raw, called), inner[name]
                m.submodules[f"pad_{name}"] = buffer = io.FFBuffer("o", port)
                m.d.comb += buffer.o.eq(value[: len(port)])
        m.submodules.pad_dq = data = BidirectionalPads(raw.dq)
        m.d.comb += [data.o.eq(self.inner.dq_o), data.oe.eq(self.inner.dq_oe), self.inner.dq_i.eq(data.i)]
        return m

    def _undirected(self, platform: Any) -> dict[str, str]:
        """Every pin of the resource as a plain port."""
        return {subsignal.name: "-" for subsignal in platform.lookup(self.resource, 0).ios}
