"""`LoadUnit`: weight memory, and the unit that streams its tiles into the array's shadow registers."""

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from ...config import HwConfig, bits_for
from ...isa.external_instructions import kinds
from ...isa.memory import Space
from ...isa.timing import LOAD_TO_SHADOW, shadow_free
from ...isa.units import Unit
from ..decode import Decoded
from ..delay import delay
from ..ports import UnitComponent, by_name
from ..weights import WeightMemory


class LoadUnit(UnitComponent):
    """Executes `Load`: one weight word (k rows of the tile) per cycle.

    A tile starts when the one before of its unit has been taken (`shadow_free` cycles earlier) and then takes
    `load_steps` cycles; `started` pulses with its first step. ``weights`` and the array's ``enable`` come
    `LOAD_TO_SHADOW` cycles after their step (see `WeightMemory`), the depthwise unit's ``enable`` a cycle before them.
    The weight memory is written by the host.
    """

    UNIT = Unit.LOAD

    def __init__(self, config: HwConfig) -> None:
        super().__init__(
            config,
            {
                "w_addr": In(bits_for(config.weight_depth)),
                "w_data": In(8 * config.weight_word),
                "w_en": In(config.weight_word),
            },
        )
        self.memories[Space.WEIGHT] = self

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        issue, array = self.issue, self.tiles.array
        fields = Decoded(kinds(config)[Unit.LOAD], issue.bits)
        m.submodules.memory = memory = WeightMemory(config)
        m.d.comb += [memory.w_addr.eq(self.w_addr), memory.w_data.eq(self.w_data), memory.w_en.eq(self.w_en)]

        address = Signal.like(memory.r_addr, reset_less=True)
        following = Signal.like(address, reset_less=True)  # of the first column tile's next tile
        across = Signal.like(address, reset_less=True)  # from the last word of a tile to the next column tile
        tiles, columns, left = Signal(16, reset_less=True), Signal(12, reset_less=True), Signal(12, reset_less=True)
        # What the counters say, worked out a step ahead: something is left; the last tile; its last column tile; there
        # is only one.
        active, last_tile, last_column, single = Signal(), Signal(), Signal(), Signal()
        depthwise = Signal()  # the tiles are for the depthwise unit
        steps = max(config.tile_words, config.depthwise_words) if config.depthwise else config.tile_words
        row = Signal(steps, init=1)  # one-hot step inside a tile
        last_row = Signal()
        stepping, starts, ends, now_free = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            now_free.eq(self._free(m, Unit.ARRAY, array, shadow_free(config))),
            stepping.eq(active & (~row[0] | now_free)),
            starts.eq(stepping & row[0]),
            array.started.eq(starts & ~depthwise),
            last_row.eq(row[config.tile_words - 1]),
            ends.eq(stepping & last_row & last_tile & last_column),
            issue.free.eq(~active),
            issue.take.eq(issue.valid & issue.free),
            self.status.done.eq(ends),
            memory.r_addr.eq(address),
            *(port.weights.eq(memory.r_data) for port in by_name(self.tiles).values()),
        ]
        with m.If(stepping):
            m.d.sync += [address.eq(address + 1), row.eq(Mux(last_row, 1, row << 1))]
            with m.If(last_row & ~last_column):
                m.d.sync += [address.eq(address + across), left.eq(left - 1), last_column.eq(left == 1)]
            with m.Elif(last_row):
                m.d.sync += [
                    address.eq(following),
                    following.eq(following + self._words(depthwise)),
                    left.eq(columns),
                    last_column.eq(single),
                    tiles.eq(tiles - 1),
                    last_tile.eq(tiles == 2),
                ]
        with m.If(ends):
            m.d.sync += active.eq(0)
        with m.If(issue.take):
            m.d.sync += [
                address.eq(fields.base),
                following.eq(fields.base + self._words(fields.depthwise)),
                across.eq(fields.nt_step + 1 - self._words(fields.depthwise)),
                columns.eq(fields.nt_n - 1),
                left.eq(fields.nt_n - 1),
                tiles.eq(fields.tiles),
                active.eq(1),
                last_tile.eq(fields.tiles == 1),
                last_column.eq(fields.nt_n == 1),
                single.eq(fields.nt_n == 1),
            ]
        enable = Signal(config.tile_words)
        m.d.comb += [
            enable.eq(row & (stepping & ~depthwise).replicate(config.tile_words)),
            array.enable.eq(delay(m, enable, LOAD_TO_SHADOW, name="row_enable")),
        ]
        if config.depthwise:
            window = self.tiles.depthwise
            with m.If(issue.take):
                m.d.sync += depthwise.eq(fields.depthwise)
            free = self._free(m, Unit.DEPTHWISE, window, shadow_free(config, 1))
            with m.If(depthwise):
                m.d.comb += [now_free.eq(free), last_row.eq(row[config.depthwise_words - 1])]
            m.d.comb += [
                window.started.eq(starts & depthwise),
                window.enable.eq(delay(m, stepping & depthwise, LOAD_TO_SHADOW - 1, name="depthwise_enable")),
            ]
        return m

    @staticmethod
    def _free(m: Module, unit: Unit, tiles: Any, wait: int) -> Value:
        """Whether a unit's shadow registers may be overwritten."""
        free = Signal(init=1, name=f"free_{unit}")
        with m.If(delay(m, tiles.taken, max(0, wait - 1), name=f"taken_{unit}")):
            m.d.sync += free.eq(1)
        with m.If(tiles.started):
            m.d.sync += free.eq(0)
        return free | tiles.taken if wait == 0 else free

    def _words(self, depthwise: Value) -> Value | int:
        """Weight words of a tile."""
        config = self.config
        return Mux(depthwise, config.depthwise_words, config.tile_words) if config.depthwise else config.tile_words
