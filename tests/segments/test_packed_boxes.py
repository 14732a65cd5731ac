"""Packed inputs in external memory: their bytes are there once, whatever boxes of them segments read."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from heuristics import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxhw import golden
from onnxhw.compiler.segmented import SegmentedGraphs
from onnxhw.config import HwConfig
from onnxhw.emu.emulator import Emulator
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Graph, MaxPool
from onnxhw.ir.ops.conv import PackedConv
from onnxhw.isa.memory import host_stride
from onnxhw.passes.packed_inputs import packed_inputs
from onnxhw.presets import preset
from onnxhw.program.layout import from_host, to_host
from onnxhw.program.storage import PackedInput
from onnxhw.program.traffic import traffic_of
from onnxhw.segments import QUICK, THOROUGH, PartCycles, Region, Segment, link, make_plan, sources_of
from onnxhw.segments.cutting import cut
from onnxhw.segments.packed_boxes import PackedRegion, PackedSource, packed_moves
from onnxhw.segments.placed_segment import PlacedPart
from onnxhw.segments.regions import Strided

CONFIG = replace(preset("ulx3s-85f+sdram"), act_depth=128)
"""8 KB of activations."""
Words = npt.NDArray[np.uint32]


def image(kernel: int = 3, stride: int = 2, channels: int = 3, size: int = 72) -> Graph:
    """Two convolutions of an image."""
    net = Net(channels, size)
    return net.graph("image", net.conv(net.conv("x", 16, kernel, stride), 24, 1))


def packed_loads(segments: Sequence[Segment], config: HwConfig = CONFIG) -> list[tuple[PackedRegion, Segment, int]]:
    """The boxes of the image that segments load, in each way to pack them, with the way's number."""
    found = []
    for segment in segments:
        ways = packed_inputs(segment.graph, config, segment.origins)
        for region, port in zip(segment.inputs, segment.graph.inputs, strict=True):
            for number, way in enumerate(ways if region.tensor == "x" else ()):
                storage, _ = way.storage[port.tensor]
                assert isinstance(storage, PackedInput)
                found.append(((region, storage), segment, number))
    return found


def copied(moves: Sequence[Strided], external: Words, words: int) -> Words:
    """Host words of a box behind its moves; those that none writes are made up."""
    found = np.full(words, 0xA5A5A5A5, np.uint32)
    written = np.zeros(words, bool)
    for move in moves:
        for block in range(move.counts[0]):
            for run in range(move.counts[1]):
                steps = [first + block * s[0] + run * s[1] for first, s in
                         ((move.chip, move.chip_steps), (move.external, move.external_steps))]  # fmt: skip
                for word in range(move.counts[2]):
                    assert not written[steps[0] + word]
                    written[steps[0] + word] = True
                    found[steps[0] + word] = external[steps[1] + word]
    assert written.all()
    return found


def brought(packed: PackedRegion, source: PackedSource, values: npt.NDArray[np.int8], zero: int, config: HwConfig) -> \
        npt.NDArray[np.int8]:  # fmt: skip
    """A box as the moves bring it, in pieces of seven words, of a source that the host has written."""
    region, storage = packed
    external = source.storage.store(values[source.box.slices], zero)[0, :, 0].T
    host = to_host(np.ascontiguousarray(external).view(np.uint8), config.word)
    moves = [
        move for first in range(0, storage.words, 7)
        for move in packed_moves(region, storage, source, range(first, min(first + 7, storage.words)), config)
    ]  # fmt: skip
    words = copied(moves, host.reshape(-1), storage.words * host_stride(config.word))
    return from_host(words, config.word).reshape(storage.words, config.word).T[None, :, None].view(np.int8)


@settings(deadline=None, max_examples=150)
@given(data=st.data(), name=st.sampled_from(["ulx3s-85f+sdram", "ulx3s-25f-dense+sdram", "mini+sdram"]))
def test_moves_bring_what_a_segment_is_to_find(data: st.DataObject, name: str) -> None:
    """Whatever lies in the bytes that no window reads: the segment's convolutions make the same of it."""
    config = preset(name)
    kernel, stride = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 3))
    channels, size = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([21, 40, 90]))
    graph = image(kernel, stride, channels, size)
    (conv, *_), tensor = graph.ops, graph.tensors["x"]
    whole = graph.tensors[conv.output].shape
    values = np.random.default_rng(kernel).integers(-128, 128, tensor.shape).astype(np.int8)
    ends = [st.sampled_from([0, n]) | st.integers(0, n) for n in whole[2:]]
    spans = [sorted(data.draw(st.lists(end, min_size=2, max_size=2, unique=True))) for end in ends]
    boxes = [Box((0, 16), (spans[0][0], spans[0][1]), (spans[1][0], spans[1][1])), Box.whole(whole)]
    segments = [segment for box in boxes if (segment := cut(graph, [conv], {conv.output: box}))]
    loads = packed_loads(segments, config)
    sources = sources_of([packed for packed, _, number in loads if number == 0], config)
    assert len(set(sources.values())) <= 1
    for packed, segment, number in loads:
        if number:
            continue
        stored = brought(packed, sources[packed], values, tensor.zero_point, config)
        region, storage = packed
        np.testing.assert_array_equal(storage.restore(stored, region.box.shape), values[region.box.slices])
        (way, *_) = packed_inputs(segment.graph, config, segment.origins)
        (port,) = segment.graph.inputs
        made = golden.run(way.graph, {port.tensor: stored})
        wanted = golden.run(segment.graph, {port.tensor: values[region.box.slices]})
        for out in segment.graph.outputs:
            np.testing.assert_array_equal(made[out.tensor], wanted[out.tensor])


@pytest.mark.parametrize(("kernel", "stride", "reads"), [(3, 2, 3), (5, 1, 5), (7, 2, 11)])
def test_all_boxes_of_an_image_have_one_source_without_gaps(kernel: int, stride: int, reads: int) -> None:
    """Of narrow rows, 72 pixels of three bytes; a read more than without external memory at worst."""
    graph = image(kernel, stride)
    loads = packed_loads(make_plan(graph, CONFIG, PartCycles(CONFIG), effort=QUICK).segments)
    first = [each for each, _, number in loads if not number]
    sources = set(sources_of(first, CONFIG).values())
    assert len({region.box for region, _ in first}) > 3
    assert sources == {PackedSource("x", Box((0, 3), (0, 72), (0, 72)), PackedInput(16, 973, 16, 216, 3))}
    tiles = {len(op.tiles) for _, segment, number in loads if not number for op in packed_ops(segment)}
    assert tiles == {reads}


def test_wide_rows_may_be_two_bytes_apart() -> None:
    """Where that spares a read of a window: two of 3 x 3 x 3, with 0.7 % more bytes than the image has."""
    graph = image(size=96)
    (_, segment, _), *_ = loads = packed_loads(make_plan(graph, CONFIG, PartCycles(CONFIG), effort=QUICK).segments)
    sources = set(sources_of([each for each, _, number in loads if not number], CONFIG).values())
    assert [source.storage.row for source in sources] == [3 * 96 + 2]
    assert {len(op.tiles) for op in packed_ops(segment)} == {2}


def packed_ops(segment: Segment) -> list[PackedConv]:
    """The convolutions of a segment that read packed bytes."""
    (way, *_) = packed_inputs(segment.graph, CONFIG, segment.origins)
    return [op for op in way.graph.ops if isinstance(op, PackedConv)]


def test_boxes_at_other_bytes_of_host_words_have_a_source_each() -> None:
    def region(low: int, high: int, cols: tuple[int, int] = (0, 10)) -> Region:
        return Region("x", Box((0, 3), (low, high), cols))

    row = PackedInput(16, 12, 0, 32, 3)
    near = [(region(0, 6), row), (region(4, 10, (4, 10)), row), (region(40, 44), replace(row, row=48))]
    (whole,) = set(sources_of(near, CONFIG).values())
    assert whole.box == Box((0, 3), (0, 44), (0, 10))
    assert whole.storage == PackedInput(16, 1 + 44 * 32 // 16, 16, 32, 3)
    others = [
        (region(4, 10, (1, 10)), row),  # three bytes further
        (region(4, 10), replace(row, row=33)),
        (region(4, 10), replace(row, first=1)),
        (region(4, 10), replace(row, column=4)),
        (region(4, 10), PackedInput(16, 18, 0, 3, 32)),  # columns follow each other
    ]
    for other in others:
        assert len(set(sources_of([*near, other], CONFIG).values())) == 2
    assert sources_of([], CONFIG) == {}


@pytest.mark.parametrize(("size", "gap"), [(72, 0), (73, 1), (75, 3), (94, 2), (96, 2), (97, 1), (128, 2)])
def test_an_image_is_sent_once(size: int, gap: int) -> None:
    """Its bytes, `gap` bytes for each row, and zero points at the begin."""
    graph, segmented = image(size=size), SegmentedGraphs(CONFIG)
    told = segmented.forecast(graph).traffic
    cycles = PartCycles(CONFIG)
    plan = make_plan(graph, CONFIG, cycles)
    program = link(graph, plan, CONFIG, cycles.schedules)
    boxes = {region.box for segment in plan.segments for region in segment.loads if region.tensor == "x"}
    (piece,) = program.tensors["x"].external
    assert isinstance(piece.storage, PackedInput)
    sent = 16 * piece.storage.words
    assert 0 <= sent - (3 * size + gap) * size - 16 + gap < 16
    assert len(boxes) > 3
    assert sent < sum(box.size for box in boxes)
    assert abs(traffic_of(program).sent - told.sent) < 0.02 * told.sent
    emulator = Emulator(program)
    for seed in range(2):
        values = {"x": np.random.default_rng(seed).integers(-128, 128, (1, 3, size, size)).astype(np.int8)}
        made, wanted = emulator.run(values), golden.run(graph, values)
        assert all(np.array_equal(found, wanted[name]) for name, found in made.outputs.items())


@pytest.mark.parametrize(("name", "channels"), [("ulx3s-85f+sdram", 9), ("ulx3s-25f-dense+sdram", 4)])
def test_boxes_that_are_too_large_to_lie_packed_are_cut_smaller(name: str, channels: int) -> None:
    """Some boxes take more than what may be read from any byte: they would come as whole words, so the input in both
    forms."""
    config, net = preset(name), Net(channels, 1)
    net.tensors["x"] = replace(net.tensors["x"], shape=(1, channels, 121, 161))
    seen = net.conv(net.conv("x", 16, 3, 2), 24, 1)
    pooled = net._op(MaxPool, (seen,), (24, 10, 13), kernel=(6, 6), strides=(6, 6))
    graph, cycles = net.graph("large", net.conv(pooled, 4, 1)), PartCycles(config)
    packed, whole = (
        link(graph, make_plan(graph, config, cycles, effort=effort), config, cycles.schedules).tensors["x"].external
        for effort in (THOROUGH, replace(THOROUGH, packed=False))
    )
    assert [piece.storage is None for piece in packed] == [False]
    assert {piece.storage is None for piece in whole} == {True, False}


def test_an_image_that_finds_a_place_packed_is_not_sent_as_it_is_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the costs say, which know nothing of the line."""

    def cost(_: object, found: PlacedPart, *__: object) -> float:
        return 1e9 if found.part.storage else 0.0

    monkeypatch.setattr("onnxhw.segments.placing.placement_cost", cost)
    graph, cycles = image(), PartCycles(CONFIG)
    program = link(graph, make_plan(graph, CONFIG, cycles, effort=QUICK), CONFIG, cycles.schedules)
    assert all(isinstance(piece.storage, PackedInput) for piece in program.tensors["x"].external)
