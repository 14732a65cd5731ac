"""Plain words and loops compute what CXXRTL's templates compute: designs with every operation, compiled both ways."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from amaranth import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from onnxhw.build import tools
from onnxhw.engines.cxxrtl import build as module
from onnxhw.engines.cxxrtl.build import build, elaborate
from onnxhw.engines.cxxrtl.design import Design
from onnxhw.engines.cxxrtl.expression import (
    Bits,
    CellOperation,
    Conditional,
    Constant,
    FormError,
    Join,
    Reader,
    join,
    select,
)
from onnxhw.engines.cxxrtl.split import split
from onnxhw.engines.cxxrtl.words import word

pytestmark = [pytest.mark.rtl]

WIDTHS = (1, 7, 8, 16, 31, 32, 33, 40, 64, 65, 100, 130)
COUNT = 240


class Operations(wiring.Component):
    """Every operation that a design may use, on values of up to 64 bits and wider ones, registered: ``r_<n>``."""

    def __init__(self) -> None:
        inputs = {f"u_{bits}": In(bits) for bits in WIDTHS} | {f"s_{bits}": In(signed(bits)) for bits in WIDTHS}
        members = {f"i_{name}": member for name, member in inputs.items()} | {f"r_{n}": Out(140) for n in range(COUNT)}
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        values = {name: getattr(self, f"i_{name}") for name in (f"{kind}_{b}" for kind in "us" for b in WIDTHS)}
        held = {}
        for name, value in values.items():
            held[name] = Signal.like(value, name=f"held_{name}")
            m.d.sync += held[name].eq(value)
        found: list[Any] = []
        pairs = [(8, 16), (32, 31), (33, 64), (64, 1), (65, 100)]
        for kind in "us":
            for left, right in pairs:
                a, b = held[f"{kind}_{left}"], held[f"{kind}_{right}"]
                found += [a + b, a - b, a & b, a | b, a ^ b, ~a, a == b, a != b, a < b, a <= b, a > b, a >= b]
                found += [a.any(), a.all(), a.bool(), ~a.bool(), Mux(b[0], a, b), Cat(b, a), a[left // 2 :]]
                if left + right <= 100:
                    found += [a * b, (a * b)[:left], (a + b)[:left], (a - b)[left // 2 :]]
        wide = held["u_130"]
        narrow = Signal(130)
        for k in range(13):
            m.d.comb += narrow[10 * k : 10 * k + 10].eq(
                Mux(held["u_16"][k], wide[10 * k : 10 * k + 10], held["u_31"][k:])
            )
        found += [narrow, narrow[37:99], narrow[25:89], narrow[1:128] & wide, Cat(narrow[64:], narrow[:64])]
        found += [
            wide.word_select(held["u_7"][:2], 32),
            wide >> Cat(*[0] * 5, held["u_8"][0]),
            wide.replicate(2)[77:150],
        ]
        found += [
            Array([held["u_40"], held["u_33"], wide])[held["u_8"][:2]],
            held["s_7"].replicate(9),
            held["u_1"].replicate(64),
        ]
        m.submodules.store = store = memory.Memory(shape=72, depth=16, init=[5, 1 << 70])
        write, read = store.write_port(granularity=9), store.read_port()
        m.d.comb += [
            write.addr.eq(held["u_7"]), write.en.eq(held["u_8"]), write.data.eq(held["u_100"]),
            read.addr.eq(held["u_16"]), read.en.eq(1),
        ]  # fmt: skip
        found.append(read.data)
        assert len(found) <= COUNT
        for n, value in enumerate(found):
            m.d.sync += getattr(self, f"r_{n}").eq(value)
        return m


class Grid(wiring.Component):
    """Cells that pass values to the east and sums to the south, a ring that turns, and two registers that swap."""

    x: In(32)
    w: In(8)
    at: In(16)
    south: Out(80)
    ring: Out(64)
    pair: Out(16)
    wide: Out(256)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        south = [Signal(20, name=f"south_0_{c}") for c in range(4)]
        for r in range(8):
            east: Any = self.x.word_select(r % 4, 8)
            for c in range(4):
                a, p, w = (Signal(8, name=f"{n}_{r}_{c}") for n in ("a", "p", "w"))
                s = Signal(20, name=f"south_{r + 1}_{c}")
                m.d.sync += [a.eq(east), p.eq(a * w), s.eq(south[c] + p)]
                with m.If(self.at[r] & self.at[8 + c]):
                    m.d.sync += w.eq(self.w)
                east, south[c] = a, s
        turn = [Signal(8, name=f"turn_{k}", init=k) for k in range(8)]
        for k in range(8):
            m.d.sync += turn[k].eq(turn[k - 1] ^ (self.w if k == 0 else 0))
        left, right = Signal(8, init=1), Signal(8, init=2)
        m.d.sync += [left.eq(right), right.eq(left)]
        m.d.sync += self.wide.eq(Mux(self.at[0], Cat(self.wide[32:], self.x), self.wide))
        m.d.comb += [self.south.eq(Cat(south)), self.ring.eq(Cat(turn)), self.pair.eq(Cat(left, right))]
        return m


def values(bits: int, rng: random.Random) -> int:
    top = 1 << bits
    return rng.choice([0, top - 1, top >> 1, (top >> 1) - 1, rng.randrange(top), rng.randrange(top)])


def run(path: Path, component: Any, cycles: int) -> list[dict[str, int]]:
    """Outputs in every cycle under inputs near the edges."""
    rng = random.Random(5)
    members = {name: getattr(component, name) for name in component.signature.members}
    inputs = [name for name, member in component.signature.members.items() if member.flow is In]
    with Design(path) as design:
        found = []
        for _ in range(cycles):
            for name in inputs:
                design.set(name, values(len(members[name]), rng))
            found.append({name: design.get(name) for name in members if name not in inputs})
            design.step()
    return found


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("kind", [Operations, Grid])
def test_plain_words_equal_the_templates(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component, paths = kind(), {}
    for name, cut in (("words", module.split), ("templates", lambda *files, **_: module.whole(*files))):
        monkeypatch.setenv("ONNXHW_CACHE", str(tmp_path / name))
        monkeypatch.setattr(module, "split", cut)
        monkeypatch.setattr(module, "HOT_FLAGS", ("-O0",) if name == "templates" else module.HOT_FLAGS)
        paths[name] = build(lambda: elaborate(component)).path
    words, templates = (run(path, component, 300) for path in paths.values())
    assert words == templates
    assert any(len({row[name] for row in words}) > 100 for name in words[0])


def test_cells_are_loops_and_what_swaps_has_two_phases(tmp_path: Path) -> None:
    (tmp_path / "top.il").write_text(elaborate(Grid()))
    tools.run("yosys", ["-q", "-p", "read_rtlil top.il; write_cxxrtl -header -g2 design.cc"], tmp_path)
    pieces = split((tmp_path / "design.cc").read_text(), (tmp_path / "design.h").read_text(), "design.h")
    text = "".join(pieces.hot)
    assert {int(n) for n in re.findall(r"for \(int i = 0; i < (\d+);", text)} >= {7, 16}
    # Nothing is assigned in place: only `latch` writes present values.
    assert not re.search(r"\bnow\.\w+\.data\[\d+\] = ", text)
    assert not re.search(r"at\(&now, [^)]*\)\.data\[\d+\] = ", text)


def test_selections_go_to_the_leaves() -> None:
    reader = Reader({"a.curr": 40, "b": 8, "c": 1})
    tree = reader.read("(c ? a.curr.concat(b).slice<15,4>().val() : value<12>{0x7u})")
    assert tree == Conditional(
        Bits("c", 0, 1, 1), Join((Bits("a.curr", 0, 8, 40), Bits("b", 4, 4, 8)), 12), Constant(7, 12), 12
    )
    assert reader.read("add_uu<9>(b, b).slice<7,0>().val()") == CellOperation(
        "add", False, (Bits("b", 0, 8, 8),) * 2, 8
    )
    assert join([select(tree.then, 4, 8), Bits("b", 4, 4, 8)]) == tree.then
    assert word(reader.read("b.slice<6,3>()")) == "((b.data[0] >> 3) & 0xfu)"


@pytest.mark.parametrize(
    "text", ["d", "b.shl<3>()", "shl_uu<8>(b, b)", "add_uu<70>(a.curr, b)", "(c ? b : c)", "b)", "b +"]
)
def test_what_is_not_understood_has_no_tree(text: str) -> None:
    with pytest.raises(FormError):
        Reader({"a.curr": 40, "b": 8, "c": 1}).read(text)
