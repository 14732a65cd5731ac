"""`SystolicArray`: the weight-stationary array of R x C processing elements."""

from typing import Any

from amaranth import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import HwConfig
from ..isa.timing import array_pipeline
from .cells import Multiplier
from .delay import delay
from .floorplan import WEIGHT_HOP, array_sites


class ProcessingElement(wiring.Component):
    """One multiplier with its weight and its shadow weight.

    Cycle 0: ``swap`` makes the shadow weight the active one. Cycle 1: ``a`` enters the multiplier.
    `MULTIPLY` cycles later ``south = north + a * weight``, registered. ``a`` and ``swap`` go east after one cycle.
    `site` is the place of a multiplier cell on the device, if it is to have one.
    """

    def __init__(self, psum_bits: int, style: str, site: str = "") -> None:
        self.style, self.site = style, site
        super().__init__(
            {
                "a": In(signed(8)),
                "swap": In(1),
                "load": In(1),
                "weight": In(signed(8)),
                "north": In(signed(psum_bits)),
                "a_east": Out(signed(8)),
                "swap_east": Out(1),
                "south": Out(signed(psum_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.multiplier = multiplier = Multiplier(8, 8, style=self.style, site=self.site)
        shadow = Signal(signed(8), reset_less=True)
        active = Signal(signed(8), reset_less=True)
        with m.If(self.load):
            m.d.sync += shadow.eq(self.weight)
        with m.If(self.swap):
            m.d.sync += active.eq(shadow)
        a_east = Signal(signed(8), reset_less=True)
        south = Signal.like(self.south, reset_less=True)
        m.d.comb += [multiplier.a.eq(self.a), multiplier.b.eq(active), self.a_east.eq(a_east), self.south.eq(south)]
        m.d.sync += [a_east.eq(self.a), south.eq(self.north + multiplier.p), self.swap_east.eq(self.swap)]
        return m


class SystolicArray(wiring.Component):
    """``sums[c] = sum_r x[r] * w[r, c]``, `latency` cycles after ``x``, every cycle.

    ``swap`` precedes the first ``x`` of a tile by one cycle. ``weights`` (k rows of C bytes) with
    ``row_enable`` (one-hot, R / k row groups) fill the shadow registers. All skewing happens inside: row r and
    column c see operands and swap r + c cycles later, weights c cycles later, and if k > 1 one more every
    `WEIGHT_HOP` rows. Only where k = R, ``weights`` come skewed: those of row r and column c r + c cycles later.
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
        west_a: list[Value] = []
        west_swap: list[Value] = []
        for r in range(config.rows):
            west_a.append(delay(m, self.x.word_select(r, 8), r, name=f"skew_{r}", reset=False))
            west_swap.append(self.swap if r == 0 else delay(m, west_swap[-1], 1, name=f"swap_{r}"))
        enable = self.row_enable
        skewed = config.tile_words == 1
        west_load = [delay(m, enable, r, name=f"load_{r}") for r in range(config.rows)] if skewed else []
        sites = array_sites(platform, config.rows, config.cols) if config.multiplier == "dsp" else {}
        for c in range(config.cols):
            if c:
                enable = delay(m, enable, 1, name=f"row_enable_{c}")
            load: Value = enable
            column = [self.weights.word_select(k * config.cols + c, 8) for k in range(config.load_rows)]
            if not skewed:
                column = [delay(m, w, c, name=f"weight_{k}_{c}", reset=False) for k, w in enumerate(column)]
            north, hops = 0, 0
            for r in range(config.rows):
                # Rows farther down take them a cycle later; their swap comes r cycles, their step r / k cycles later.
                if config.load_rows > 1 and not skewed and r % config.load_rows == 0 and r // WEIGHT_HOP > hops:
                    hops += 1
                    load = delay(m, load, 1, name=f"row_enable_{c}_{r}")
                    column = [delay(m, w, 1, name=f"weight_{k}_{c}_{r}", reset=False) for k, w in enumerate(column)]
                pe = ProcessingElement(config.psum_bits, config.multiplier, sites.get((r, c), ""))
                m.submodules[f"pe_{r}_{c}"] = pe
                m.d.comb += [
                    pe.a.eq(west_a[r]),
                    pe.swap.eq(west_swap[r]),
                    pe.load.eq(west_load[r] if skewed else load[r // config.load_rows]),
                    pe.weight.eq(column[r % config.load_rows]),
                    pe.north.eq(north),
                ]
                west_a[r], west_swap[r], north = pe.a_east, pe.swap_east, pe.south
                if skewed:
                    west_load[r] = delay(m, west_load[r], 1, name=f"load_{r}_{c}")
            m.d.comb += self.sums[c].eq(delay(m, north, config.cols - 1 - c, name=f"deskew_{c}", reset=False))
        return m
