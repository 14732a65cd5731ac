"""Buffers that share memory word by word: live ranges, who may share, allocation, and programs that need it."""

import dataclasses
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from legal_orders import random_order

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.ir.graph import Graph
from onnxhw.sched import check, lower
from onnxhw.sched.alloc import ORDERS, Needs, Occupied, _costs, allocate, find_needs, share_banks
from onnxhw.sched.live_ranges import NEVER, LiveRange, live_ranges, may_overlap
from onnxhw.sched.scheduler import InitialSchedule, finish
from onnxhw.sched.search import SearchPoint, build, first_points, tasks_of
from onnxhw.sched.task import Tiling
from onnxhw.sched.tiling import chained, even, follow, pieces

CONFIG = HwConfig(
    "overlay", rows=8, cols=8, word=8, lanes=4, load_rows=8, acc_bits=27, act_depth=64, act_banks=3, weight_depth=1024,
    acc_depth=64, param_depth=512, window_depth=64, depthwise=16, array_ucode=4096, vector_ucode=8192,
    load_ucode=4096, depthwise_ucode=2048,
)  # fmt: skip


def large_input(net: Any) -> Graph:
    """Two blocks of 8 x 8 pixels, then a chain of one block each: two thirds of the memory are the input."""
    y = net.conv(net.input(16, 8, 8), 8, (1, 1))
    y = net.conv(net.conv(y, 8, pads=(1, 1, 1, 1), groups=8), 8, (1, 1))
    found: Graph = net.graph(net.conv(y, 8, pads=(1, 1, 1, 1), strides=(2, 2), groups=8))
    return found


def live_range_of(words: list[tuple[int, int]], complete: int) -> LiveRange:
    first, last = (np.array(column) for column in zip(*words, strict=True))
    return LiveRange(first, last, complete, len(words))


def test_moments_are_those_of_a_walk_through_the_works(new_net: Any) -> None:
    """Word by word, with steps counted by hand: array reads, then each vector step."""
    lowered = lower.lower(large_input(new_net(3)), CONFIG)
    point = SearchPoint(lowered.graph, pieces(lowered.graph, CONFIG, 4, 12))
    tasks = tasks_of(lowered, point)
    wanted = {
        buffer: (np.full(size, NEVER), np.full(size, -1)) for buffer, size in lowered.aliases.size.items()
    }  # fmt: skip
    inputs, outputs = ({port.tensor for port in ports} for ports in (lowered.graph.inputs, lowered.graph.outputs))
    for name in inputs:
        wanted[name][0][:] = -1
    touches = []
    number = 0
    for task in tasks:
        touches += [(number, region, False) for step in task.arrays for region in step.reads]
        for step in task.vectors:
            number += 1
            touches += [(number, region, False) for region in (step.a, step.b) if region]
            touches.append((number, step.writes, True))
        number += 1
    complete = dict.fromkeys(wanted, -1)
    for step, region, writes in touches:
        tensor = lowered.graph.tensors[region.tensor]
        for block in range(*region.blocks):
            for row in range(*region.rows):
                for col in range(*region.cols):
                    word = (block * tensor.height + row) * tensor.width + col
                    first, last = wanted[region.tensor]
                    last[word] = max(last[word], step)
                    if writes:
                        first[word] = min(first[word], step)
        if writes:
            complete[region.tensor] = step
    for name in outputs:
        wanted[name][1][:] = NEVER
    found = live_ranges(lowered.graph, lowered.aliases, tasks, CONFIG, ())
    for buffer, (first, last) in wanted.items():
        np.testing.assert_array_equal(found[buffer].first, first, err_msg=buffer)
        np.testing.assert_array_equal(found[buffer].last, last, err_msg=buffer)
        assert found[buffer].complete == complete[buffer]
    stay = live_ranges(lowered.graph, lowered.aliases, tasks, CONFIG, inputs)
    assert all((stay[name].last == NEVER).all() for name in inputs)


def test_an_input_that_stays_lies_under_nothing(new_net: Any) -> None:
    """Another segment reads it, too; beside it there is no room for two more tensors, which lie over it otherwise."""
    graph = large_input(new_net(3))
    name = graph.inputs[0].tensor
    found = []
    for kept in (frozenset[str](), frozenset({name})):
        lowered = lower.lower(graph, CONFIG, occupied=Occupied(fixed={name: 0}, kept=kept))
        point = SearchPoint(lowered.graph, pieces(lowered.graph, CONFIG, 4, 12), overlap=True)
        found.append(build(lowered, point))
    assert found[0] is not None
    assert found[1] is None


def test_share_is_what_it_says() -> None:
    """At every word that both use one comes after the other, and after all of it was written; never both ways."""
    random = np.random.default_rng(4)
    seen = set()
    for _ in range(4000):
        buffers = []
        for _ in range(2):
            size, begin = int(random.integers(1, 5)), int(random.integers(0, 8))
            first = begin + random.integers(0, 3, size)
            last = first + random.integers(0, 5, size)
            buffers.append(live_range_of(list(zip(first.tolist(), last.tolist(), strict=True)), int(first.max())))
        bases = [int(base) for base in random.integers(0, 5, 2)]
        (a, b), (at_a, at_b) = buffers, bases
        words = [
            (word - at_a, word - at_b) for word in range(12)
            if 0 <= word - at_a < len(a.first) and 0 <= word - at_b < len(b.first)
        ]  # fmt: skip
        after = all(a.last[i] < b.first[j] and a.complete < b.first[j] for i, j in words)
        before = all(b.last[j] < a.first[i] and b.complete < a.first[i] for i, j in words)
        assert may_overlap(a, at_a, b, at_b) == (after or before)
        seen.add((bool(words), after, before))
    assert {(True, True, False), (True, False, True), (True, False, False)} <= seen


@pytest.mark.parametrize("order", ["size", "birth", "constrained"])
def test_allocated_roots_may_share_what_they_share(order: str) -> None:
    random = np.random.default_rng(5)
    config = dataclasses.replace(CONFIG, act_depth=16)
    shared = 0
    for _ in range(100):
        live, life = {}, {}
        for i in range(8):
            rows, begin = int(random.integers(2, 10)), int(random.integers(0, 20))
            first = begin + np.arange(rows).repeat(2)
            last = first + int(random.integers(0, 9))
            live[f"r{i}"] = LiveRange(first, last, int(first.max()), 2 * rows)
            life[f"r{i}"] = begin, int(last.max())
        size = {name: len(one.first) for name, one in live.items()}
        placed = allocate(Needs(size, life, live=live), config, order, preferences=False, overlap=True)
        for one, two in combinations(placed or (), 2):
            assert placed is not None
            assert may_overlap(live[one], placed[one], live[two], placed[two])
            together = life[one][0] <= life[two][1] and life[two][0] <= life[one][1]
            low, high = max(placed[one], placed[two]), min(placed[one] + size[one], placed[two] + size[two])
            shared += together and low < high
    assert shared


def test_works_that_read_nothing_have_no_wishes(new_net: Any) -> None:
    """A table beside tiles of a convolution that lie in its padding altogether."""
    net = new_net(7)
    graph = net.graph(net.table(net.input(4, 2, 2)), net.conv(net.input(4, 2, 2), 4, (1, 1), pads=(4, 0, 0, 0)))
    lowered = lower.lower(graph, CONFIG)
    tilings = {op.name: Tiling(even(graph.tensors[op.output].height, 6)) for op in graph.ops}
    tasks = tasks_of(lowered, SearchPoint(graph, tilings))
    preferences = find_needs(lowered.graph, lowered.aliases, tasks, CONFIG).preferences
    assert all(spans.shape[1:] == (4,) for others in preferences.values() for spans in others.values())


def test_a_block_may_be_the_only_place() -> None:
    """Neither at the edge of a bank nor beside another buffer: over the third block of one whose others are in use."""
    config = dataclasses.replace(CONFIG, act_depth=8)
    size = {"a": 12, "b": 12, "c": 3}
    live = {
        "a": LiveRange(np.full(12, -1), np.full(12, NEVER), -1, 12),
        "b": LiveRange(np.full(12, -1), np.repeat([NEVER, NEVER, 4, NEVER], 3), -1, 3),
        "c": LiveRange(np.full(3, 5), np.full(3, NEVER), 5, 3),
    }
    life = {"a": (-1, 9), "b": (-1, 9), "c": (5, 9)}
    found = allocate(Needs(size, life, live=live), config, "size", preferences=False, overlap=True)
    assert found == {"a": 0, "b": 12, "c": 18}


def test_costs_count_the_spans_in_a_common_bank() -> None:
    random = np.random.default_rng(6)
    spans = {name: np.sort(random.integers(0, 40, (9, 2, 2)), axis=2).reshape(9, 4) for name in ("x", "y", "far")}
    placed, bases = {"x": 5, "y": 70}, np.arange(0, 60, 7)
    wanted = [
        sum(
            share_banks(int(base) + low, high - low + 1, placed[name] + first, last - first + 1, 16)
            for name in placed for low, high, first, last in spans[name].tolist()
        )
        for base in bases
    ]  # fmt: skip
    assert _costs(spans, placed, bases, 16).tolist() == wanted


def test_wishes_are_seen_from_both_sides(new_net: Any) -> None:
    lowered = lower.lower(large_input(new_net(3)), CONFIG)
    tasks = tasks_of(lowered, SearchPoint(lowered.graph, pieces(lowered.graph, CONFIG, 4, 12)))
    preferences = find_needs(lowered.graph, lowered.aliases, tasks, CONFIG).preferences
    assert any(preferences.values())
    for one, others in preferences.items():
        for two, spans in others.items():
            np.testing.assert_array_equal(spans[:, [2, 3, 0, 1]], preferences[two][one])


@pytest.mark.parametrize("seed", range(6))
def test_layers_overlap_although_only_rows_are_free(seed: int, new_net: Any) -> None:
    """Tasks in an order for which there is no room otherwise; every tensor is there when the table says so."""
    graph = large_input(new_net(seed))
    lowered = lower.lower(graph, CONFIG)
    point = SearchPoint(graph, pieces(graph, CONFIG, 4, 16))
    assert not any(build(lowered, dataclasses.replace(point, order=order)) for order in ORDERS)
    found = build(lowered, dataclasses.replace(point, overlap=True))
    assert found is not None
    program = finish(InitialSchedule(lowered, found))
    check(program)
    random = np.random.default_rng(seed)
    values = {p.tensor: random.integers(-128, 128, graph.tensors[p.tensor].shape).astype(np.int8) for p in graph.inputs}
    wanted = golden.run(graph, values)
    machine = emu.Emulator(program)
    traced = machine.run(values, trace=True).tensors
    assert machine.cycles == program.cycles
    assert set(traced) == set(graph.tensors)
    for name, value in traced.items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=name)
    for name, value in emu.run(program, values, order=random_order(program.code, seed)).outputs.items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=f"{name} in random order")


def test_nothing_lies_over_an_input_that_stays(new_net: Any) -> None:
    lowered = lower.lower(large_input(new_net(0)), dataclasses.replace(CONFIG, act_depth=256))
    point = next(iter(first_points(lowered)))[0]
    stays = build(lowered, dataclasses.replace(point, overlap=True, exclusive_inputs=True))
    assert stays is not None
    words = {name: set(place.addresses(8).ravel().tolist()) for name, place in stays.places.items()}
    (name,) = (port.tensor for port in lowered.graph.inputs)
    assert not any(words[name] & words[other] for other in words if other != name)


def test_a_program_that_cannot_be_faster_is_not_finished(new_net: Any) -> None:
    lowered = lower.lower(large_input(new_net(1)), dataclasses.replace(CONFIG, act_depth=256))
    point = next(iter(first_points(lowered)))[0]
    found = build(lowered, point)
    assert found is not None
    again = build(lowered, point, found.cycles + 1)
    assert again is not None
    assert again.code == found.code
    assert build(lowered, point, 1) is None


def test_pieces_are_even_or_those_of_chained(new_net: Any) -> None:
    graph = large_input(new_net(2))
    *large, small = graph.ops
    found = pieces(graph, CONFIG, 4, 16)
    assert [found[op.name].cuts for op in large] == [even(8, 4)] * len(large)
    assert found[small.name].cuts == follow(small, graph, found)
    assert next(tiling.cuts for tiling in pieces(graph, CONFIG, 4, 21).values()) == even(8, 3)
    assert pieces(graph, CONFIG, 4, 22) == chained(graph, CONFIG)
