"""What follows Yosys' mapping: the same sums, and no pin left that nextpnr would have to route a constant to."""

import dataclasses
import random
import re

import pytest
from amaranth import Module, Mux
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from netlist import Simulation, Step, Target, synthesize_netlist

from onnxhw.devices import find_family
from onnxhw.devices.ecp5.floorplan import array_sites, group_of
from onnxhw.devices.ecp5.parts import die
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


class MadeOperands(wiring.Component):
    """Sums whose operands are made of others: all of it fits carry cells, but for one that a choice is subtracted from
    (its complement is not low where the others are), and of two choices one."""

    def __init__(self):
        super().__init__(
            {"a": In(WIDTH), "b": In(WIDTH), "c": In(WIDTH), "one": In(1), "two": In(1)}
            | {name: Out(WIDTH) for name in ("gated", "chosen", "both", "counted", "less", "larger")}
        )

    def elaborate(self, platform):
        m = Module()
        a, b, c = self.a, self.b, self.c
        m.d.sync += [
            self.gated.eq(a + Mux(self.one, b, 0)),
            self.chosen.eq(c - Mux(self.one, a, b)),
            self.both.eq(Mux(self.one, a, 0) - Mux(self.two, b, 0)),
            self.counted.eq(Mux(self.one, 0, a) + 1),
            self.less.eq(Mux(self.two, a, b) < c),
            self.larger.eq(Mux(self.one, a, b) + Mux(self.two, b, c)),
        ]
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


def test_what_operands_are_made_of_is_in_the_carry_cells(icarus):
    netlist = synthesize_netlist(MadeOperands())
    left = len(re.findall(r"\bLUT4 #", netlist.verilog))
    assert netlist.cells["LUT4"] >= 7 * WIDTH - 8, "Yosys has tables of their own"
    assert left <= 2 * WIDTH + 4, "those of two sums stay"
    rng, top = random.Random(5), 1 << WIDTH
    rows = [[rng.randrange(top) for _ in range(3)] + [bits & 1, bits >> 1] for bits in range(4) for _ in range(60)]
    rows += [[a, b, c, bits & 1, bits >> 1] for a in (0, top - 1) for b in (0, top - 1) for c in (0, top - 1)
             for bits in range(4)]  # fmt: skip
    steps = [Step(dict(zip(("a", "b", "c", "one", "two"), row, strict=True)), 2) for row in rows]
    for (a, b, c, one, two), row in zip(rows, Simulation(netlist).run(steps)[1::2], strict=True):
        chosen = a if one else b
        assert row == {
            "gated": (a + b * one) % top, "chosen": (c - chosen) % top, "both": (a * one - b * two) % top,
            "counted": (a * (not one) + 1) % top, "less": int((a if two else b) < c),
            "larger": (chosen + (b if two else c)) % top,
        }  # fmt: skip


def test_multipliers_of_a_planned_array_have_constants_of_their_own():
    design = rtlil.convert(SystolicArray(PLAIN), platform=Target(find_family("ecp5").primitives("LFE5U-85F", PLAIN)))
    cells = re.findall(r"cell \\MULT18X18D.*?\n\s+end\n", design, re.DOTALL)
    assert len(cells) == 128
    for cell in cells:
        pins = dict(re.findall(r"connect \\(\w+) (.+)", cell))
        for pin in ("RST0", "SOURCEA", "SOURCEB", "CE0", "SIGNEDA", "SIGNEDB"):
            assert pins[pin].startswith("\\"), (pin, pins[pin])
    groups = {group_of(site) for site in array_sites(die("LFE5U-85F"), PLAIN).values()}
    assert len(groups) == 3 * 16 * 3 // 4, "three rows of chip; of 16 elements in three columns, in the last row in two"
    assert design.count("cell \\TRELLIS_FF") == 2 * len(groups)
