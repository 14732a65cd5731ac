"""`LoadUnit`: weight memory, and the unit that streams its tiles into the array's shadow registers."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig, bits_for
from ..isa.instructions import Load
from ..isa.timing import LOAD_TO_SHADOW, shadow_free
from .decode import Decoded
from .delay import delay
from .weights import WeightMemory


class LoadUnit(wiring.Component):
    """Executes `Load`: one weight word (k rows of the tile) per cycle.

    A tile starts when the array has taken the one before (`taken`, `shadow_free` cycles earlier, or now) and then
    takes R / k cycles; `started` pulses with its first step. ``row_enable[g]`` and ``weights`` reach the array
    `LOAD_TO_SHADOW` cycles after their step (see `WeightMemory`). The weight memory is written by the host.
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
                "weights": Out(8 * config.weight_word),
                "row_enable": Out(config.tile_words),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        fields = Decoded(Load, self.bits)
        m.submodules.memory = memory = WeightMemory(config)
        m.d.comb += [memory.w_addr.eq(self.w_addr), memory.w_data.eq(self.w_data), memory.w_en.eq(self.w_en)]

        address = Signal.like(memory.r_addr, reset_less=True)
        following = Signal.like(address, reset_less=True)  # of the first column tile's next tile
        across = Signal.like(address, reset_less=True)  # from the last word of a tile to the next column tile
        tiles, columns, left = Signal(16), Signal(12, reset_less=True), Signal(12, reset_less=True)
        row = Signal(config.tile_words, init=1)  # one-hot step inside a tile
        free = Signal(init=1)  # the shadow registers may be overwritten
        stepping, ends, now_free = Signal(), Signal(), Signal()
        wait = shadow_free(config)
        m.d.comb += [
            now_free.eq(free | (self.taken if wait == 0 else 0)),
            stepping.eq((tiles != 0) & (~row[0] | now_free)),
            self.started.eq(stepping & row[0]),
            ends.eq(stepping & row[-1] & (tiles == 1) & (left == 0)),
            self.free.eq(tiles == 0),
            self.take.eq(self.valid & self.free),
            self.done.eq(ends),
            memory.r_addr.eq(address),
        ]
        with m.If(stepping):
            m.d.sync += [address.eq(address + 1), row.eq(row.rotate_left(1))]
            with m.If(row[-1] & (left != 0)):
                m.d.sync += [address.eq(address + across), left.eq(left - 1)]
            with m.Elif(row[-1]):
                m.d.sync += [
                    address.eq(following),
                    following.eq(following + config.tile_words),
                    left.eq(columns),
                    tiles.eq(tiles - 1),
                ]
        with m.If(self.take):
            m.d.sync += [
                address.eq(fields.base),
                following.eq(fields.base + config.tile_words),
                across.eq(fields.nt_step - (config.tile_words - 1)),
                columns.eq(fields.nt_n - 1),
                left.eq(fields.nt_n - 1),
                tiles.eq(fields.tiles),
            ]

        with m.If(delay(m, self.taken, max(0, wait - 1), name="taken")):
            m.d.sync += free.eq(1)
        with m.If(self.started):
            m.d.sync += free.eq(0)

        enable = Signal(config.tile_words)
        m.d.comb += enable.eq(row & stepping.replicate(config.tile_words))
        m.d.comb += self.row_enable.eq(delay(m, enable, LOAD_TO_SHADOW, name="row_enable"))
        m.d.comb += self.weights.eq(memory.r_data)
        return m
