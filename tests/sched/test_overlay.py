"""Roots that share memory word by word: moments, who may share, allocation, and programs that need it."""

import dataclasses
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.config import HwConfig
from onnxhw.emu.order import by_chance
from onnxhw.ir.graph import Graph
from onnxhw.sched import check, lower
from onnxhw.sched.alloc import ORDERS, Needs, _costs, allocate, find_needs, share_banks
from onnxhw.sched.overlay import NEVER, Moments, find_moments, share
from onnxhw.sched.schedule import Draft, finish
from onnxhw.sched.search import Setting, build, first_settings, works_of
from onnxhw.sched.tiling import chained, even, follow, pieces
from onnxhw.sched.work import Choice

CONFIG = HwConfig(
    "overlay", rows=8, cols=8, word=8, lanes=4, load_rows=8, acc_bits=27, act_depth=64, act_banks=3, weight_depth=1024,
    acc_depth=64, param_depth=512, window_depth=64, depthwise=16, array_ucode=4096, vector_ucode=8192,
    load_ucode=4096, depthwise_ucode=2048,
)  # fmt: skip


def large_input(net: Any) -> Graph:
    """Two planes of 8 x 8 pixels, then a chain of one plane each: two thirds of the memory are the input."""
    y = net.conv(net.input(16, 8, 8), 8, (1, 1))
    y = net.conv(net.conv(y, 8, pads=(1, 1, 1, 1), groups=8), 8, (1, 1))
    found: Graph = net.graph(net.conv(y, 8, pads=(1, 1, 1, 1), strides=(2, 2), groups=8))
    return found


def moments_of(words: list[tuple[int, int]], complete: int) -> Moments:
    first, last = (np.array(column) for column in zip(*words, strict=True))
    return Moments(first, last, complete, len(words))


def test_moments_are_those_of_a_walk_through_the_works(new_net: Any) -> None:
    """Word by word, with steps counted by hand: array reads, then each vector step."""
    plan = lower.lower(large_input(new_net(3)), CONFIG)
    setting = Setting(plan.graph, pieces(plan.graph, CONFIG, 4, 12))
    works = works_of(plan, setting)
    wanted = {
        root: (np.full(size, NEVER), np.full(size, -1)) for root, size in plan.homes.size.items()
    }  # fmt: skip
    inputs, outputs = ({port.tensor for port in ports} for ports in (plan.graph.inputs, plan.graph.outputs))
    for name in inputs:
        wanted[name][0][:] = -1
    touches = []
    number = 0
    for work in works:
        touches += [(number, region, False) for step in work.arrays for region in step.reads]
        for step in work.vectors:
            number += 1
            touches += [(number, region, False) for region in (step.a, step.b) if region]
            touches.append((number, step.writes, True))
        number += 1
    complete = dict.fromkeys(wanted, -1)
    for step, region, writes in touches:
        tensor = plan.graph.tensors[region.tensor]
        for plane in range(*region.planes):
            for row in range(*region.rows):
                for col in range(*region.cols):
                    word = (plane * tensor.height + row) * tensor.width + col
                    first, last = wanted[region.tensor]
                    last[word] = max(last[word], step)
                    if writes:
                        first[word] = min(first[word], step)
        if writes:
            complete[region.tensor] = step
    for name in outputs:
        wanted[name][1][:] = NEVER
    found = find_moments(plan.graph, plan.homes, works, CONFIG, inputs_stay=False)
    for root, (first, last) in wanted.items():
        np.testing.assert_array_equal(found[root].first, first, err_msg=root)
        np.testing.assert_array_equal(found[root].last, last, err_msg=root)
        assert found[root].complete == complete[root]
    stay = find_moments(plan.graph, plan.homes, works, CONFIG, inputs_stay=True)
    assert all((stay[name].last == NEVER).all() for name in inputs)


def test_share_is_what_it_says() -> None:
    """At every word that both use one comes after the other, and after all of it was written; never both ways."""
    random = np.random.default_rng(4)
    seen = set()
    for _ in range(4000):
        roots = []
        for _ in range(2):
            size, begin = int(random.integers(1, 5)), int(random.integers(0, 8))
            first = begin + random.integers(0, 3, size)
            last = first + random.integers(0, 5, size)
            roots.append(moments_of(list(zip(first.tolist(), last.tolist(), strict=True)), int(first.max())))
        bases = [int(base) for base in random.integers(0, 5, 2)]
        (a, b), (at_a, at_b) = roots, bases
        words = [
            (word - at_a, word - at_b) for word in range(12)
            if 0 <= word - at_a < len(a.first) and 0 <= word - at_b < len(b.first)
        ]  # fmt: skip
        after = all(a.last[i] < b.first[j] and a.complete < b.first[j] for i, j in words)
        before = all(b.last[j] < a.first[i] and b.complete < a.first[i] for i, j in words)
        assert share(a, at_a, b, at_b) == (after or before)
        seen.add((bool(words), after, before))
    assert {(True, True, False), (True, False, True), (True, False, False)} <= seen


@pytest.mark.parametrize("order", ["size", "birth", "tied"])
def test_allocated_roots_may_share_what_they_share(order: str) -> None:
    random = np.random.default_rng(5)
    config = dataclasses.replace(CONFIG, act_depth=16)
    shared = 0
    for _ in range(100):
        moments, life = {}, {}
        for i in range(8):
            rows, begin = int(random.integers(2, 10)), int(random.integers(0, 20))
            first = begin + np.arange(rows).repeat(2)
            last = first + int(random.integers(0, 9))
            moments[f"r{i}"] = Moments(first, last, int(first.max()), 2 * rows)
            life[f"r{i}"] = begin, int(last.max())
        size = {name: len(one.first) for name, one in moments.items()}
        placed = allocate(Needs(size, life, moments=moments), config, order, wishes=False, overlay=True)
        for one, two in combinations(placed or (), 2):
            assert placed is not None
            assert share(moments[one], placed[one], moments[two], placed[two])
            together = life[one][0] <= life[two][1] and life[two][0] <= life[one][1]
            low, high = max(placed[one], placed[two]), min(placed[one] + size[one], placed[two] + size[two])
            shared += together and low < high
    assert shared


def test_works_that_read_nothing_have_no_wishes(new_net: Any) -> None:
    """A table beside tiles of a convolution that lie in its padding altogether."""
    net = new_net(7)
    graph = net.graph(net.table(net.input(4, 2, 2)), net.conv(net.input(4, 2, 2), 4, (1, 1), pads=(4, 0, 0, 0)))
    plan = lower.lower(graph, CONFIG)
    choices = {op.name: Choice(even(graph.tensors[op.output].height, 6)) for op in graph.ops}
    works = works_of(plan, Setting(graph, choices))
    wishes = find_needs(plan.graph, plan.homes, works, CONFIG).wishes
    assert all(spans.shape[1:] == (4,) for others in wishes.values() for spans in others.values())


def test_a_plane_may_be_the_only_place() -> None:
    """Neither at the edge of a bank nor beside another root: over the third plane of one whose others are in use."""
    config = dataclasses.replace(CONFIG, act_depth=8)
    size = {"a": 12, "b": 12, "c": 3}
    moments = {
        "a": Moments(np.full(12, -1), np.full(12, NEVER), -1, 12),
        "b": Moments(np.full(12, -1), np.repeat([NEVER, NEVER, 4, NEVER], 3), -1, 3),
        "c": Moments(np.full(3, 5), np.full(3, NEVER), 5, 3),
    }
    life = {"a": (-1, 9), "b": (-1, 9), "c": (5, 9)}
    found = allocate(Needs(size, life, moments=moments), config, "size", wishes=False, overlay=True)
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
    plan = lower.lower(large_input(new_net(3)), CONFIG)
    works = works_of(plan, Setting(plan.graph, pieces(plan.graph, CONFIG, 4, 12)))
    wishes = find_needs(plan.graph, plan.homes, works, CONFIG).wishes
    assert any(wishes.values())
    for one, others in wishes.items():
        for two, spans in others.items():
            np.testing.assert_array_equal(spans[:, [2, 3, 0, 1]], wishes[two][one])


@pytest.mark.parametrize("seed", range(6))
def test_layers_overlap_although_only_rows_are_free(seed: int, new_net: Any) -> None:
    """Works in an order for which there is no room otherwise; every tensor is there when the table says so."""
    graph = large_input(new_net(seed))
    plan = lower.lower(graph, CONFIG)
    setting = Setting(graph, pieces(graph, CONFIG, 4, 16))
    assert not any(build(plan, dataclasses.replace(setting, order=order)) for order in ORDERS)
    found = build(plan, dataclasses.replace(setting, overlay=True))
    assert found is not None
    program = finish(Draft(plan, found))
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
    for name, value in emu.run(program, values, order=by_chance(program.code, seed)).outputs.items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=f"{name} in random order")


def test_nothing_lies_over_an_input_that_stays(new_net: Any) -> None:
    plan = lower.lower(large_input(new_net(0)), dataclasses.replace(CONFIG, act_depth=256))
    setting = next(iter(first_settings(plan)))[0]
    stays = build(plan, dataclasses.replace(setting, overlay=True, inputs_stay=True))
    assert stays is not None
    words = {name: set(place.addresses(8).ravel().tolist()) for name, place in stays.places.items()}
    (name,) = (port.tensor for port in plan.graph.inputs)
    assert not any(words[name] & words[other] for other in words if other != name)


def test_a_program_that_cannot_be_faster_is_not_finished(new_net: Any) -> None:
    plan = lower.lower(large_input(new_net(1)), dataclasses.replace(CONFIG, act_depth=256))
    setting = next(iter(first_settings(plan)))[0]
    found = build(plan, setting)
    assert found is not None
    again = build(plan, setting, found.cycles + 1)
    assert again is not None
    assert again.code == found.code
    assert build(plan, setting, 1) is None


def test_pieces_are_even_or_those_of_chained(new_net: Any) -> None:
    graph = large_input(new_net(2))
    *large, small = graph.ops
    found = pieces(graph, CONFIG, 4, 16)
    assert [found[op.name].cuts for op in large] == [even(8, 4)] * len(large)
    assert found[small.name].cuts == follow(small, graph, found)
    assert next(choice.cuts for choice in pieces(graph, CONFIG, 4, 21).values()) == even(8, 3)
    assert pieces(graph, CONFIG, 4, 22) == chained(graph, CONFIG)
