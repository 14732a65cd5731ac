"""`KernelWindow`: a 3 x 3 window per channel, sliding over rows of activation words."""

from itertools import zip_longest
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import WINDOW, HwConfig, bits_for
from ..isa.timing import DEPTHWISE, MEMORY, MULTIPLY, weight_skew
from .cells import BlockRam, DuplicatedRegister, Multiplier
from .delay import delay

SHORT = 128
"""Words of the depthwise unit's memories, line buffer and sums, up to which they are made of lookup tables."""
TOGETHER = 2
"""Channels of such a line buffer that share registers."""
STAGES = 2
"""Cycles of the depthwise unit's multipliers: a register before the last addition and one behind it. The third of
`MULTIPLY` stands behind the sum of the taps, where it is one instead of nine."""


class WindowCounter(wiring.Component):
    """Which pixels of a strip complete a window: the last of its rows and columns that the stride hits.

    ``step`` advances by a pixel; ``last_column`` and ``last``: it is the last of its row, or strip.
    ``start`` comes before the first. ``hit`` and ``column`` are of the pixel of the next `step`. Strides: at least 1.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        super().__init__(
            {
                "start": In(1),
                "step": In(1),
                "last_column": In(1),
                "last": In(1),
                "stride_rows": In(3),
                "stride_columns": In(3),
                "hit": Out(1),
                "column": Out(bits_for(columns)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        column = Signal.like(self.column, reset_less=True)
        new_row = self.start | self.last_column
        row_hit = self._hit(m, self.start | (self.step & self.last_column), self.start | self.last, self.stride_rows)
        column_hit = self._hit(m, self.start | self.step, new_row, self.stride_columns)
        m.d.comb += [self.hit.eq(row_hit & column_hit), self.column.eq(column)]
        with m.If(self.start | self.step):
            m.d.sync += column.eq(Mux(new_row, 0, column + 1))
        return m

    @staticmethod
    def _hit(m: Module, move: Value, again: Value, stride: Value) -> Signal:
        """Whether the stride hits: the third position since `again`, and every `stride` moves from there on."""
        left, following = Signal(3, reset_less=True), Signal(3)
        hit = Signal(reset_less=True)
        m.d.comb += following.eq(Mux(again, WINDOW - 1, Mux(hit, stride, left) - 1))
        with m.If(move):
            m.d.sync += [left.eq(following), hit.eq(following == 0)]
        return hit


class KernelWindow(wiring.Component):
    """``sums[d] = sum of x[row - 2 + th, column - 2 + tw][d] * w[th, tw, d]`` over 3 x 3 taps, every cycle.

    Pixels ``x`` of D channels come row by row, ``valid`` a cycle before each; ``column`` comes `MEMORY` + 1 cycles
    before its pixel.
    A row has at least three. `latency` cycles after the pixel the sums of the window that it completes show; they mean
    nothing for the first two rows and columns. ``load``, a cycle before a weight word, shifts it in, each byte
    `weight_skew` cycles later; ``swap``, a cycle before the first pixel of a tile, makes the last 3 x 3 x D bytes its
    weights.
    """

    latency = DEPTHWISE

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        super().__init__(
            {
                "x": In(8 * config.depthwise_lanes),
                "column": In(bits_for(config.depthwise)),
                "valid": In(1),
                "swap": In(1),
                "weights": In(8 * config.weight_word),
                "load": In(1),
                "sums": Out(signed(16 + bits_for(WINDOW**2))).array(config.depthwise_lanes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        window, weights = self._window(m), self._weights(m)
        taps = WINDOW**2
        for d in range(self.config.depthwise_lanes):
            terms: list[Value] = []
            for tap in range(taps):
                m.submodules[f"multiplier_{d}_{tap}"] = multiplier = Multiplier(8, 8, style="fabric", stages=STAGES)
                m.d.comb += [
                    multiplier.a.eq(window[tap].word_select(d, 8)),
                    multiplier.b.eq(weights.word_select(tap * self.config.depthwise_lanes + d, 8)),
                ]
                terms.append(multiplier.p)
            level = 0
            while len(terms) > 1:
                level += 1
                terms = [_registered(m, pair, f"sum_{d}_{level}_{n}") for n, pair in enumerate(_pairs(terms))]
            total = delay(m, terms[0], MULTIPLY - STAGES, name=f"total_{d}", reset=False)
            m.d.comb += self.sums[d].eq(total.as_signed())
        return m

    def _window(self, m: Module) -> list[Value]:
        """The words of the nine taps, a cycle after the pixel that completes the window."""
        config, lanes = self.config, self.config.depthwise_lanes
        short = config.depthwise <= SHORT
        # Memories, each with registers of its own for what goes to all.
        parts = lanes // (TOGETHER if lanes % TOGETHER == 0 else 1) if short else 1
        width = len(self.x) // parts
        m.submodules.where = where = DuplicatedRegister(len(self.column), parts)
        m.submodules.when = when = DuplicatedRegister(1, parts)
        m.d.comb += [where.i.eq(self.column), when.i.eq(self.valid)]
        above = Signal(len(self.x)), Signal(len(self.x))  # of the row above, and the one above that
        for part in range(parts):
            lines = BlockRam(width=2 * width, depth=config.depthwise, distributed=short)
            m.submodules[f"lines_{part}"] = lines
            mine = [signal.word_select(part, width) for signal in above]
            m.d.comb += [
                Cat(*mine).eq(lines.r_data),
                lines.r_addr.eq(where.o[part]),
                lines.w_addr.eq(delay(m, where.o[part], MEMORY, name=f"column_{part}", reset=False)),
                lines.w_data.eq(Cat(self.x.word_select(part, width), mine[0])),
                lines.w_en.eq(when.o[part]),
            ]
        taps: list[Value] = []
        for th, row in enumerate((above[1], above[0], self.x)):
            right = delay(m, row, 1, name=f"row_{th}", reset=False)
            middle = delay(m, right, 1, name=f"row_{th}_middle", reset=False)
            taps += [delay(m, middle, 1, name=f"row_{th}_left", reset=False), middle, right]
        return taps

    def _weights(self, m: Module) -> Signal:
        """The weights of the running tile, byte ``tap * D + lane``."""
        config = self.config
        lanes, used = config.depthwise_lanes, WINDOW**2 * config.depthwise_lanes
        m.submodules.swaps = swaps = DuplicatedRegister(1, lanes)
        m.d.comb += swaps.i.eq(self.swap)
        shadow = Signal(8 * config.weight_word * config.depthwise_words, reset_less=True)
        active = Signal(8 * used, reset_less=True)
        early: list[Value] = [self.load]
        loads: dict[int, DuplicatedRegister] = {}
        for byte in range(min(config.weight_word, used)):
            later = weight_skew(config, *divmod(byte, config.cols))
            while len(early) <= later:
                early.append(delay(m, early[-1], 1, name=f"load_{len(early)}"))
            if later not in loads:
                m.submodules[f"loads_{later}"] = loads[later] = DuplicatedRegister(1, lanes)
                m.d.comb += loads[later].i.eq(early[later])
            steps = [shadow.word_select(step, len(self.weights)) for step in range(config.depthwise_words)]
            mine = Cat(step.word_select(byte, 8) for step in steps)
            with m.If(loads[later].o[byte % lanes]):
                m.d.sync += mine.eq(Cat(mine[8:], self.weights.word_select(byte, 8)))
        for byte in range(used):
            with m.If(swaps.o[byte % lanes]):
                m.d.sync += active.word_select(byte, 8).eq(shadow.word_select(byte, 8))
        return active


def _pairs(terms: list[Value]) -> list[tuple[Value, ...]]:
    """Neighbours; the last may be alone."""
    return [tuple(t for t in pair if t is not None) for pair in zip_longest(terms[::2], terms[1::2])]


def _registered(m: Module, terms: tuple[Value, ...], name: str) -> Signal:
    total = sum(terms[1:], terms[0])
    out = Signal(total.shape(), name=name, reset_less=True)
    m.d.sync += out.eq(total)
    return out
