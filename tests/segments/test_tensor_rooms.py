"""Tensors that share words of external memory: the program stays what it is, and takes less."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from small_networks import NETWORKS, SMALL, inputs

from onnxhw import golden
from onnxhw.emu.emulator import Emulator
from onnxhw.ir.graph import Graph
from onnxhw.program.model import DeviceProgram
from onnxhw.sched import check
from onnxhw.segments import PartCycles, Plan, link, make_plan, tensor_rooms
from onnxhw.segments.placing import place_segments
from onnxhw.segments.plan import Region, act_words
from onnxhw.segments.regions import ExternalMap
from onnxhw.segments.tensor_moves import TensorMoves
from onnxhw.segments.tensor_rooms import SHARED_FROM, TensorRooms, _uses, shared


def planned(name: str) -> tuple[Graph, Plan]:
    graph = NETWORKS[name]()
    return graph, make_plan(graph, SMALL, PartCycles(SMALL))


def equal(graph: Graph, program: DeviceProgram) -> bool:
    """Run after run."""
    emulator = Emulator(program)
    for seed in (0, 1):
        wanted, made = golden.run(graph, inputs(graph, seed)), emulator.run(inputs(graph, seed))
        if not all(np.array_equal(values, wanted[each]) for each, values in made.outputs.items()):
            return False
    return True


def test_programs_are_equal_and_take_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, plan = planned("inverted")
    rooms = shared(graph, place_segments(graph, plan, SMALL), SMALL)
    monkeypatch.setattr("onnxhw.segments.linker.tensor_rooms", lambda *_: rooms)
    program = link(graph, plan, SMALL)
    check(program)
    assert equal(graph, program)
    assert rooms.words < sum(act_words(graph.tensors[each].shape, SMALL) for each in rooms.first)
    assert any(rooms.before.values())


@pytest.mark.parametrize("name", ["inverted", "residual"])
def test_tensors_in_use_at_once_lie_apart(name: str) -> None:
    graph, plan = planned(name)
    placed = place_segments(graph, plan, SMALL)
    rooms, uses = shared(graph, placed, SMALL), _uses(graph, placed, SMALL)
    spans = {each: (at, at + act_words(graph.tensors[each].shape, SMALL)) for each, at in rooms.first.items()}
    for one, other in combinations(spans, 2):
        apart = spans[one][1] <= spans[other][0] or spans[other][1] <= spans[one][0]
        assert apart or uses[one].last < uses[other].first or uses[other].last < uses[one].first
    assert not set(spans) & {port.tensor for port in (*graph.inputs, *graph.outputs)}


def test_words_are_shared_where_memory_is_short_alone() -> None:
    graph, plan = planned("inverted")
    assert SMALL.external is not None
    assert tensor_rooms.tensor_rooms(graph, plan, [], SMALL) == tensor_rooms.TensorRooms()
    needed = sum(buffer.size for buffer in plan.buffers)
    tiny = replace(SMALL.external, rows=2, columns=64, banks=4)
    assert tiny.size < needed / SHARED_FROM
    assert tensor_rooms.crowded(plan, tiny)


def test_a_store_waits_for_the_last_load_of_what_lay_there() -> None:
    graph = NETWORKS["residual"]()
    outer = {port.tensor for port in (*graph.inputs, *graph.outputs)}
    older, newer = [name for name in graph.tensors if name not in outer and graph.tensors[name].shape[2] > 1][:2]
    words = max(act_words(graph.tensors[name].shape, SMALL) for name in (older, newer))
    waited = []
    for before in ({}, {newer: (older,)}):
        rooms = TensorRooms({older: 0, newer: 0}, before, words)
        moves = TensorMoves(graph, SMALL, ExternalMap(SMALL), rooms)
        old, new = Region.whole(graph, older), Region.whole(graph, newer)
        moves.load(0, old, ExternalMap(SMALL).tensor(graph.tensors[older].shape), None)
        place = ExternalMap(SMALL).placed(graph.tensors[newer].shape, words)
        moves.store(1, new, place)
        assert moves.loads
        waited.append({job.behind_loads for job in moves.stores})
    assert waited == [{0}, {len(moves.loads)}]
