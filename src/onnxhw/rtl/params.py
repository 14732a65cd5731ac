"""`ParamFetch`: parameter memory, and the entries of the next vector instruction."""

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.timing import MEMORY
from .cells import BlockRam
from .delay import delay

ENTRY_BITS = 64


class ParamFetch(wiring.Component):
    """Copies ``count`` entries from ``base`` on into the spare half of a lane-wide register file.

    `go` starts the copy in the next cycle, entry j of the instruction going to lane ``j % Q`` of group
    ``j // Q`` (or to every lane of group 0, unless `per_channel`); `complete` rises ``count + MEMORY`` cycles
    after that. `take` makes the half the active one. ``entries`` shows group ``group`` of the active half, at once.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "w_addr": In(bits_for(config.param_depth)),
                "w_data": In(ENTRY_BITS),
                "w_en": In(ENTRY_BITS // 8),
                "go": In(1),
                "base": In(16),
                "groups": In(6),
                "per_channel": In(1),
                "complete": Out(1),
                "take": In(1),
                "group": In(6),
                "entries": Out(ENTRY_BITS).array(config.lanes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lanes = self.config.lanes
        groups = bits_for(max(self.config.col_groups, self.config.lane_groups))
        m.submodules.memory = ram = BlockRam(width=ENTRY_BITS, depth=self.config.param_depth, granularity=8)
        m.d.comb += [ram.w_addr.eq(self.w_addr), ram.w_data.eq(self.w_data), ram.w_en.eq(self.w_en)]

        address = Signal(ram.r_addr.shape())
        reading, ends = Signal(), Signal()
        lane = Signal(lanes, init=1)
        group, half = Signal(groups), Signal()
        m.d.comb += [
            ram.r_addr.eq(address),
            ends.eq(reading & (~self.per_channel | (lane[-1] & (group == self.groups - 1)))),
        ]
        with m.If(reading):
            m.d.sync += [address.eq(address + 1), lane.eq(lane.rotate_left(1))]
            with m.If(lane[-1]):
                m.d.sync += group.eq(group + 1)
        with m.If(self.go):
            m.d.sync += [reading.eq(1), address.eq(self.base), lane.eq(1), group.eq(0)]
        with m.Elif(ends):
            m.d.sync += reading.eq(0)

        slot = delay(m, Cat(group, half), MEMORY, name="slot", reset=False)
        enable = Signal(lanes)
        m.d.comb += enable.eq(reading.replicate(lanes) & (lane | (~self.per_channel).replicate(lanes)))
        enable = delay(m, enable, MEMORY, name="enable")
        with m.If(delay(m, ends, MEMORY, name="ends")):
            m.d.sync += self.complete.eq(1)
        with m.If(self.take):
            m.d.sync += [self.complete.eq(0), half.eq(~half)]

        shown = Cat(self.group[:groups], ~half)
        for q in range(lanes):
            m.submodules[f"file_{q}"] = file = memory.Memory(shape=ENTRY_BITS, depth=2 << groups, init=[])
            write, read = file.write_port(), file.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(slot),
                write.data.eq(ram.r_data),
                write.en.eq(enable[q]),
                read.addr.eq(shown),
                self.entries[q].eq(read.data),
            ]
        return m
