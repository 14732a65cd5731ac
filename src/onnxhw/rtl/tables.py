"""`Tables`: 256-entry int8 functions, one look-up per lane and cycle."""

from typing import Any

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import MEMORY
from .cells import BlockRam


class Tables(wiring.Component):
    """``o[q] = table[index][i[q] + 128]``, `MEMORY` cycles later. The host writes all copies at once."""

    latency = MEMORY

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "w_addr": In(bits_for(config.tables * 256)),
                "w_data": In(8),
                "w_en": In(1),
                "index": In(4),
                "i": In(8).array(config.lanes),
                "o": Out(8).array(config.lanes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for q in range(self.config.lanes):
            ram = BlockRam(width=8, depth=self.config.tables * 256, role=f"tables_{q}")
            m.submodules[f"lane_{q}"] = ram
            m.d.comb += [
                ram.w_addr.eq(self.w_addr),
                ram.w_data.eq(self.w_data),
                ram.w_en.eq(self.w_en),
                ram.r_addr.eq(Cat(self.i[q][:7], ~self.i[q][7], self.index)),
                self.o[q].eq(ram.r_data),
            ]
        return m
