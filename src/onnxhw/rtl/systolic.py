"""`SystolicArray`: the weight-stationary array of R x C products per cycle."""

from typing import Any

from amaranth import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.timing import COLUMN_HOP, array_pipeline, column_hops, weight_hops
from .cells import primitives_of
from .delay import delay
from .processing_element import ActivationElement, ProcessingElement


class SystolicArray(wiring.Component):
    """``sums[c] = sum_r x[r] * w[r, c]``, `latency` cycles after ``x``, every cycle; with the fast inner product
    ``+ sum_r w[2 * r, c] * w[2 * r + 1, c]``.

    ``swap`` precedes the first ``x`` of a tile by one cycle. ``weights`` (k rows of C bytes) with ``row_enable``
    (one-hot, R / k row groups) fill the shadow registers. All skewing happens inside: element e (of one row, or of a
    pair) and column c see operands and swap e + `column_hops` cycles later, weights those of the column and of
    `weight_hops`. Only where k = R, ``weights`` come skewed (`weight_skew`). The fast inner product has a column of
    activation products in the west, so that all reach column 0 a cycle later; at the foot of each column they are
    subtracted.

    Nothing is reset: what is on its way when a run is stopped is a swap, which the next tile's own repeats, or a load
    of shadow registers, which the next tile overwrites.
    """

    def __init__(self, config: HwConfig) -> None:
        self.config = config
        self.latency = array_pipeline(config)
        super().__init__(
            {
                "x": In(8 * config.rows),
                "swap": In(1),
                "weights": In(8 * config.weight_word),
                "row_enable": In(config.tile_words),
                "sums": Out(signed(config.psum_bits)).array(config.cols),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        bits = 8 * config.element_rows
        elements = range(config.rows // config.element_rows)
        columns = range(-1 if config.fast else 0, config.cols)
        roles = [self._role(e, c) for c in columns for e in elements]
        shared = primitives_of(platform).shared(m, roles, spread=True)
        west_a = [delay(m, self.x.word_select(e, bits), e, name=f"skew_{e}", reset=False) for e in elements]
        swap: Value = self.swap
        enable: Value = self.row_enable
        weights: Value = self.weights
        skewed = config.tile_words == 1
        products: Value | None = None  # of activations, at the foot of the column in the west
        if config.fast:
            products = delay(m, self._activation_column(m, west_a, shared), 1, name="products_west", reset=False)
            west_a = [delay(m, a, 1, name=f"a_{e}_west", reset=False) for e, a in enumerate(west_a)]
            swap = delay(m, swap, 1, name="swap_west", reset=False)
            enable = delay(m, enable, 1, name="row_enable_west", reset=False)
            weights = delay(m, weights, 0 if skewed else 1, name="weights_west", reset=False)
        west_swap = [swap]
        for e in elements[1:]:
            west_swap.append(delay(m, west_swap[-1], 1, name=f"swap_{e}", reset=False))
        for c in range(config.cols):
            if c and c % COLUMN_HOP == 0:
                enable = delay(m, enable, 1, name=f"row_enable_{c}", reset=False)
                west_a = [delay(m, a, 1, name=f"a_{e}_{c}", reset=False) for e, a in enumerate(west_a)]
                west_swap = [delay(m, swap, 1, name=f"swap_{e}_{c}", reset=False) for e, swap in enumerate(west_swap)]
                if products is not None:
                    products = delay(m, products, 1, name=f"products_{c}", reset=False)
            column = [weights.word_select(k * config.cols + c, 8) for k in range(config.load_rows)]
            if not skewed:
                column = [
                    delay(m, w, column_hops(c), name=f"weight_{k}_{c}", reset=False) for k, w in enumerate(column)
                ]
            rows = self._weight_rows(m, c, enable, column)
            north: Value | int = 0
            for e in elements:
                style, role = config.array_style(e, c), self._role(e, c)
                pe = ProcessingElement(config.psum_bits, config.element_rows, style, role, shared)
                m.submodules[f"pe_{e}_{c}"] = pe
                mine = rows[e * config.element_rows : (e + 1) * config.element_rows]
                m.d.comb += [
                    pe.a.eq(west_a[e]),
                    pe.swap.eq(west_swap[e]),
                    pe.load.eq(Cat(load for load, _ in mine)),
                    pe.weight.eq(Cat(weight for _, weight in mine)),
                    pe.north.eq(north),
                ]
                north = pe.south
            if products is not None:
                corrected = Signal(signed(config.psum_bits), name=f"corrected_{c}", reset_less=True)
                m.d.sync += corrected.eq(north - products)
                north = corrected
            later = column_hops(config.cols - 1) - column_hops(c)
            m.d.comb += self.sums[c].eq(delay(m, north, later, name=f"deskew_{c}", reset=False))
        return m

    def _role(self, e: int, c: int) -> str:
        """The role of the multiplier of an element; column -1 is that of the activation products."""
        return f"products_{e}" if c < 0 else f"pe_{e}_{c}"

    def _activation_column(self, m: Module, west_a: list[Value], shared: Any) -> Value:
        """The column of activation products; the sum at its foot."""
        config = self.config
        north: Value | int = 0
        for e in range(len(west_a)):
            element = ActivationElement(config.psum_bits, config.array_style(e, -1), self._role(e, -1), shared)
            m.submodules[f"products_{e}"] = element
            m.d.comb += [element.a.eq(west_a[e]), element.north.eq(north)]
            north = element.south
        return north

    def _weight_rows(self, m: Module, c: int, enable: Value, column: list[Value]) -> list[tuple[Value, Value]]:
        """Load enable and weight of each row of a column."""
        config, hops, rows = self.config, 0, []
        skewed = config.tile_words == 1
        for r in range(config.rows):
            # Rows farther down take them later; so does their swap come later. Skewed weights are late already.
            more = (r // config.element_rows if skewed else weight_hops(config, r)) - hops
            if more:
                hops += more
                enable = delay(m, enable, more, name=f"row_enable_{c}_{r}", reset=False)
            if more and not skewed:
                column = [delay(m, w, more, name=f"weight_{k}_{c}_{r}", reset=False) for k, w in enumerate(column)]
            rows.append((enable[r // config.load_rows], column[r % config.load_rows]))
        return rows
