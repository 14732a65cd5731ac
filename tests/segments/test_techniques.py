"""What makes a program fast may be left out: results are equal, and the program is another."""

from dataclasses import replace

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, inputs

from onnxhw import golden
from onnxhw.emu.emulator import Emulator
from onnxhw.ir.graph import Graph
from onnxhw.isa.external_instructions import Move
from onnxhw.isa.memory import Space
from onnxhw.isa.units import Unit
from onnxhw.program.model import DeviceProgram
from onnxhw.sched import check
from onnxhw.segments import PartCycles, Plan, Techniques, link, make_plan
from onnxhw.segments.linker import _Linker
from onnxhw.segments.placing import place_segments
from onnxhw.segments.residents import no_residents
from onnxhw.segments.tensor_rooms import TensorRooms

GRAPH = NETWORKS["branches"]()


def made(techniques: Techniques, graph: Graph = GRAPH) -> tuple[Plan, DeviceProgram]:
    cycles = PartCycles(SMALL)
    plan = make_plan(graph, SMALL, cycles, techniques)
    return plan, link(graph, plan, SMALL, cycles.schedules, techniques)


def moves(program: DeviceProgram, *spaces: Space) -> list[Move]:
    return [i for i in program.code[Unit.MOVE] if isinstance(i, Move) and i.space in spaces and not i.store]


@pytest.fixture(scope="module")
def whole() -> tuple[Plan, DeviceProgram]:
    return made(Techniques())


@pytest.mark.parametrize("name", Techniques.names())
def test_results_are_equal_without(name: str, whole: tuple[Plan, DeviceProgram]) -> None:
    _, program = made(replace(Techniques(), **{name: False}))
    check(program)
    assert program.cycles > whole[1].cycles or name == "depth_first"  # a chip this small gains nothing by it
    wanted, found = golden.run(GRAPH, inputs(GRAPH)), Emulator(program).run(inputs(GRAPH))
    assert all(np.array_equal(values, wanted[each]) for each, values in found.outputs.items())


def test_without_depth_first_a_segment_has_one_operation(whole: tuple[Plan, DeviceProgram]) -> None:
    plan, _ = made(replace(Techniques(), depth_first=False))
    assert {len(each.parts) for each in plan.segments} == {1}
    assert max(len(each.parts) for each in whole[0].segments) > 1


def test_without_residents_all_constants_come(whole: tuple[Plan, DeviceProgram]) -> None:
    _, program = made(replace(Techniques(), residents=False))
    assert [len(each) for each in (program.weights, program.params, program.tables)] == [0, 0, 0]
    assert len(whole[1].params)


def test_without_the_ring_weights_begin_at_the_same_word() -> None:
    _, program = made(replace(Techniques(), ring=False, residents=False))
    plan, ringed = made(replace(Techniques(), residents=False))
    first = [i.chip for i in moves(program, Space.PARAM)].count(0)
    assert first >= len([each for each in plan.segments if each.graph.macs()])
    assert [i.chip for i in moves(ringed, Space.PARAM)].count(0) < first


@pytest.mark.parametrize("prefetch", [True, False])
def test_without_prefetch_what_a_segment_reads_comes_when_those_before_have_ended(prefetch: bool) -> None:
    plan, _ = made(Techniques())
    placed = place_segments(GRAPH, plan, SMALL)
    linker = _Linker(GRAPH, plan, SMALL, placed, no_residents(), TensorRooms(), Techniques(prefetch=prefetch), ())
    linker.program()
    queues = (*linker.constants.jobs.values(), linker.tensors.loads)
    jobs = [job for queue in queues for job in queue if 0 < job.needed < len(linker.runs)]
    ends = [linker.runs[job.needed - 1].ends for job in jobs]
    waited = [all(job.waits.get(unit, 0) >= count for unit, count in end.items())
              for job, end in zip(jobs, ends, strict=True)]  # fmt: skip
    assert len(jobs) > 20
    assert all(waited) != prefetch
