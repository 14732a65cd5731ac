"""`LoadUnit`: weight memory, and the unit that streams its tiles into the array's shadow registers."""

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Load
from ..isa.timing import LOAD_TO_SHADOW, shadow_free
from .cells import BlockRam
from .decode import Decoded
from .delay import delay
from .floorplan import memory_sites


class LoadUnit(wiring.Component):
    """Executes `Load`: one weight word (k rows of the tile) per cycle.

    A tile starts when the one before has been taken (`taken`, `shadow_free` cycles earlier) and then takes `load_steps`
    cycles; `started` or `started_depthwise` pulses with its first step. ``weights`` and ``row_enable[g]`` of the array
    come `LOAD_TO_SHADOW` cycles after their step, ``depthwise_enable`` a cycle before them. The host writes the weight
    memory.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "w_addr": In(bits_for(config.weight_depth)),
                "w_data": In(8 * config.weight_word),
                "w_en": In(config.weight_word),
                "valid": In(1),
                "bits": In(32 * Load.words()),
                "free": Out(1),
                "take": Out(1),
                "taken": In(1),
                "started": Out(1),
                "started_depthwise": Out(1),
                "weights": Out(8 * config.weight_word),
                "row_enable": Out(config.tile_words),
                "depthwise_enable": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        fields = Decoded(Load, self.bits)
        sites = memory_sites(platform, config).get("weights", ())
        width, depth = 8 * config.weight_word, config.weight_depth
        m.submodules.memory = ram = BlockRam(width=width, depth=depth, granularity=8, sites=sites)
        m.d.comb += [ram.w_addr.eq(self.w_addr), ram.w_data.eq(self.w_data), ram.w_en.eq(self.w_en)]

        address = Signal(ram.r_addr.shape(), reset_less=True)
        ram_address = Signal(ram.r_addr.shape(), reset_less=True)  # near the block RAMs
        tiles = Signal(16)
        depthwise = Signal()  # the tiles are for the depthwise unit
        steps = max(config.tile_words, config.depthwise_words) if config.depthwise else config.tile_words
        row = Signal(steps, init=1)  # one-hot step inside a tile
        last_row = Signal()
        free = Signal(init=1)  # the shadow registers may be overwritten
        stepping, starts, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            stepping.eq((tiles != 0) & (~row[0] | free)),
            starts.eq(stepping & row[0]),
            self.started.eq(starts & ~depthwise),
            self.started_depthwise.eq(starts & depthwise),
            last_row.eq(row[config.tile_words - 1]),
            ends.eq(stepping & last_row & (tiles == 1)),
            self.free.eq(tiles == 0),
            self.take.eq(self.valid & self.free),
            self.done.eq(ends),
        ]
        m.d.sync += ram_address.eq(address)
        m.d.comb += ram.r_addr.eq(ram_address)
        with m.If(stepping):
            m.d.sync += [address.eq(address + 1), row.eq(Mux(last_row, 1, row << 1))]
            with m.If(last_row):
                m.d.sync += tiles.eq(tiles - 1)
        with m.If(self.take):
            m.d.sync += [address.eq(fields.base), tiles.eq(fields.tiles)]
        if config.depthwise:
            with m.If(self.take):
                m.d.sync += depthwise.eq(fields.depthwise)
            with m.If(depthwise):
                m.d.comb += last_row.eq(row[config.depthwise_words - 1])

        with m.If(delay(m, self.taken, shadow_free(config) - 1, name="taken")):
            m.d.sync += free.eq(1)
        with m.If(starts):
            m.d.sync += free.eq(0)

        enable = Signal(config.tile_words)
        m.d.comb += [
            enable.eq(row & (stepping & ~depthwise).replicate(config.tile_words)),
            self.row_enable.eq(delay(m, enable, LOAD_TO_SHADOW, name="row_enable")),
        ]
        if config.depthwise:
            loading = delay(m, stepping & depthwise, LOAD_TO_SHADOW - 1, name="depthwise_enable")
            m.d.comb += self.depthwise_enable.eq(loading)
        weights = Signal.like(self.weights, reset_less=True)
        m.d.sync += weights.eq(ram.r_data)
        m.d.comb += self.weights.eq(weights)
        return m
