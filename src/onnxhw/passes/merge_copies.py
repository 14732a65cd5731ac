"""`merge_copies`: padding and slicing before a window become the window's own padding.

    Copy(x), framed with the zero point -> Conv          Conv with larger pads
    Copy(x), a box of x's pixels        -> Conv, pool    the window with negative pads

A side that is cut is merged only where the window adds no padding of its own there: it would see what was cut.
"""

from dataclasses import replace

from ..ir.graph import Conv, Copy, Graph, Op, Pool, Tensor

Pads = tuple[int, int, int, int]


def merge_copies(graph: Graph) -> Graph:
    """The graph with every window reading past the copies it can do without; dead copies stay."""
    makers: dict[str, Op] = {}
    ops: list[Op] = []
    for op in graph.ops:
        op = _merged(op, graph, makers)
        makers[op.output] = op
        ops.append(op)
    return Graph(graph.name, graph.tensors, ops, graph.inputs, graph.outputs)


def _merged(op: Op, graph: Graph, makers: dict[str, Op]) -> Op:
    copy = makers.get(op.inputs[0])
    if not isinstance(op, Conv | Pool) or not isinstance(copy, Copy):
        return op
    pads = _pads(copy, graph.tensors[copy.inputs[0]], graph.tensors[copy.output])
    if pads is None or any(side < 0 < own for side, own in zip(pads, op.pads, strict=True)):
        return op
    if max(pads) > 0 and not isinstance(op, Conv):
        return op  # a pool's padding is left out; what a copy adds is not
    top, left, bottom, right = (side + own for side, own in zip(pads, op.pads, strict=True))
    nodes = tuple(dict.fromkeys([*copy.nodes, *op.nodes]))
    wider = replace(op, inputs=copy.inputs, nodes=nodes, pads=(top, left, bottom, right))
    return _merged(wider, graph, makers)


def _pads(copy: Copy, x: Tensor, y: Tensor) -> Pads | None:
    """The padding that the copy amounts to, negative where it cuts; None if it does anything else."""
    if len(copy.inputs) != 1 or len(copy.pieces) != 1:
        return None
    (piece,) = copy.pieces
    row, col = divmod(piece.start, x.width)
    stepped = piece.rows > 1 and (piece.row != x.width or piece.dy != 1)
    if stepped or (piece.cols > 1 and (piece.col != 1 or piece.dx != 1)):
        return None
    before = (piece.y, piece.x), (row, col)
    after = (
        (y.height - piece.y - piece.rows, y.width - piece.x - piece.cols),
        (x.height - row - piece.rows, x.width - col - piece.cols),
    )
    sides = [(added[axis], cut[axis]) for added, cut in (before, after) for axis in (0, 1)]
    if any(cut < 0 or (added and cut) for added, cut in sides):
        return None
    if any(added for added, _ in sides) and copy.fill != x.zero_point:
        return None
    top, left, bottom, right = (added - cut for added, cut in sides)
    return top, left, bottom, right
