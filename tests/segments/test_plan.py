"""What the plan counts, beside what the scheduler allots."""

from dataclasses import replace

import numpy as np
import pytest
from heuristics import Net
from small_networks import SMALL, chain, inputs, inverted

from onnxhw import emu, golden
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Conv
from onnxhw.passes.packed_inputs import packed_inputs
from onnxhw.presets import preset
from onnxhw.sched import map_operations, schedule
from onnxhw.segments.cutting import cut
from onnxhw.segments.plan import Occupancy, act_words, packed_words, peak_words, weight_words, weights_of


@pytest.mark.parametrize("name", ["mini", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f"])
def test_weight_words_are_at_least_the_scheduler_s(name: str) -> None:
    """And where the depthwise unit takes what it can, as many."""
    config = preset(name)
    for op in inverted(16).ops:
        if not op.weight.size:
            continue
        graph = inverted(16)
        x, y = graph.operands(op)[0], graph.tensors[op.output]
        segment = cut(graph, [op], {op.output: Box.whole(y.shape)})
        assert segment is not None
        words = len(map_operations(segment.graph, config).weight_image)
        assert weight_words(op, x, config) >= words, op.where
        if not op.channelwise:
            assert weight_words(op, x, config) == words, op.where


@pytest.mark.parametrize("name", ["mini", "ulx3s-25f", "ulx3s-85f"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(20, 5, 1), (20, 5, 2), (9, 9, 1), (7, 2, 1), (12, 7, 3)])
def test_weight_words_of_larger_depthwise_kernels(name: str, size: int, kernel: int, stride: int) -> None:
    """The depthwise unit takes a tile for each window of 3 x 3, far fewer than the array."""
    config, net = preset(name), Net(40, size)
    graph = net.graph("one", net.depthwise("x", kernel, stride))
    (op,) = graph.ops
    words = weight_words(op, graph.tensors["x"], config)
    assert words >= len(map_operations(graph, config).weight_image)
    if (name, kernel) == ("ulx3s-85f", 5):
        assert words == -(-40 // config.depthwise_lanes) * 4 * config.depthwise_words


def test_a_kernel_without_room_on_the_array_is_the_depthwise_unit_s() -> None:
    """The sum over a plane of 36 x 20: 720 taps of 16 words."""
    config, net = preset("ulx3s-85f"), Net(16, 40)
    weight = np.ones((16, 1, 36, 20), np.int8)
    zeros, scales = np.zeros(16, np.int32), np.full(16, 0.001, np.float32)
    net.tensors["x"] = replace(net.tensors["x"], shape=(1, 16, 36, 20))
    y = net._op(Conv, ("x",), (16, 1, 1), weight=weight, bias=zeros, multiplier=scales, groups=16)
    graph = net.graph("sum", y)
    assert weight_words(graph.ops[0], graph.tensors["x"], config) == 12 * 7 * config.depthwise_words
    values = inputs(graph)
    made = emu.run(schedule(graph, config), values).outputs[y]
    assert np.array_equal(made, golden.run(graph, values)[y])


def test_tensors_live_from_their_making_to_their_last_use() -> None:
    graph = inverted()
    x, wide = (act_words(graph.tensors[name].shape, SMALL) for name in ("x", graph.ops[0].output))
    assert (x, wide) == (200, 600)
    block = cut(graph, graph.ops[:2], {graph.ops[1].output: Box.whole(graph.tensors[graph.ops[1].output].shape)})
    assert block is not None
    assert peak_words(block.graph, SMALL) == 2 * wide
    assert peak_words(block.graph, SMALL, {block.graph.inputs[0].tensor}) == x + 2 * wide
    both = {op.output: Box.whole(graph.tensors[op.output].shape) for op in graph.ops[:2]}
    kept = cut(graph, graph.ops[:3], {**both, graph.ops[2].output: Box.whole(graph.tensors[graph.ops[2].output].shape)})
    assert kept is not None
    assert peak_words(kept.graph, SMALL) == 2 * wide + x


def test_only_narrow_operands_of_first_convolutions_are_packed() -> None:
    config, graph = preset("ulx3s-85f"), chain()
    x = graph.tensors["x"]
    assert packed_words(x, graph.ops[0], config) == -(-4 * 5 * 5 // 16)
    assert packed_words(replace(x, shape=(1, 5, 3, 3)), graph.ops[0], config) is None
    assert packed_words(x, replace(graph.ops[0], groups=2), config) is None
    assert packed_words(x, graph.ops[0], replace(config, unaligned=0)) is None
    # An image is, where words are short, too; the convolution's weights are in tiles of its window's elements in a row.
    small = preset("ulx3s-25f-dense+sdram")
    net = Net(3, 40)
    image = net.graph("image", net.conv("x", 8, 7, 2))
    (op,), x = image.ops, image.tensors["x"]
    assert small.word == 8
    assert packed_words(x, op, small) == -(-3 * 46 * 46 // 8)
    tiles = map_operations(packed_inputs(image, small)[0].graph, small).weight_words // small.tile_words
    assert tiles <= weight_words(op, x, small) // small.tile_words < 49


def test_weights_are_told_by_their_channels() -> None:
    graph = inverted()
    op = graph.ops[0]
    whole = Box.whole(graph.tensors[op.output].shape)

    def part(channels: tuple[int, int]) -> dict[tuple[str, tuple[int, int]], int]:
        segment = cut(graph, [op], {op.output: whole._replace(channels=channels)})
        assert segment is not None
        return dict(weights_of(segment, SMALL))

    assert part((0, 24)) == {(op.name, (0, 24)): 2 * 6 * SMALL.tile_words}
    assert part((4, 12)) == {(op.name, (4, 12)): 2 * 2 * SMALL.tile_words}
    add = cut(graph, graph.ops[3:4], {graph.ops[3].output: Box((0, 8), (0, 1), (0, 1))})
    assert add is not None
    assert weights_of(add, SMALL) == {}


def test_words_between_operations() -> None:
    graph = chain()
    words = act_words(graph.tensors[graph.ops[0].output].shape, SMALL)
    # The second operation reads the first one's result and makes another; the third one's is an output.
    assert Occupancy(graph, SMALL).between() == 2 * words
    alone = replace(graph, ops=graph.ops[:1], outputs=[replace(graph.outputs[0], tensor=graph.ops[0].output)])
    assert Occupancy(alone, SMALL).between() == 0
