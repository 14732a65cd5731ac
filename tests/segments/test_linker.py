"""Linked programs on small configurations: every tensor, every cycle, run after run."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net
from small_networks import NETWORKS, SMALL

from onnxhw import golden
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.errors import DoesNotFitError
from onnxhw.ir.graph import Array8, Graph
from onnxhw.isa.units import Unit
from onnxhw.program import DeviceProgram
from onnxhw.sched import check
from onnxhw.segments import PartCycles, Plan, Segment, link, make_plan, part_name

TIGHT = replace(SMALL, name="tight", load_ucode=96, array_ucode=224, vector_ucode=288, move_ucode=512)
"""Microcode memories of which most segments fill a good part, so that moves bring most of it."""


def linked(graph: Graph, config: HwConfig) -> tuple[Plan, DeviceProgram]:
    plan = make_plan(graph, config, PartCycles(config))
    return plan, link(graph, plan, config)


def sample(graph: Graph, seed: int) -> dict[str, Array8]:
    rng = np.random.default_rng(seed)
    return {port.tensor: rng.integers(-128, 128, port.shape).astype(np.int8) for port in graph.inputs}


def segment_runs(segment: Segment) -> bool:
    """Whether it has instructions; a Concat of what is loaded has none, and no place in the tensor table."""
    return not all(op.joins for op in segment.graph.ops)


def joined(channels: int, size: int, kernel: int, width: int) -> Graph:
    """A concatenation, of tensors in external memory, that a convolution reads."""
    net = Net(channels, size)
    one = net.conv("x", channels, kernel)
    other = net.conv(net.conv(one, width), channels, kernel)
    return net.graph("joined", net.conv(net.concat(one, other), width))


def differences(graph: Graph, plan: Plan, emulator: Emulator, seed: int) -> list[str]:
    """Tensors, and parts of tensors, that are otherwise than in the golden model."""
    inputs = sample(graph, seed)
    wanted, made = golden.run(graph, inputs), emulator.run(inputs, trace=True)
    found = [name for name, values in made.outputs.items() if not np.array_equal(values, wanted[name])]
    for n, segment in enumerate(plan.segments):
        for part in segment.parts if segment_runs(segment) else ():
            mine = made.tensors[part_name(part, n)]
            if not np.array_equal(mine, wanted[part.tensor][part.box.slices]):
                found.append(part_name(part, n))
    return found


@pytest.mark.parametrize("config", [SMALL, TIGHT], ids=lambda config: config.name)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_two_runs(name: str, config: HwConfig) -> None:
    """The second run finds what the first has left: rings, constants, tensors of before."""
    graph = NETWORKS[name]()
    plan, program = linked(graph, config)
    assert len(program.code[Unit.MOVE]) > len(plan.segments)
    assert check(program).cycles == program.cycles
    emulator = Emulator(program)
    assert [differences(graph, plan, emulator, seed) for seed in (0, 1)] == [[], []]


def test_what_is_stored_was_loaded_before() -> None:
    """Segments that are a Concat of what is loaded have moves alone."""
    graph = joined(8, 6, 3, 16)
    plan, program = linked(graph, SMALL)
    assert not all(map(segment_runs, plan.segments))
    check(program)
    assert differences(graph, plan, Emulator(program), 0) == []


def test_what_moves_join_is_complete_when_the_table_says_so() -> None:
    graph = joined(8, 10, 1, 16)
    plan, program = linked(graph, SMALL)
    assert any(segment_runs(each) and any(op.joins for op in each.graph.ops) for each in plan.segments)
    check(program)
    assert differences(graph, plan, Emulator(program), 0) == []


def test_moves_bring_microcode_and_give_the_first_back() -> None:
    _, program = linked(NETWORKS["inverted"](), TIGHT)
    spaces = [i.space for i in program.code[Unit.MOVE]]  # type: ignore[attr-defined]
    assert int(Unit.VECTOR.microcode) in spaces


@pytest.mark.slow
@pytest.mark.rtl
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("config", [SMALL, TIGHT], ids=lambda config: config.name)
def test_the_rtl_takes_the_cycles_and_gives_the_results(config: HwConfig) -> None:
    with CxxrtlEngine(config) as engine:
        for make in NETWORKS.values():
            graph = make()
            _, program = linked(graph, config)
            for seed in (0, 1):
                inputs = sample(graph, seed)
                made, wanted = engine.run(program, inputs), golden.run(graph, inputs)
                assert made.cycles == program.cycles
                assert all(np.array_equal(values, wanted[name]) for name, values in made.outputs.items())


def test_an_external_memory_that_is_too_small() -> None:
    graph = next(iter(NETWORKS.values()))()
    plan, _ = linked(graph, SMALL)
    assert SMALL.external is not None
    small = replace(SMALL, external=replace(SMALL.external, rows=2, columns=8))
    with pytest.raises(DoesNotFitError, match="bytes of external memory") as caught:
        link(graph, plan, small)
    assert caught.value.code == "E5190"
