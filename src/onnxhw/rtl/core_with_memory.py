"""`CoreWithMemory`: the core with its external memory's controller, for simulation without a link."""

from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..config import HwConfig
from .core import Core
from .external.controller import Controller, pins
from .external.pads import SimulatedPads
from .ports import by_name
from .top import connect_controller


class CoreWithMemory(wiring.Component):
    """`Core` and `Controller`; members as of `Core`, and ``external``, the memory's pins behind registers as of pads,
    and ``initialised`` of the controller. The host does not reach external memory."""

    def __init__(self, config: HwConfig) -> None:
        assert config.external is not None
        self.config, self.core = config, Core(config)
        self.controller, self.pads = Controller(config.external), SimulatedPads(config.external)
        mine = {
            name: member
            for name, member in self.core.signature.members.items()
            if name not in ("external", "asks", "started", "clear", "stopped")
        }
        super().__init__({**mine, "external": Out(pins(config.external)), "initialised": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.core, m.submodules.controller, m.submodules.pads = self.core, self.controller, self.pads
        connect_controller(m, self.core, self.controller)
        wiring.connect(m, self.controller.memory, self.pads.inner)
        wiring.connect(m, self.pads.memory, wiring.flipped(self.external))
        m.d.comb += self.initialised.eq(self.controller.initialised)
        mine, its = by_name(self), by_name(self.core)
        for name, member in self.signature.members.items():
            if name in its and member.is_port and name != "external":
                m.d.comb += mine[name].eq(its[name]) if member.flow == Out else its[name].eq(mine[name])
        return m
