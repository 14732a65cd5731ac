"""Random boxes of random groups, against the golden model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import NETWORKS, inputs

from onnxhw.golden import run
from onnxhw.ir.boxes import Box
from onnxhw.ir.graph import Array8, Copy
from onnxhw.ir.verify import verify
from onnxhw.segments import Region, Segment
from onnxhw.segments.cutting import cut


def compare(segment: Segment, expected: dict[str, Array8]) -> None:
    """All parts and outputs of a segment with the golden model's tensors."""
    verify(segment.graph)
    ports = zip(segment.graph.inputs, segment.inputs, strict=True)
    made = run(segment.graph, {port.tensor: expected[region.tensor][region.box.slices] for port, region in ports})
    results = {op.name: made[op.output] for op in segment.graph.ops}
    for part in segment.parts:
        assert np.array_equal(results[part.op], expected[part.tensor][part.box.slices]), part
    for port, region in zip(segment.graph.outputs, segment.outputs, strict=True):
        assert np.array_equal(made[port.tensor], expected[region.tensor][region.box.slices])


@pytest.mark.parametrize("name", NETWORKS)
@given(st.integers(0, 2**32))
def test_a_segment_makes_its_boxes(name: str, seed: int) -> None:
    graph, rng = NETWORKS[name](), np.random.default_rng(seed)
    expected = run(graph, inputs(graph))
    first = int(rng.integers(len(graph.ops)))
    ops = graph.ops[first : first + int(rng.integers(1, 5))]
    y = graph.tensors[ops[-1].output]
    spans = [sorted(rng.choice(size + 1, 2, replace=False)) for size in y.shape[1:]]
    wanted = Box(*((int(low), int(high)) for low, high in spans))
    segment = cut(graph, ops, {y.name: wanted})
    if segment is None:
        return
    assert [part.op for part in segment.parts] == [op.name for op in ops]
    assert segment.outputs == (Region(y.name, wanted),)
    compare(segment, expected)


def test_stripes_of_a_block_crop_its_shortcut() -> None:
    """The sum takes the rows of its operand that it needs, the depthwise convolution one more on either side."""
    graph = NETWORKS["inverted"]()
    y = graph.tensors[graph.ops[3].output]
    segment = cut(graph, graph.ops[:4], {y.name: Box((0, 8), (4, 6), (3, 8))})
    assert segment is not None
    assert [region.box for region in segment.loads] == [Box((0, 8), (3, 7), (2, 9))]
    assert [type(op).__name__ for op in segment.graph.ops if op.moves] == [Copy.__name__]
    compare(segment, run(graph, inputs(graph)))


def test_what_a_group_does_not_make_of_its_operations_is_none() -> None:
    graph = NETWORKS["inverted"]()
    y, inner = graph.tensors[graph.ops[3].output], graph.tensors[graph.ops[0].output]
    assert cut(graph, graph.ops[:5], {y.name: Box.whole(y.shape)}) is None  # nobody wants the fifth
    some = {y.name: Box.whole(y.shape), inner.name: Box((0, 24), (0, 2), (0, 10))}
    assert cut(graph, graph.ops[:4], some) is None  # more is needed of the first than is wanted
    part = {y.name: Box((0, 4), (0, 10), (0, 10))}
    assert cut(graph, graph.ops[:4], part) is None  # the shortcut has half of the channels, the block needs all
