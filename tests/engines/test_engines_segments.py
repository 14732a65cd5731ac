"""A program in segments on every engine: the same parts of tensors, outputs, cycles and counters."""

import dataclasses

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, chain, inputs

from onnxhw import engines
from onnxhw.compiler import compile_graph
from onnxhw.engines.cxxrtl.engine import CxxrtlEngine
from onnxhw.errors import MismatchError, UsageError
from onnxhw.ir.graph import Graph
from onnxhw.isa.units import Unit
from onnxhw.program.model import DeviceProgram
from onnxhw.program.result import Result


@pytest.fixture(scope="module")
def graph() -> Graph:
    return NETWORKS["residual"]()


@pytest.fixture(scope="module")
def program(graph: Graph) -> DeviceProgram:
    return compile_graph(graph, SMALL)


def same(a: Result, b: Result) -> bool:
    """Whether what both show is equal, and there is something."""
    shown = {**a.tensors, **a.outputs}
    other = {**b.tensors, **b.outputs}
    return shown.keys() == other.keys() and all(np.array_equal(shown[name], other[name]) for name in shown)


def test_the_emulator_makes_the_parts_of_the_golden_model(graph: Graph, program: DeviceProgram) -> None:
    with engines.open("golden", SMALL, graph=graph) as golden, engines.open("emulator", SMALL) as emulator:
        wanted = golden.run(program, inputs(graph), trace=True)
        made = emulator.run(program, inputs(graph), trace=True)
    ports = {port.tensor for port in program.inputs + program.outputs}
    assert made.tensors.keys() == {name for name, entry in program.tensors.items() if entry.part}
    assert len(made.tensors) > len(graph.ops)
    wanted.tensors = {name: values for name, values in wanted.tensors.items() if name not in ports}
    # Pixels that are picked for the 1 x 1 convolution with strides are no tensor of the model.
    picked = {name for name in made.tensors if ".pixels@" in name}
    assert picked
    made.tensors = {name: values for name, values in made.tensors.items() if name not in picked}
    assert same(wanted, made)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_the_rtl_with_programs_of_both_kinds_in_turn(graph: Graph, program: DeviceProgram) -> None:
    """Counts and memories of one program do not stay for the next."""
    small, deep = chain(), NETWORKS["deep"]()
    on_chip, pieces = compile_graph(small, SMALL), compile_graph(deep, SMALL)
    assert not on_chip.in_segments
    emulator = engines.open("emulator", SMALL)
    with CxxrtlEngine(SMALL) as rtl:
        turns = [(on_chip, small), (program, graph), (pieces, deep), (on_chip, small), (program, graph)]
        for seed, (one, net) in enumerate(turns):
            wanted = emulator.run(one, inputs(net, seed), trace=True)
            made = rtl.run(one, inputs(net, seed), trace=True)
            assert same(wanted, made)
            assert made.cycles == wanted.cycles == one.cycles
            assert (made.counters, made.latency) == (wanted.counters, wanted.latency)
        first, *others = program.code[Unit.ARRAY]
        wrong = [first.but(after_move=0xFFFF), *others]
        with pytest.raises(MismatchError, match="E8402"):
            rtl.run(dataclasses.replace(program, code={**program.code, Unit.ARRAY: wrong}), inputs(graph))
        assert same(rtl.run(program, inputs(graph)), emulator.run(program, inputs(graph)))


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.usefixtures("icarus")
def test_cocotb_runs_what_needs_no_memory_on_a_core_that_has_some() -> None:
    graph = chain()
    on_chip = compile_graph(graph, SMALL)
    with engines.open("emulator", SMALL) as emulator, engines.open("cocotb", SMALL) as rtl:
        wanted, made = (engine.run(on_chip, inputs(graph), trace=True) for engine in (emulator, rtl))
    assert same(wanted, made)
    assert made.cycles == wanted.cycles == on_chip.cycles


def test_cocotb_has_no_external_memory(program: DeviceProgram) -> None:
    with pytest.raises(UsageError, match="E2404"):
        engines.require_able("cocotb", program)
    for name in ("golden", "emulator", "cxxrtl"):
        engines.require_able(name, program)
