"""The testbenches in ``sim/``; each must also be able to fail."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from amaranth import Module

from onnxhw.errors import ToolError
from onnxhw.isa.timing import MULTIPLY
from onnxhw.rtl.cells import Multiplier

pytestmark = [pytest.mark.rtl, pytest.mark.usefixtures("icarus")]

NAMES = [
    "multiplier_8x8", "multiplier_18x18", "multiplier_13x14", "block_ram_32x64", "block_ram_48x100", "block_ram_20x512",
    "requantize_24", "requantize_32", "array_odd", "load_odd", "vector_odd", "array_small", "load_small",
    "vector_small", "array_fast", "load_fast", "vector_fast", "fetch", "core",
]  # fmt: skip
SEED = None if os.environ.get("ONNXHW_RANDOM_EXAMPLES") else 1
"""Of the benches' numbers: the same in every run, unless new ones are asked for."""


@pytest.fixture(scope="module")
def sim(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("onnxhw_sim_run", repository / "sim" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_bench_is_run_here(sim: ModuleType) -> None:
    assert [bench.name for bench in sim.benches()] == NAMES


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "core" else n for n in NAMES])
def test_bench(sim: ModuleType, name: str) -> None:
    bench = next(bench for bench in sim.benches() if bench.name == name)
    outcome = sim.run(bench, seed=SEED)
    assert (outcome.tests, outcome.failed) == (1, 0), f"{outcome.log}\nwaveform: {sim.WAVES / name}.fst"


class OffByOne(Multiplier):
    """Wrong for one pair of operands."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        inner = Multiplier(8, 8)
        m.submodules.inner = inner
        m.d.comb += [inner.a.eq(self.a), inner.b.eq(self.b), self.p.eq(inner.p + (inner.p == 16384))]
        return m


def test_a_wrong_component_fails_and_leaves_its_waveform(
    sim: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sim, "WAVES", tmp_path / "waves")
    facts = {"a_bits": 8, "b_bits": 8, "latency": MULTIPLY}
    outcome = sim.run(sim.Bench("wrong", "bench_multiplier", lambda: OffByOne(8, 8), facts), seed=SEED)
    assert (outcome.tests, outcome.failed) == (1, 1)
    assert "p is 16385, not 16384" in (tmp_path / "waves" / "wrong.log").read_text()
    assert (tmp_path / "waves" / "wrong.fst").stat().st_size > 0


def test_verilog_that_does_not_compile(sim: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"(?s)E7412 .*syntax error"):
        sim.run_tests("module top(input clk; endmodule\n", "top", "bench_multiplier", tmp_path)


def test_a_test_module_that_does_not_load(sim: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="E7413"):
        sim.run_tests("module top(input clk); endmodule\n", "top", "no_such_module", tmp_path)
