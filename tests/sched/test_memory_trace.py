"""The trace of tasks says what the emitted instructions touch; its maps lie where places say."""

from typing import Any

import numpy as np
import pytest

from onnxhw.config import HwConfig
from onnxhw.ir.graph import Graph
from onnxhw.isa.instructions import Array, Depthwise, Vector
from onnxhw.sched import footprint
from onnxhw.sched.memory_trace import accesses, in_buffers, in_memory, spans
from onnxhw.sched.scheduler import initial_schedule

HW = HwConfig(
    "trace", rows=8, cols=8, word=8, lanes=4, load_rows=8, acc_bits=27, act_depth=512, weight_depth=1024, acc_depth=64,
    param_depth=512, window_depth=64, depthwise=16, array_ucode=4096, vector_ucode=8192, load_ucode=4096,
)  # fmt: skip


def network(net: Any) -> Graph:
    """Array, depthwise unit and vector unit, two operands, a concatenation in place."""
    x = net.conv(net.input(8, 6, 7), 24, (1, 1))
    y = net.conv(x, 24, pads=(1, 1, 1, 1), groups=24)
    joined = net.concat(net.conv(y, 16, (1, 1)), net.conv(y, 8, (1, 1)))
    found: Graph = net.graph(net.add(net.table(joined), joined))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_accesses_are_those_of_the_instructions(seed: int, new_net: Any) -> None:
    """A write's number is its instruction's, and its region the words of that; what is read lies in the regions."""
    begun = initial_schedule(network(new_net(seed)), HW)
    code, tasks = begun.candidate.code, begun.candidate.tasks
    address = in_memory(begun.candidate.places, HW, np.arange(HW.act_words))
    found = list(accesses(tasks))
    vectors = [i for i in code["vector"] if isinstance(i, Vector)]
    writes = [access for access in found if access.writes]
    assert [access.vectors for access in writes] == list(range(1, len(vectors) + 1))
    reads: dict[tuple[str, int], set[int]] = {}
    counts = {"array": 0, "depthwise": 0}
    for access, vector in zip(writes, vectors, strict=True):
        assert set(address[access.region].ravel()) == set(footprint.vector_writes(vector))
    for task in tasks:
        for step in task.arrays:
            unit = step.array.UNIT
            reads[unit, counts[unit]] = {int(w) for region in step.reads for w in address[region].ravel()}
            counts[unit] += 1
    for (unit, index), words in reads.items():
        instruction = code[unit][index]
        assert isinstance(instruction, (Array, Depthwise))
        assert set(footprint.array_reads(instruction, HW.word).tolist()) == words
    assert min(counts.values()) > 0
    for access in found:
        if not access.writes and tasks[access.task].vectors and access.vectors:
            vector = vectors[access.vectors - 1]
            touched = set(footprint.vector_a(vector)) | set(footprint.vector_b(vector))
            if not tasks[access.task].arrays:
                assert set(address[access.region].ravel()) <= touched


def test_steps_rise_and_those_of_the_array_share_a_number(new_net: Any) -> None:
    tasks = initial_schedule(network(new_net(1)), HW).candidate.tasks
    before = -1
    for position, task in enumerate(tasks):
        mine = [access for access in accesses(tasks) if access.task == position]
        streamed = {access.step for access in mine if access.vectors == mine[0].vectors and not access.writes}
        written = [access.step for access in mine if access.writes]
        assert written == sorted(set(written))
        if task.arrays:
            assert len(streamed) == 1
            assert before < min(streamed) < written[0]
        assert before < written[0]
        before = written[-1]


def test_maps_lie_where_places_say(new_net: Any) -> None:
    begun = initial_schedule(network(new_net(2)), HW)
    graph, aliases, places = begun.lowered.graph, begun.lowered.aliases, begun.candidate.places
    address = in_memory(places, HW, np.arange(HW.act_words))
    inside = in_buffers(graph, aliases, HW, {name: np.arange(size) for name, size in aliases.size.items()})
    for name, place in places.items():
        np.testing.assert_array_equal(address.of[name], place.addresses(HW.word))
        base = places[aliases.of[name].buffer].base
        np.testing.assert_array_equal(inside.of[name] + base, address.of[name])
    for access in accesses(begun.candidate.tasks):
        place, words = places[access.region.tensor], address[access.region]
        ends = [(int(plane.min()), int(plane.max())) for plane in words]
        assert spans(access.region, place.base, place.plane, place.row) == ends
