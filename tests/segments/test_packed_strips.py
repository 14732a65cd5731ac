"""Packed inputs in external memory: rows that several segments read are there once."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net

from onnxhw import golden
from onnxhw.compiler.segmented import SegmentedGraphs
from onnxhw.emu.emulator import Emulator
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Graph
from onnxhw.passes.packed_inputs import packed_inputs
from onnxhw.presets import preset
from onnxhw.program.storage import PackedInput
from onnxhw.program.traffic import traffic_of
from onnxhw.segments import QUICK, PartCycles, Region, Segment, link, make_plan, strips_of
from onnxhw.segments.placed_segment import PlacedPart

CONFIG = replace(preset("ulx3s-85f+sdram"), act_depth=128)
"""8 KB of activations."""


def image(kernel: int = 3, stride: int = 2) -> Graph:
    """Two convolutions of an image of three channels."""
    net = Net(3, 72)
    return net.graph("image", net.conv(net.conv("x", 16, kernel, stride), 24, 1))


def packed_loads(segments: tuple[Segment, ...]) -> list[tuple[Region, PackedInput]]:
    """The boxes of the image that segments load, as the first way to pack them has them."""
    found = []
    for segment in segments:
        for region, port in zip(segment.inputs, segment.graph.inputs, strict=True):
            if region.tensor == "x":
                storage, _ = packed_inputs(segment.graph, CONFIG, {port.tensor: region.box.rows[0]})[0].storage[
                    port.tensor
                ]
                assert isinstance(storage, PackedInput)
                found.append((region, storage))
    return found


@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (5, 1), (7, 2)])
def test_the_words_of_a_box_are_those_of_its_strip(kernel: int, stride: int) -> None:
    graph = image(kernel, stride)
    loads = packed_loads(make_plan(graph, CONFIG, PartCycles(CONFIG), effort=QUICK).segments)
    values = np.random.default_rng(1).integers(-128, 128, (1, 3, 72, 72)).astype(np.int8)
    found, zero = strips_of(loads), graph.tensors["x"].zero_point
    strips = {each.strip for each in found.values()}
    assert len({region.box.rows for region, _ in loads}) > 3
    assert len(strips) == len({region.box.cols for region, _ in loads})
    for (region, storage), mine in found.items():
        assert mine.strip.tensor == "x"
        assert region.box.inside(mine.strip.box)
        stored = mine.strip.storage.store(values[mine.strip.box.slices], zero)
        words = stored[..., mine.first : mine.first + storage.words]
        assert np.array_equal(storage.restore(words, region.box.shape), values[region.box.slices])


def test_boxes_that_are_packed_otherwise_or_far_apart_lie_by_themselves() -> None:
    def region(low: int, high: int, cols: tuple[int, int] = (0, 10)) -> Region:
        return Region("x", Box((0, 3), (low, high), cols))

    row = PackedInput(16, 12, 0, 32, 3)
    near = [(region(0, 6), row), (region(4, 10), row)]
    found = strips_of(near)
    assert {each.first for each in found.values()} == {0, 8}
    assert {each.strip.storage for each in found.values()} == {replace(row, words=20)}
    others = [
        (region(20, 26), row),  # words between them are nobody's
        (region(4, 10, (0, 9)), row),
        (region(4, 10), replace(row, row=33)),
        (region(4, 10), replace(row, first=4)),  # not at the same bytes of words
        (region(4, 10), PackedInput(16, 18, 0, 3, 30)),  # columns follow each other
    ]
    for other in others:
        strips = {each.strip for each in strips_of([*near, other]).values()}
        assert len(strips) == 2
        assert other[0].box in {strip.box for strip in strips}
    assert strips_of([]) == {}


def test_an_image_is_sent_once() -> None:
    graph, segmented = image(), SegmentedGraphs(CONFIG)
    told = segmented.forecast(graph).traffic
    cycles = PartCycles(CONFIG)
    plan = make_plan(graph, CONFIG, cycles)
    program = link(graph, plan, CONFIG, cycles.schedules)
    boxes = {region.box for segment in plan.segments for region in segment.loads if region.tensor == "x"}
    pieces = program.tensors["x"].external
    assert len(boxes) > 2 * len(pieces)
    sent = 16 * sum(piece.storage.words for piece in pieces if isinstance(piece.storage, PackedInput))
    assert 3 * 72 * 72 < sent < sum(box.size for box in boxes)
    assert abs(traffic_of(program).sent - told.sent) < 0.2 * told.sent
    emulator = Emulator(program)
    for seed in range(2):
        values = {"x": np.random.default_rng(seed).integers(-128, 128, (1, 3, 72, 72)).astype(np.int8)}
        made, wanted = emulator.run(values), golden.run(graph, values)
        assert all(np.array_equal(found, wanted[name]) for name, found in made.outputs.items())


def test_an_image_that_finds_a_place_packed_is_not_sent_as_it_is_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the costs say, which know nothing of the line."""

    def cost(_: object, found: PlacedPart, *__: object) -> float:
        return 1e9 if found.part.storage else 0.0

    monkeypatch.setattr("onnxhw.segments.placing.placement_cost", cost)
    graph, cycles = image(), PartCycles(CONFIG)
    program = link(graph, make_plan(graph, CONFIG, cycles, effort=QUICK), CONFIG, cycles.schedules)
    assert all(isinstance(piece.storage, PackedInput) for piece in program.tensors["x"].external)
