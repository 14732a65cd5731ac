"""What the plan counts, beside what the scheduler allots."""

from dataclasses import replace

import pytest
from small_networks import SMALL, chain, inverted

from onnxhw.config import preset
from onnxhw.ir.boxes import Box
from onnxhw.sched import map_operations
from onnxhw.segments.cutting import cut
from onnxhw.segments.plan import act_words, packed_words, peak_words, weight_words, weights_of


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


def test_weights_are_told_by_their_channels() -> None:
    graph = inverted()
    op = graph.ops[0]
    whole = Box.whole(graph.tensors[op.output].shape)

    def part(channels: tuple[int, int]) -> dict[tuple[str, tuple[int, int]], int]:
        segment = cut(graph, [op], {op.output: replace(whole, channels=channels)})
        assert segment is not None
        return dict(weights_of(segment, SMALL))

    assert part((0, 24)) == {(op.name, (0, 24)): 2 * 6 * SMALL.tile_words}
    assert part((4, 12)) == {(op.name, (4, 12)): 2 * 2 * SMALL.tile_words}
    add = cut(graph, graph.ops[3:4], {graph.ops[3].output: Box((0, 8), (0, 1), (0, 1))})
    assert add is not None
    assert weights_of(add, SMALL) == {}
