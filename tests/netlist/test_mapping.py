"""What follows Yosys' mapping: the same sums, and no pin left that nextpnr would have to route a constant to."""

import dataclasses
import random
import re

import pytest
from amaranth import Module
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from netlist import Simulation, Step, Target, synthesize_netlist

from onnxhw.devices import find_family
from onnxhw.isa.timing import MULTIPLY
from onnxhw.presets import PRESETS
from onnxhw.rtl.cells import Multiplier
from onnxhw.rtl.systolic import SystolicArray

pytestmark = [pytest.mark.netlist, pytest.mark.synth]

WIDTH = 12
PLAIN = dataclasses.replace(PRESETS["ulx3s-85f"], name="plain", lanes=8, cols=8, load_rows=2, inner_product="plain")


class Sums(wiring.Component):
    """Carry chains of every kind: from Yosys with a carry of 0, of 1 and from a signal, and our own multiplier's."""

    def __init__(self):
        super().__init__(
            {"a": In(WIDTH), "b": In(WIDTH), "c": In(1)}
            | {name: Out(WIDTH) for name in ("added", "subtracted", "either", "carried")}
            | {"less": Out(1), "product": Out(2 * WIDTH)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = multiplier = Multiplier(WIDTH, WIDTH, style="fabric")
        m.d.comb += [
            self.added.eq(self.a + self.b),
            self.subtracted.eq(self.a - self.b),
            self.carried.eq(self.a + self.b + self.c),
            self.less.eq(self.a < self.b),
            # An operand that is not negative: its highest bit is 0 and a pin of the chain constant.
            multiplier.a.eq(self.a[: WIDTH - 1]),
            multiplier.b.eq(self.b[: WIDTH - 1]),
            self.product.eq(multiplier.p),
        ]
        with m.If(self.c):
            m.d.comb += self.either.eq(self.a + self.b)
        with m.Else():
            m.d.comb += self.either.eq(self.a - self.b)
        return m


@pytest.fixture(scope="module")
def sums(icarus):
    return synthesize_netlist(Sums())


def test_no_pin_of_a_carry_cell_is_a_constant_that_would_have_to_be_routed(sums):
    cells = re.findall(r"CCU2C #\(.*?\);", sums.verilog, re.DOTALL)
    assert len(cells) == sums.cells["CCU2C"] > 50
    for cell in cells:
        assert not re.search(r"\.(CIN\(1'h[01]|C[01]\(1'h0)\)", cell), cell


def test_chains_still_add(sums):
    rng = random.Random(7)
    top = 1 << WIDTH
    vectors = [(rng.randrange(top), rng.randrange(top), rng.randrange(2)) for _ in range(200)]
    vectors += [(a, b, c) for a in (0, top - 1) for b in (0, 1, top - 1) for c in (0, 1)]
    latency = MULTIPLY
    rows = Simulation(sums).run([Step({"a": a, "b": b, "c": c}, latency + 1) for a, b, c in vectors])
    assert len(rows) == len(vectors) * (latency + 1)
    for (a, b, c), row in zip(vectors, rows[latency :: latency + 1], strict=True):
        half = top // 2 - 1
        assert row == {
            "added": (a + b) % top, "subtracted": (a - b) % top, "carried": (a + b + c) % top, "less": int(a < b),
            "either": (a + b if c else a - b) % top, "product": (a & half) * (b & half),
        }  # fmt: skip


def test_multipliers_of_a_planned_array_have_constants_of_their_own():
    design = rtlil.convert(SystolicArray(PLAIN), platform=Target(find_family("ecp5").primitives("LFE5U-85F", PLAIN)))
    cells = re.findall(r"cell \\MULT18X18D.*?\n\s+end\n", design, re.DOTALL)
    assert len(cells) == 128
    for cell in cells:
        pins = dict(re.findall(r"connect \\(\w+) (.+)", cell))
        for pin in ("RST0", "SOURCEA", "SOURCEB", "CE0", "SIGNEDA", "SIGNEDB"):
            assert pins[pin].startswith("\\"), (pin, pins[pin])
    assert design.count("cell \\TRELLIS_FF") == 2 * 128 // 4
