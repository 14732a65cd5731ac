"""A box of an operation's result is what the operation's part makes of the boxes that it needs."""

from dataclasses import replace
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from every_operation import every
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.ir.boxes import Box, window_view
from onnxhw.ir.graph import Concat, Conv, Copy, Graph, MatMul, Mul, Op, Piece, Reshape, Tensor
from onnxhw.ir.ops.conv import PackedConv, PackedTile
from onnxhw.ir.windows import Window


def span(rng: np.random.Generator, size: int, cut: bool) -> tuple[int, int]:
    """Any but an empty one, the edges often."""
    if not cut:
        return 0, size
    low = int(rng.choice([0, rng.integers(size)]))
    return low, int(rng.choice([size, rng.integers(low + 1, size + 1)]))


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, (1, *shape), 0.5, 3)  # type: ignore[arg-type]


COPIES = (
    (tuple(Piece(0, 0, 6, 1, 4, 6, y, x, 2, 2) for y in (0, 1) for x in (0, 1)), (8, 12)),  # nearest, twice as large
    (tuple(Piece(2 * y + x, 0, 6, 1, 4, 6, y, x, 2, 2) for y in (0, 1) for x in (0, 1)), (8, 12)),  # phases
    ((Piece(0, 0, 1, 6, 6, 4),), (6, 4)),  # turned
    ((Piece(0, 23, -6, -1, 4, 6),), (4, 6)),  # backwards
    ((Piece(0, 2, 7, 1, 3, 7),), (3, 7)),  # rows that run on
    ((Piece(0, 0, 6, 1, 4, 6, 2, 1), Piece(1, 7, 12, 2, 2, 2, 0, 8, 3, 2)), (7, 12)),  # two operands, and the fill
    ((Piece(0, 6, 0, 1, 5, 6), Piece(1, 5, 6, -1, 4, 3, 5)), (9, 6)),  # one row again and again, and one turned
)
"""Pieces of operands of 4 x 6, and the size of the result."""


def more() -> Graph:
    """Operations as the self-test's network has none: windows of all kinds, groups, products of turned matrices."""
    graph, rng = Graph("more", {}, [], [], []), np.random.default_rng(5)

    def add(op: Op, inputs: list[Tensor], y: Tensor) -> None:
        op.check(inputs, y)
        graph.tensors.update({x.name: x for x in (*inputs, y)})
        graph.ops.append(op)

    windows = [
        Window((3, 2), (2, 1), (1, 2), (1, 2, 2, 0)), Window((1, 3), (3, 2), (1, 1), (0, 1, 0, 1)),
        Window((2, 2), (1, 1), (3, 1), (-1, -2, 3, -1)), Window((3, 3), (2, 2), (2, 1), (5, 4, 4, 5)),
    ]  # fmt: skip
    for n, (window, groups) in enumerate((window, groups) for window in windows for groups in (1, 2, 6)):
        x, y = tensor(f"x{n}", 6, 9, 8), tensor(f"y{n}", 12, *window.size((9, 8)))
        weight = rng.integers(-99, 99, (12, 6 // groups, *window.kernel)).astype(np.int8)
        bias, scale = rng.integers(-99, 99, 12).astype(np.int32), rng.uniform(0.001, 0.01, 12).astype(np.float32)
        add(
            Conv(f"op{n}", (x.name,), y.name, (), weight, bias, scale, window.strides, window.dilations, window.pads,
                 groups), [x], y,
        )  # fmt: skip
    for turned_a in (False, True):
        for turned_b in (False, True):
            n = len(graph.ops)
            a = tensor(f"a{n}", 2, *((3, 5), (5, 3))[turned_a])
            b = tensor(f"b{n}", 2, *((5, 4), (4, 5))[turned_b])
            op = MatMul(f"op{n}", (a.name, b.name), f"y{n}", (), 0.01, turned_a, turned_b)
            add(op, [a, replace(b, zero_point=-7)], tensor(f"y{n}", 2, 3, 4))
    whole, each = tensor("whole", 7, 4, 5), tensor("each", 7, 1, 1)
    add(Mul("gate", ("each", "whole"), "gated", ratio=0.01), [each, whole], tensor("gated", 7, 4, 5))
    for n, (pieces, size) in enumerate(COPIES):
        copied = tuple(tensor(f"copied{n}.{k}", 3, 4, 6) for k in range(1 + max(piece.source for piece in pieces)))
        add(Copy(f"copy{n}", tuple(x.name for x in copied), f"arranged{n}", (), pieces, 5), list(copied),
            tensor(f"arranged{n}", 3, *size))  # fmt: skip
    parts = [tensor(f"part{channels}", channels, 4, 5) for channels in (3, 1, 5)]
    add(Concat("concat3", tuple(x.name for x in parts), "joined"), parts, tensor("joined", 9, 4, 5))
    return graph


GRAPHS = [every(), more()]


@given(st.integers(0, 2**32))
def test_parts_make_the_boxes_of_the_result(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for graph in GRAPHS:
        for op in graph.ops:
            inputs, y = graph.operands(op), graph.tensors[op.output]
            arrays = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in inputs]
            spans = zip(y.shape[1:], op.crops, strict=True)
            box = Box(*(span(rng, size, cut) for size, cut in spans))
            part, needed = op.part(box, inputs, y), op.needed(box, inputs, y)
            assert all(mine.inside(Box.whole(x.shape)) for mine, x in zip(needed, inputs, strict=True)), op.where
            if part is None:
                assert refused(op, box, inputs), op.where
                continue
            taken = [n for n, mine in enumerate(needed) if mine.size]
            assert part.inputs == tuple(op.inputs[n] for n in taken)
            given_ = [replace(inputs[n], shape=needed[n].shape) for n in taken]
            made = replace(y, shape=box.shape)
            part.check(given_, made)
            found = part.evaluate([arrays[n][needed[n].slices] for n in taken], given_, made)
            assert np.array_equal(found, op.evaluate(arrays, inputs, y)[box.slices]), (op.where, box)


def refused(op: Op, box: Box, inputs: list[Tensor]) -> bool:
    """Whether there can be no part: a window over padding alone, one group and a half, or other channels."""
    if isinstance(op, Reshape):
        return True
    if window_view(op.window, box, inputs[0].shape) is None:
        rows = np.arange(*box.rows)[:, None] * op.window.strides[0] - op.window.pads[0]
        cols = np.arange(*box.cols)[:, None] * op.window.strides[1] - op.window.pads[1]
        rows = rows + np.arange(op.window.kernel[0]) * op.window.dilations[0]
        cols = cols + np.arange(op.window.kernel[1]) * op.window.dilations[1]
        return any(((at < 0) | (at >= n)).all() for at, n in ((rows, inputs[0].height), (cols, inputs[0].width)))
    assert isinstance(op, Conv)
    each = len(op.weight) // op.groups
    first, last = box.channels[0] // each, (box.channels[1] - 1) // each
    return first != last and (box.channels[0] % each != 0 or box.channels[1] % each != 0)


def test_planes_that_change_their_form_are_cut_along_channels() -> None:
    """As where heads of a detector become rows of boxes: of some channels only if all channels stay."""
    x, y = Tensor("x", (1, 12, 4, 5), 1.0, 0), Tensor("y", (1, 12, 1, 20), 1.0, 0)
    op = Reshape("r", ("x",), "y")
    some = Box.whole(y.shape)._replace(channels=(4, 9))
    (needed,) = op.needed(some, [x], y)
    assert needed == Box.whole(x.shape)._replace(channels=(4, 9))
    assert op.part(some, [x], y) == op
    assert op.part(some._replace(cols=(0, 10)), [x], y) is None
    flat = Tensor("y", (1, 24, 2, 5), 1.0, 0)
    assert op.needed(some, [x], flat) == [Box.whole(x.shape)]
    assert op.part(Box.whole(flat.shape)._replace(channels=(4, 9)), [x], flat) is None


def test_every_operation_is_there_and_most_can_be_cut() -> None:
    assert {type(op) for graph in GRAPHS for op in graph.ops} == set(get_args(Op))
    assert {type(op).__name__: op.crops for op in every().ops if not all(op.crops)} == {"Reshape": (True, False, False)}


def test_what_cannot_be_cut_has_itself_as_its_only_part() -> None:
    graph = every()
    for op in graph.ops:
        inputs, y = graph.operands(op), graph.tensors[op.output]
        box = Box.whole(y.shape)
        part = op.part(box, inputs, y)
        assert part is not None
        assert part.window.size(inputs[0].shape[2:]) == op.window.size(inputs[0].shape[2:])
        for axis, name in enumerate(("channels", "rows", "cols")):
            if not op.crops[axis] and y.shape[1 + axis] > 1:
                assert op.part(box._replace(**{name: (0, y.shape[1 + axis] - 1)}), inputs, y) is None


def test_a_packed_operand_is_not_cut() -> None:
    weight = np.ones((4, 4, 1, 1), np.int8)
    op = PackedConv("packed", ("x",), "y", (), weight, np.zeros(4, np.int32), np.ones(4, np.float32),
                    pitch=(4, 4), tiles=(PackedTile(0),), elements=(True,) * 4)  # fmt: skip
    x, y = tensor("x", 4, 1, 8), tensor("y", 4, 1, 2)
    op.check([x], y)
    box = Box.whole(y.shape)
    assert op.crops == (False, False, False)
    assert op.part(box, [x], y) is op
    assert op.part(box._replace(channels=(0, 2)), [x], y) is None
    assert op.needed(box, [x], y) == [Box.whole(x.shape)]


def test_boxes_as_sets_of_elements() -> None:
    a, b, none = Box((0, 2), (1, 3), (4, 5)), Box((1, 4), (0, 2), (2, 3)), Box((3, 3), (0, 9), (0, 9))
    assert a.hull(b) == b.hull(a) == Box((0, 4), (0, 3), (2, 5))
    assert a.hull(none) == none.hull(a) == a
    assert (a.size, a.shape, none.size) == (4, (1, 2, 2, 1), 0)
    assert a.inside(a.hull(b))
    assert not a.hull(b).inside(a)
    boxes = [Box(*((low, low + 2) for low in lows)) for lows in np.ndindex(4, 4, 4)]
    for other in boxes:
        marks = np.zeros((1, 6, 6, 6))
        marks[other.slices] += 1
        marks[boxes[21].slices] += 1
        assert other.meets(boxes[21]) == boxes[21].meets(other) == (marks.max() == 2)
    array = np.zeros((2, 4, 3, 5))
    array[a.slices] = 1
    assert array.sum() == 2 * a.size


@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_stripes_need_no_more_than_their_windows(kernel: int) -> None:
    """Neighbouring stripes of stride 1 share ``kernel - 1`` rows."""
    window, shape = Window((kernel, 1)), (1, 1, 20, 1)
    stripes = [window_view(window, Box((0, 1), (at, at + 2), (0, 1)), shape) for at in range(0, 14, 2)]
    rows = [stripe[0] for stripe in stripes if stripe]
    assert len(rows) == 7
    assert {one[1] - other[0] for one, other in pairwise(rows)} == {kernel - 1}
