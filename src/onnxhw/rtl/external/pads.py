"""Registers in the pads of the external memory: those of a board's pins, and the same for simulation."""

from typing import Any

from amaranth import Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import Out

from ...external import ExternalMemory
from ..cells import BidirectionalPads
from .controller import pins

NAMES = {"cke": "clk_en", "cs": "cs", "ras": "ras", "cas": "cas", "we": "we", "dqm": "dqm", "ba": "ba", "a": "a"}
"""Outputs, and what the platform's resource calls them (``SDRAMResource`` of amaranth-boards). Pins that are not there
are tied on the board (clock enable, chip select, data masks)."""


class SimulatedPads(wiring.Component):
    """Pads for simulation: members `pins` towards the memory, and ``inner_...`` towards the controller."""

    def __init__(self, external: ExternalMemory) -> None:
        outer = pins(external)
        super().__init__({**outer, **{f"inner_{name}": member.flip() for name, member in outer.items()}})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for name in (*NAMES, "dq_o", "dq_oe"):
            m.d.sync += getattr(self, name).eq(getattr(self, f"inner_{name}"))
        m.d.sync += self.inner_dq_i.eq(self.dq_i)
        return m


class DeviceWithPads(wiring.Component):
    """A device whose external memory's pins have the registers of a board's pads; its other members as they are."""

    def __init__(self, device: Any, external: ExternalMemory) -> None:
        self.device, self.external = device, external
        super().__init__(dict(device.signature.members))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.device = self.device
        m.submodules.pads = pads = SimulatedPads(self.external)
        memory = pins(self.external)
        for name, member in self.signature.members.items():
            mine, inner, pin = getattr(self, name), getattr(self.device, name), name.removeprefix("external_")
            if name == pin or pin not in memory:
                m.d.comb += mine.eq(inner) if member.flow == Out else inner.eq(mine)
                continue
            outside, inside = getattr(pads, pin), getattr(pads, f"inner_{pin}")
            chain = (mine, outside, inside, inner) if member.flow == Out else (inner, inside, outside, mine)
            m.d.comb += [chain[0].eq(chain[1]), chain[2].eq(chain[3])]
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
        self.external, self.resource = external, resource
        super().__init__({f"inner_{name}": member.flip() for name, member in pins(external).items()})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        raw = platform.request(self.resource, 0, dir=self._undirected(platform))
        m.submodules.clock = clock = io.DDRBuffer("o", raw.clk)
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        for name, called in NAMES.items():
            if hasattr(raw, called):
                port, value = getattr(raw, called), getattr(self, f"inner_{name}")
                m.submodules[f"pad_{name}"] = buffer = io.FFBuffer("o", port)
                m.d.comb += buffer.o.eq(value[: len(port)])
        m.submodules.pad_dq = data = BidirectionalPads(raw.dq)
        m.d.comb += [data.o.eq(self.inner_dq_o), data.oe.eq(self.inner_dq_oe), self.inner_dq_i.eq(data.i)]
        return m

    def _undirected(self, platform: Any) -> dict[str, str]:
        """Every pin of the resource as a plain port."""
        return {subsignal.name: "-" for subsignal in platform.lookup(self.resource, 0).ios}
