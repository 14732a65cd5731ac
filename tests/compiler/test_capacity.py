"""`fit` before anything is built: the cycles of the program that will be, or bounds of them."""

from dataclasses import replace

import gate_models
import pytest

from onnxhw.compiler import capacity, compile_graph
from onnxhw.compiler.capacity import Fit, fit
from onnxhw.ir.graph import Graph
from onnxhw.isa.input_port import PASSAGE
from onnxhw.partition import read
from onnxhw.presets import PRESETS, preset
from onnxhw.program.input_regions import latency
from onnxhw.program.traffic import Traffic, traffic_of

MODELS = [(name, preset) for name in ("digits", "residual", "depthwise") for preset in ("mini", "ulx3s-25f")]


def cycles(found: Fit) -> tuple[int, int, bool, bool]:
    return found.cycles, found.run_cycles, found.exact, found.at_most


@pytest.mark.parametrize(("name", "preset"), MODELS)
def test_cycles_from_the_last_input_on_and_of_the_run(name: str, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = PRESETS[preset]
    graphs: list[Graph] = [part.graph for part in read(gate_models.MODELS[name]()).hardware]
    programs = [compile_graph(graph, config) for graph in graphs]
    wanted, run = sum(map(latency, programs)), sum(program.cycles for program in programs)
    moved: list[tuple[int, Traffic]] = [(program.cycles, traffic_of(program)) for program in programs]
    exact = fit(graphs, config)
    assert cycles(exact) == (wanted, run, True, False)
    assert list(exact.parts) == moved
    assert wanted > run + PASSAGE
    bounds = fit(graphs, config, quick=0)
    assert cycles(bounds) == (bounds.run_cycles + PASSAGE * len(graphs), bounds.run_cycles, False, False)
    assert bounds.run_cycles <= run
    monkeypatch.setattr(capacity, "SEARCHED", 0)
    initial = fit(graphs, config)
    assert cycles(initial) == (initial.run_cycles + wanted - run, initial.run_cycles, False, True)
    assert initial.run_cycles >= run
    assert [part[1] for part in initial.parts] == [part[1] for part in moved]


def test_of_very_many_operations_with_external_memory_there_are_bounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is planned; what external memory has no room for is refused all the same."""
    (part,) = read(gate_models.MODELS["residual"]()).hardware
    config, operations = preset("mini+sdram"), len(part.graph.ops)
    monkeypatch.setattr(capacity, "PLANNED", operations)
    assert fit([part.graph], config).fits
    monkeypatch.setattr(capacity, "PLANNED", operations - 1)
    monkeypatch.setattr(capacity, "_with_external_memory", lambda *_: pytest.fail("planned"))
    bounds = fit([part.graph], config)
    assert (bounds.fits, bounds.exact, len(bounds.parts)) == (None, False, 1)
    assert bounds.reason == f"more than {operations - 1} operations: bounds only; onnxhw compile decides"
    assert bounds.cycles <= latency(compile_graph(part.graph, config))
    assert config.external is not None
    small = replace(config, external=replace(config.external, rows=2, columns=8))
    found = fit([part.graph], small)
    assert (found.fits, found.code) == (False, "E5190")
