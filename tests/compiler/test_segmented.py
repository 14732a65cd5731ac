"""Networks larger than the chip: what becomes one program in segments, what does not, and that results are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from large_graphs import functions, network, sample, tiny_memory, wide_in_the_middle
from small_networks import NETWORKS, SMALL

from onnxhw import InferenceSession, golden
from onnxhw.compiler import compile, compile_graph, place_and_schedule
from onnxhw.compiler.segmented import SegmentedGraphs
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Graph
from onnxhw.ir.parts import GoldenPart
from onnxhw.presets import preset
from onnxhw.program.container import dumps
from onnxhw.program.model import DeviceProgram
from onnxhw.program.parts import Program
from onnxhw.program.traffic import traffic_of
from onnxhw.segments import QUICK, THOROUGH, Effort, Plan, make_plan

MINI = preset("mini+sdram")


def kinds(program: Program) -> list[str]:
    """What each part is."""
    return ["golden" if isinstance(p, GoldenPart) else "segments" if p.in_segments else "chip" for p in program.parts
            if isinstance(p, (GoldenPart, DeviceProgram))]  # fmt: skip


def results(program: Program, shape: tuple[int, ...], device: str = "emulator") -> list[Any]:
    """Outputs of two random samples."""
    with InferenceSession(program, device=device) as session:
        return [session.run(None, dict(sample(shape, seed)))[0] for seed in (0, 1)]


def test_a_network_larger_than_the_chip_is_one_program() -> None:
    source = network(width=24, size=12)
    placed = place_and_schedule(source, MINI)
    assert kinds(placed.made) == ["segments"]
    assert [note.code for note in placed.model.diagnostics if note.code.startswith("W34")] == []
    program, graph = placed.made.programs[0], placed.model.hardware[0].graph
    assert program.nominal == graph.macs()
    emulator = Emulator(program)
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        inputs = {port.tensor: rng.integers(-128, 128, program.tensors[port.tensor].shape).astype(np.int8)
                  for port in graph.inputs}  # fmt: skip
        wanted, made = golden.run(graph, inputs), emulator.run(inputs, trace=True)
        parts = {name: entry.part for name, entry in program.tensors.items() if entry.part}
        assert {part.tensor for part in parts.values()} == {op.output for op in graph.ops}
        for name, part in parts.items():
            assert np.array_equal(made.tensors[name], wanted[part.tensor][part.box.slices]), name
        assert all(np.array_equal(values, wanted[name]) for name, values in made.outputs.items())


def test_what_fits_the_chip_is_scheduled_as_without_external_memory() -> None:
    source = network(width=8)
    program = compile(source, MINI)
    assert kinds(program) == ["chip"]
    assert program.programs[0].segments == 0
    assert program.programs[0].tensors == compile(source, preset("mini")).programs[0].tensors


def test_the_same_network_makes_the_same_bytes() -> None:
    assert dumps(compile(network(), SMALL)) == dumps(compile(network(), SMALL))


@pytest.mark.parametrize(
    ("make", "config", "wanted", "notes"),
    [
        (wide_in_the_middle, SMALL, ["segments", "golden", "segments"], ["W3406"]),
        (functions, SMALL, ["segments"], []),
        (network, tiny_memory(), ["segments", "segments"], ["W3405"]),
    ],
)
def test_what_does_not_become_one_program(
    make: Callable[[], bytes], config: HwConfig, wanted: list[str], notes: list[str]
) -> None:
    """Operations of which no part fits the chip; more tables than there are; too little external memory."""
    placed = place_and_schedule(make(), config)
    assert kinds(placed.made) == wanted
    assert [note.code for note in placed.model.diagnostics if note.code.startswith("W34")] == notes
    shape = tuple(int(size) for size in placed.made.inputs[0].shape or ())
    whole = Program(placed.made.name, placed.made.inputs, placed.made.outputs, placed.model.on_host().parts)
    for mine, golden_one in zip(results(placed.made, shape), results(whole, shape), strict=True):
        assert np.array_equal(mine, golden_one)


def test_a_graph_that_must_run_as_a_whole() -> None:
    graph = NETWORKS["inverted"]()
    with pytest.raises(DoesNotFitError) as caught:
        compile_graph(graph, tiny_memory(rows=2))
    assert caught.value.code == "E5190"
    assert compile_graph(graph, SMALL).in_segments


@pytest.mark.parametrize("make", [*NETWORKS.values()])
def test_a_forecast_is_within_a_fifth(make: Callable[[], Graph]) -> None:
    graph, segmented = make(), SegmentedGraphs(SMALL)
    found, program = segmented.forecast(graph), segmented.program(graph)
    assert abs(found.cycles - program.cycles) <= program.cycles / 5
    assert abs(found.segments - program.segments) <= program.segments / 5
    told, travelling = found.traffic, traffic_of(program)
    assert told.received == travelling.received
    assert abs(told.sent - travelling.sent) <= travelling.sent / 5


def test_a_forecast_is_quick_and_a_program_is_planned_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, segmented, efforts = NETWORKS["inverted"](), SegmentedGraphs(SMALL), []

    def recorded(*args: Any, effort: Effort) -> Plan:
        efforts.append(effort)
        return make_plan(*args, effort=effort)

    monkeypatch.setattr("onnxhw.compiler.segmented.make_plan", recorded)
    told = segmented.forecast(graph)
    segmented.program(graph)
    assert segmented.forecast(graph) == told
    assert efforts == [QUICK, THOROUGH]
